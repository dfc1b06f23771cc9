package e2e_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager/alertmanagertest"
)

const probeConfig = `
alertmanager:
  urls: [%q]
  resend: 1s
`

// watched is a cache that nobody but the exporter's probes knows of.
type watched struct {
	*rig
	nodes   []string
	cluster bool
}

// watch starts an exporter that is told of nothing but where a Redis is.
func watch(t testing.TB, cache string, cluster bool, nodes ...string) *watched {
	r := &rig{t: t, alerts: alertmanagertest.Start(t), dir: t.TempDir(), web: freeAddr(t), grpc: freeAddr(t), http: freeAddr(t)}
	if err := os.WriteFile(filepath.Join(r.dir, "config.yml"), fmt.Appendf(nil, probeConfig, r.alerts.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	url := "redis://" + nodes[0] + "?configure=true&lock=lock:{{key}}&cache=" + cache
	if cluster {
		url += "&mode=cluster"
	}
	r.exporter = start(t, nil, "stampede-exporter", "--config.file="+filepath.Join(r.dir, "config.yml"), "--probe.redis="+url,
		"--web.listen-address="+r.web, "--otlp.grpc.listen-address="+r.grpc, "--otlp.http.listen-address="+r.http)
	w := &watched{r, nodes, cluster}
	eventually(t, 30*time.Second, "the probe listens", func() bool { return w.metric("stampede_probe_success", "probe=redis-keyspace") == 1 })
	return w
}

func (w *watched) metric(name string, labels ...string) float64 {
	return metric("http://"+w.web+"/metrics", name, labels...)
}

// client runs the client against the watched cache.
func (w *watched) client(options map[string]any) counts {
	w.t.Helper()
	return runNode(w.t, "cache-aside.js", w.options(options))
}

func (w *watched) options(options map[string]any) map[string]any {
	all := map[string]any{"nodes": w.nodes, "cluster": w.cluster}
	for k, v := range options {
		all[k] = v
	}
	return all
}

// pages returns the detectors of alerts that page.
func (w *watched) pages() (out []string) {
	for _, a := range w.firing() {
		if a.Labels["severity"] == "page" {
			out = append(out, a.Labels["detector"])
		}
	}
	return out
}

// near fails t unless got is within 5 % of want.
func near(t testing.TB, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.05*want {
		t.Errorf("%s: the exporter says %v, the client counted %v", what, got, want)
	}
}

// TestADogpileOfAClientInAnotherLanguageIsSeenFromOutside compares what the
// probe makes of a client's dogpile with what the client counted, and sees the
// same client protected leave everybody asleep.
func TestADogpileOfAClientInAnotherLanguageIsSeenFromOutside(t *testing.T) {
	for _, deployment := range []struct {
		name    string
		cluster bool
		nodes   func(*testing.T) []string
	}{
		{"a single server", false, func(t *testing.T) []string { return []string{cachetest.Redis(t)} }},
		{"a cluster of three primaries", true, func(t *testing.T) []string { return cachetest.RedisCluster(t, 3, false).Addrs() }},
	} {
		t.Run(deployment.name, func(t *testing.T) {
			nodes := deployment.nodes(t)
			t.Run("without protection", func(t *testing.T) { naive(watch(t, "redis", deployment.cluster, nodes...)) })
			t.Run("protected", func(t *testing.T) { protected(watch(t, "redis", deployment.cluster, nodes...)) })
		})
	}
}

// naive lets 200 readers meet at an expiry.
func naive(w *watched) {
	c := w.client(map[string]any{"protect": "none"})
	if c.FanIn != 200 || c.Recomputes != 200 {
		w.t.Fatalf("the client counted %+v, want 200 recomputes of 200 readers", c)
	}
	eventually(w.t, 10*time.Second, "somebody is paged", func() bool { return len(w.pages()) > 0 })
	if got := w.pages(); len(got) != 1 || got[0] != "hot-key-expiry" {
		w.t.Errorf("somebody is paged about %q, want hot-key-expiry", got)
	}
	eventually(w.t, 10*time.Second, "all is counted", func() bool {
		return w.metric("stampede_fleet_duplicate_recomputes_total") >= 0.95*float64(c.Recomputes)
	})
	near(w.t, "fan-in", w.metric("stampede_fleet_miss_concurrency_peak"), float64(c.FanIn))
	near(w.t, "at once", w.metric("stampede_fleet_recomputes_in_flight_peak"), float64(c.Recomputes))
	near(w.t, "recomputes", w.metric("stampede_fleet_recomputes_total"), float64(c.Recomputes))
	near(w.t, "duplicates", w.metric("stampede_fleet_duplicate_recomputes_total"), float64(c.Recomputes-1))
	if gaps := w.metric("stampede_probe_gaps_total", "probe=redis-keyspace"); gaps != 0 {
		w.t.Errorf("%v gaps", gaps)
	}
}

// protected lets them meet where one recomputes for all, in two ways.
func protected(w *watched) {
	for _, protect := range []string{"singleflight", "lock"} {
		c := w.client(map[string]any{"protect": protect, "cycles": 3, "key": "by-" + protect})
		if c.Recomputes != 3 || c.FanIn != 600 {
			w.t.Fatalf("%s: the client counted %+v, want 3 recomputes of 600 readers", protect, c)
		}
	}
	time.Sleep(4 * time.Second) // an episode is over after two, and a page never waits that long
	if got := w.pages(); len(got) != 0 {
		w.t.Errorf("somebody was paged about %q, and all was well", got)
	}
	if n := w.metric("stampede_fleet_recomputes_total"); n != 6 {
		w.t.Errorf("%v recomputes counted, want 6", n)
	}
	if n := w.metric("stampede_fleet_duplicate_recomputes_total"); n != 0 {
		w.t.Errorf("%v duplicates counted, want none", n)
	}
}

func TestALockWhoseHolderWasKilledIsSeenFromOutside(t *testing.T) {
	addr := cachetest.Redis(t)
	w := watch(t, "redis", false, addr)
	t.Log("a few cycles, so that it is known how long a recompute takes")
	if c := w.client(map[string]any{"protect": "lock", "cycles": 3, "readers": 50, "takes": 200}); c.Recomputes != 3 {
		t.Fatalf("the client counted %+v, want 3 recomputes", c)
	}
	time.Sleep(2 * time.Second) // the last value expires
	t.Log("kill the holder of the lock")
	kill := startNode(t, "cache-aside.js", "holding", w.options(map[string]any{"protect": "lock", "readers": 1, "ttl": 0, "hold": true, "lockTTL": 40000}))
	kill()
	done := make(chan counts)
	go func() {
		done <- w.client(map[string]any{"protect": "lock", "readers": 50, "ttl": 0, "give": 20000})
	}()
	eventually(t, 20*time.Second, "the lock is found orphaned", func() bool {
		for _, i := range w.incidents() {
			if i.Detector == "orphaned-lock" {
				return true
			}
		}
		return false
	})
	eventually(t, 20*time.Second, "and somebody is paged", func() bool { return strings.Contains(strings.Join(w.pages(), " "), "orphaned-lock") })
	<-done
}
