package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/probes/redis"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// declared is what an operator says of the origin behind the cache that is
// probed: 8 at once, 400 ms each.
var declared = engine.Declarations{
	Budgets:    map[string]int{"db": 8},
	Recomputes: map[string]time.Duration{"db": 400 * time.Millisecond},
	Origins:    map[string]string{"feed": "db"},
}

// findings shows what the expiry probe of addr says in some runs to a fleet and a
// detector, and returns what that finds.
func findings(t *testing.T, addr string, d detectors.Detector, runs int) []detectors.Finding {
	t.Helper()
	f, err := fleet.New(fleet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := expiryProbe(t, addr, redis.Options{}, redis.ExpiryOptions{})
	var found []detectors.Finding
	for range runs {
		v := ask(t, p)
		v.Origin = declared.Origin(v.Cache, v.Origin)
		now := signal.At(time.Now())
		f.Add(now, nil, []*signal.Vitals{v})
		found = append(found, d.Observe(f.Tick(now))...)
	}
	return found
}

func evidence(f detectors.Finding, name string) detectors.Evidence {
	for _, e := range f.Evidence {
		if e.Name == name {
			return e
		}
	}
	return detectors.Evidence{}
}

func TestAWaveInARedisIsForecastBeforeItComes(t *testing.T) {
	addr := cachetest.Redis(t)
	c := dial(t, addr)
	written := time.Now()
	fill(t, c, "feed:", 2000, 40*time.Second)
	fill(t, c, "user:", 100, 10*time.Minute)
	took := time.Since(written)

	d, err := detectors.NewExpiryForecast(detectors.ExpiryForecastConfig{})
	if err != nil {
		t.Fatal(err)
	}
	found := findings(t, addr, d, 5)
	if time.Since(written) > 39*time.Second {
		t.Fatal("the machine is too slow for this test: the wave has come")
	}
	if len(found) == 0 {
		t.Fatal("nothing was found")
	}
	last := found[len(found)-1]
	if last.Severity != detectors.Ticket || last.Cache != "feed" || last.Service != "redis" || last.Origin != "db" {
		t.Errorf("got %+v", last)
	}
	for name, want := range map[string][2]float64{
		"keys":            {2000, 2000},
		"group.keys":      {2000, 2000},
		"ahead":           {1, 40},
		"spread.required": {125, 125}, // 2000 * 0.4 s / (8 * 0.8)
		"spread.observed": {0.5, 2 + took.Seconds()},
		"backlog":         {90, 100},
		"recompute.mean":  {0.4, 0.4},
		"deadlines.peak":  {1, 2000},
	} {
		if got := evidence(last, name).Value; got < want[0] || got > want[1] {
			t.Errorf("%s is %v, want %v to %v", name, got, want[0], want[1])
		}
	}
	if note := evidence(last, "group.keys").Note; !strings.Contains(note, "feed:*") {
		t.Errorf("note %q, want it to name feed:*", note)
	}
	if note := evidence(last, "recompute.mean").Note; note != "a recompute, as declared" {
		t.Errorf("note %q, want it to say that it was declared", note)
	}
	if !strings.HasPrefix(last.Summary, "Cache feed: 2000 keys, mostly of feed:*, expire within") {
		t.Errorf("summary: %s", last.Summary)
	}
}

func TestSpreadOutKeysInARedisAreNoWave(t *testing.T) {
	addr := cachetest.Redis(t)
	c := dial(t, addr)
	for i := range 100 {
		fill(t, c, fmt.Sprint("feed:", i, ":"), 10, time.Duration(100+3*i)*time.Second)
	}
	d, err := detectors.NewExpiryForecast(detectors.ExpiryForecastConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if found := findings(t, addr, d, 3); len(found) > 0 {
		t.Errorf("got %+v, want nothing", found)
	}
}
