package live_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/live"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

const plain = `name: plain
duration: 2s
fleet: {instances: 2}
origins:
  db: {concurrency: 8}
caches:
  feed: {origin: db, ttl: 1s, recompute: {fixed: 10ms}, client: {timeout: 1s}}
workloads:
  - {cache: feed, rate: 10}
events:
  - {at: 0s, do: warm, cache: feed}
`

func TestWhatRunsOnlyInVirtualTimeIsAnErrorWithFileAndLine(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"a scenario that can run":       {"", "", ""},
		"one that is wrong in any case": {"rate: 10", "rate: -1", ":9: workloads.0.rate: -1 is out of range"},
		"an event":                      {"do: warm, cache: feed", "do: deploy, build: v2", ":11: events.0.do: deploy runs only in virtual time"},
		"clocks that are off":           {"instances: 2", "instances: 2, clock_skew: 1s", ":3: fleet.clock_skew: a clock that is off runs only in virtual time"},
		"a fleet that is too large":     {"instances: 2", "instances: 201", ":3: fleet.instances: 201 is too much for real time: want at most 200"},
		"too many reads":                {"rate: 10", "rate: 20001", ":9: workloads.0.rate: 20001 is too much for real time"},
		"too many keys":                 {"rate: 10", "rate: 10, keys: 100001", ":9: workloads.0.keys: 100001 is too much"},
		"an origin that stops work":     {"concurrency: 8", "concurrency: 8, cancel: true", ":5: origins.db.cancel: "},
		"sweeps":                        {"ttl: 1s", "ttl: 1s, sweep: {every: 10s}", ":7: caches.feed.sweep: sweep runs only in virtual time"},
		"versions that are told":        {"ttl: 1s", "ttl: 1s, versioned: true", ":7: caches.feed.versioned: "},
		"hedging":                       {"timeout: 1s", "timeout: 1s, hedge: 100ms", ":7: caches.feed.client.hedge: hedge runs only in virtual time"},
		"failures that are stored":      {"timeout: 1s", "timeout: 1s, cache_errors: 1s", ":7: caches.feed.client.cache_errors: "},
		"a bound on waiters":            {"ttl: 1s", "ttl: 1s, singleflight: {waiters: 3}", ":7: caches.feed.singleflight.waiters: "},
		"locks that are left":           {"ttl: 1s", "ttl: 1s, lock: {release: never}", ":7: caches.feed.lock.release: "},
		"locks without a second look":   {"ttl: 1s", "ttl: 1s, lock: {recheck: false}", ":7: caches.feed.lock.recheck: "},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "s.yml")
			if err := os.WriteFile(file, []byte(strings.Replace(plain, c.from, c.to, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := scenario.LoadFor(file, live.Check)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), file+c.want)) {
				t.Errorf("the error is %v: want %q", err, c.want)
			}
		})
	}
}
