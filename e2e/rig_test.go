package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager/alertmanagertest"
)

// rig is the whole installation.
type rig struct {
	t        testing.TB
	redis    string
	alerts   *alertmanagertest.Server
	dir      string
	web      string // of the exporter
	grpc     string
	http     string
	exporter *process
	services []*service
	traffic  *http.Client
}

// service is one process of the application.
type service struct {
	*process
	addr string
}

const exporterConfig = `
alertmanager:
  urls: [%q]
  resend: 1s
detectors:
  hot-key-expiry:
    clear_after: 5s
`

func newRig(t testing.TB) *rig {
	r := &rig{t: t, redis: cachetest.Redis(t), alerts: alertmanagertest.Start(t), dir: t.TempDir(),
		web: freeAddr(t), grpc: freeAddr(t), http: freeAddr(t),
		traffic: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 200}}}
	config := fmt.Sprintf(exporterConfig, r.alerts.URL)
	if err := os.WriteFile(filepath.Join(r.dir, "config.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.traffic.CloseIdleConnections)
	r.startExporter()
	return r
}

func (r *rig) startExporter() {
	r.exporter = start(r.t, nil, "stampede-exporter",
		"--config.file="+filepath.Join(r.dir, "config.yml"), "--state.file="+filepath.Join(r.dir, "state.json"),
		"--web.listen-address="+r.web, "--otlp.grpc.listen-address="+r.grpc, "--otlp.http.listen-address="+r.http)
	eventually(r.t, 20*time.Second, "the exporter is ready", func() bool { return get("http://"+r.web+"/-/ready") != "" })
}

// startServices runs n processes of the service, or restarts those that run.
func (r *rig) startServices(n int, protect string) {
	for i := range n {
		if i < len(r.services) {
			r.services[i].signal(syscall.SIGTERM)
			r.services[i] = r.startService(r.services[i].addr, protect)
			continue
		}
		r.services = append(r.services, r.startService(freeAddr(r.t), protect))
	}
}

func (r *rig) startService(addr, protect string) *service {
	env := []string{"OTEL_SERVICE_NAME=feed", "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + r.grpc}
	s := &service{addr: addr, process: start(r.t, env, "feed", "-listen="+addr, "-redis="+r.redis, "-ttl=3s", "-protect="+protect)}
	eventually(r.t, 20*time.Second, "the service answers", func() bool { return get("http://"+addr+"/metrics") != "" })
	return s
}

// load asks for the feed rate times a second, of a service chosen at random,
// until the function it returns is called.
func (r *rig) load(rate float64) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	addrs := make([]string, len(r.services))
	for i, s := range r.services {
		addrs[i] = s.addr
	}
	all.Go(func() {
		rng := rand.New(rand.NewPCG(1, 2))
		for next := time.Now(); ctx.Err() == nil; time.Sleep(time.Until(next)) {
			for ; !next.After(time.Now()); next = next.Add(time.Duration(rng.ExpFloat64() / rate * float64(time.Second))) {
				addr := addrs[rng.IntN(len(addrs))]
				all.Go(func() {
					if resp, err := r.traffic.Get("http://" + addr + "/feed"); err == nil {
						resp.Body.Close()
					}
				})
			}
		}
	})
	return sync.OnceFunc(func() { cancel(); all.Wait() })
}

// queries returns how many queries the services say they have begun.
func (r *rig) queries() float64 {
	n := 0.0
	for _, s := range r.services {
		n += metric("http://"+s.addr+"/metrics", "feed_database_queries_total")
	}
	return n
}

// counted returns how many recomputes the exporter has counted.
func (r *rig) counted() float64 {
	return metric("http://"+r.web+"/metrics", "stampede_fleet_recomputes_total", "cache=feed")
}

// firing returns the alerts of our service that are active.
func (r *rig) firing() []alertmanagertest.Alert {
	var out []alertmanagertest.Alert
	for _, a := range r.alerts.Alerts(r.t) {
		if a.EndsAt.After(time.Now()) && strings.HasPrefix(a.Labels["alertname"], "Stampede") {
			out = append(out, a)
		}
	}
	return out
}

// incident is what the exporter's API says of one.
type incident struct {
	ID       string `json:"id"`
	Detector string `json:"detector"`
	Severity string `json:"severity"`
	Closed   int64  `json:"closed"`
	Episodes int    `json:"episodes"`
}

func (r *rig) incidents() []incident {
	var page struct {
		Incidents []incident `json:"incidents"`
	}
	body := get("http://" + r.web + "/api/v1/incidents")
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		r.t.Fatalf("read incidents: %v in %q", err, body)
	}
	return page.Incidents
}
