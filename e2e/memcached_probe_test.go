package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager/alertmanagertest"
)

const memcachedConfig = `
alertmanager:
  urls: [%q]
  resend: 1s
origins:
  db: {concurrency: 8, recompute: 200ms}
caches:
  memcached: {origin: db}
probes:
  - type: memcached
    target: %q
    cache: memcached
    keyspace: {locks: ["lock:{key}"]}
    metadump: {every: 5s}
`

// watchMemcached starts an exporter that is told of nothing but where a memcached
// is, and what its values are made with.
func watchMemcached(t testing.TB) *watched {
	addr := cachetest.Memcached(t)
	r := &rig{t: t, alerts: alertmanagertest.Start(t), dir: t.TempDir(), web: freeAddr(t), grpc: freeAddr(t), http: freeAddr(t)}
	if err := os.WriteFile(filepath.Join(r.dir, "config.yml"), fmt.Appendf(nil, memcachedConfig, r.alerts.URL, addr), 0o600); err != nil {
		t.Fatal(err)
	}
	r.exporter = start(t, nil, "stampede-exporter", "--config.file="+filepath.Join(r.dir, "config.yml"),
		"--web.listen-address="+r.web, "--otlp.grpc.listen-address="+r.grpc, "--otlp.http.listen-address="+r.http)
	w := &watched{rig: r, nodes: []string{addr}}
	for _, probe := range []string{"memcached-stats", "memcached-watch", "memcached-metadump"} {
		eventually(t, 30*time.Second, probe+" works", func() bool { return w.metric("stampede_probe_success", "probe="+probe) == 1 })
	}
	return w
}

// memcachedClient runs the client against the watched cache.
func (w *watched) memcachedClient(options map[string]any) counts {
	w.t.Helper()
	return runNode(w.t, "cache-aside-memcached.js", w.options(options))
}

func TestADogpileInFrontOfMemcachedIsSeenFromOutside(t *testing.T) {
	w := watchMemcached(t)
	c := w.memcachedClient(map[string]any{"protect": "none", "cycles": 2})
	if c.Recomputes != 400 {
		t.Fatalf("the client counted %+v, want 400 recomputes", c)
	}
	eventually(t, 10*time.Second, "somebody is paged", func() bool { return len(w.pages()) > 0 })
	if got := w.pages(); len(got) != 1 || got[0] != "hot-key-expiry" {
		t.Errorf("somebody is paged about %q, want hot-key-expiry", got)
	}
	recomputes := func() float64 { return w.metric("stampede_fleet_recomputes_total", "cache=memcached") }
	eventually(t, 10*time.Second, "all is counted", func() bool { return recomputes() >= 0.95*float64(c.Recomputes) })
	time.Sleep(1500 * time.Millisecond) // duplicates are counted at the next tick
	near(t, "fan-in", w.metric("stampede_fleet_miss_concurrency_peak", "cache=memcached"), float64(c.FanIn)/2)
	near(t, "at once", w.metric("stampede_fleet_recomputes_in_flight_peak", "cache=memcached"), float64(c.Recomputes)/2)
	near(t, "recomputes", recomputes(), float64(c.Recomputes))
	near(t, "duplicates", w.metric("stampede_fleet_duplicate_recomputes_total", "cache=memcached"), float64(c.Recomputes-2))
	if gaps := w.metric("stampede_probe_gaps_total", "probe=memcached-watch"); gaps != 0 {
		t.Errorf("%v gaps", gaps)
	}
}

func TestALockInFrontOfMemcachedLeavesEverybodyAsleep(t *testing.T) {
	w := watchMemcached(t)
	c := w.memcachedClient(map[string]any{"protect": "lock", "cycles": 3})
	if c.Recomputes != 3 || c.FanIn < 500 {
		t.Fatalf("the client counted %+v, want 3 recomputes of 600 readers", c)
	}
	recomputes := func() float64 { return w.metric("stampede_fleet_recomputes_total", "cache=memcached") }
	eventually(t, 15*time.Second, "its recomputes are counted", func() bool { return recomputes() >= 3 })
	time.Sleep(4 * time.Second) // an episode is over after two, and a page never waits that long
	if got := w.incidents(); len(got) != 0 {
		t.Errorf("incidents %+v, and all was well", got)
	}
	if got := recomputes(); got != 3 {
		t.Errorf("%v recomputes counted, want 3", got)
	}
	if n := w.metric("stampede_fleet_duplicate_recomputes_total", "cache=memcached"); n != 0 {
		t.Errorf("%v duplicates counted, want none", n)
	}
}

func TestValuesOfMemcachedThatExpireTogetherAreForeseen(t *testing.T) {
	w := watchMemcached(t)
	began := time.Now()
	w.memcachedClient(map[string]any{"wave": 2000, "ttl": 60})
	forecast := func() (found incident) {
		for _, i := range w.incidents() {
			if i.Detector == "expiry-forecast" {
				return i
			}
		}
		return incident{}
	}
	eventually(t, 45*time.Second, "the wave is foreseen", func() bool { return forecast().ID != "" })
	t.Logf("foreseen %v before the first of them expires", (time.Minute - time.Since(began)).Round(time.Second))
	page := get("http://" + w.web + "/incidents/" + forecast().ID)
	if want := "2000 keys, mostly of user:*, expire within"; !strings.Contains(page, want) {
		t.Errorf("the incident's page does not say %q:\n%s", want, page)
	}
}
