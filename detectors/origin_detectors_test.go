package detectors_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// checkSense fails if a finding says what no finding may.
func checkSense(t interface {
	Helper()
	Fatalf(string, ...any)
}, fs []detectors.Finding) {
	t.Helper()
	for _, f := range fs {
		for _, e := range f.Evidence {
			if math.IsNaN(e.Value) || math.IsInf(e.Value, 0) || e.Value < 0 {
				t.Fatalf("%s: %s is %g", f.Detector, e.Name, e.Value)
			}
		}
		if f.Cache == "" || f.Summary == "" || f.Advice == "" || len(f.Evidence) == 0 || f.Onset > f.Detected && f.Onset <= 0 {
			t.Fatalf("%s makes no sense: %+v", f.Detector, f)
		}
		if (f.Severity == detectors.Page) != (f.Priority == 1 || f.Priority == 2) {
			t.Fatalf("%s has severity %v and priority %d", f.Detector, f.Severity, f.Priority)
		}
	}
}

// anyState draws a state of a cache, likely or not.
func anyState(t *rapid.T, name string) signal.CacheState {
	n := rapid.OneOf(rapid.Uint64Range(0, 200), rapid.Just(uint64(math.MaxUint64)))
	c := feed(func(c *signal.CacheState) { c.Cache = name })
	c.Origin = rapid.SampledFrom([]signal.Origin{{}, {Name: "db", Budget: 8}, {Name: "db"}, {Name: "db", Budget: -1}, {Budget: 3}}).Draw(t, "origin")
	c.Instances = rapid.IntRange(0, 2).Draw(t, "instances")
	c.UptimeMin = time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "uptime"))
	c.Lookups = signal.Lookups{Hits: n.Draw(t, "hits"), Misses: n.Draw(t, "misses"), Stale: n.Draw(t, "stale"), Errors: n.Draw(t, "errors")}
	w := &c.Work
	w.Coalesced, w.Busy = n.Draw(t, "coalesced"), time.Duration(rapid.Int64().Draw(t, "busy"))
	w.Retries = signal.Retries{Requests: n.Draw(t, "requests"), Attempts: n.Draw(t, "attempts")}
	cause := rapid.IntRange(0, int(signal.NumCauses)-1).Draw(t, "cause")
	w.Recomputes.Started[cause] = n.Draw(t, "started")
	for o := range signal.NumOutcomes {
		w.Recomputes.Ended[cause][o] = n.Draw(t, "ended")
	}
	w.Durations[rapid.IntRange(0, signal.DurationBuckets-1).Draw(t, "bucket")] = n.Draw(t, "timed")
	c.Running = rapid.OneOf(rapid.Uint32Range(0, 50), rapid.Just(uint32(math.MaxUint32))).Draw(t, "running")
	c.Evicted = n.Draw(t, "evicted")
	c.Claims.Timeout = time.Duration(rapid.Int64().Draw(t, "timeout"))
	c.Claims.Attempts = rapid.Int().Draw(t, "tries")
	return c
}

func TestOriginDetectorsKeepTheirPromisesWhateverTheyAreShown(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		straight, shuffled := originDetectors(t), originDetectors(t)
		rng := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(rt, "seed")))
		held := map[string]detectors.Severity{}
		healthy := rapid.Bool().Draw(rt, "healthy at first")
		at := time.Duration(0)
		for i := range 70 {
			at += 10 * second
			t := &signal.Tick{At: after(at), Caches: []signal.CacheState{usually().state()}}
			if i >= 40 || !healthy {
				at += time.Duration(rapid.Int64Range(-int64(2*second), int64(20*second)).Draw(rt, "pause"))
				t = &signal.Tick{At: after(at), Urgent: rapid.IntRange(0, 9).Draw(rt, "urgent") == 0}
				for n := range rapid.IntRange(0, 3).Draw(rt, "caches") {
					t.Caches = append(t.Caches, anyState(rt, fmt.Sprint("c", n)))
				}
			}
			other := &signal.Tick{At: t.At, Urgent: t.Urgent, Caches: slices.Clone(t.Caches)}
			rng.Shuffle(len(other.Caches), func(i, j int) { other.Caches[i], other.Caches[j] = other.Caches[j], other.Caches[i] })
			for k, d := range straight {
				fs := d.Observe(t)
				checkSense(rt, fs)
				holdSeverity(rt, held, fs)
				if diff := cmp.Diff(fs, shuffled[k].Observe(other)); diff != "" {
					rt.Fatalf("%s depends on the order of caches:\n%s", d.Doc().ID, diff)
				}
			}
		}
	})
}

// holdSeverity fails if a finding that is open becomes less severe.
func holdSeverity(t *rapid.T, held map[string]detectors.Severity, fs []detectors.Finding) {
	for _, f := range fs {
		name := f.Detector + "/" + f.Cache
		if s, ok := held[name]; ok && f.Severity < s {
			t.Fatalf("%s is %v and was %v", name, f.Severity, s)
		}
		held[name] = f.Severity
		if f.Cleared {
			delete(held, name)
		}
	}
}

func TestAnOriginIsJudgedByAllItsCaches(t *testing.T) {
	// Alone each cache asks for half of what the origin can do.
	half := func(name string, misses uint64) signal.CacheState {
		x := asks(misses, 50)
		x.change = func(c *signal.CacheState) { c.Cache = name }
		return x.state()
	}
	l := newBudget(t).learn()
	for range 3 * 60 {
		l.now += second
		l.show(&signal.Tick{At: after(l.now), Caches: []signal.CacheState{half("more", 50), half("less", 40)}})
	}
	if len(l.found) != 1 || l.f.Cache != "more" {
		t.Errorf("found %v in %q, want one finding in the cache that asks for more", l.found, l.f.Cache)
	}
}

func TestNoKeyAndNoNameOfASourceIsToldTwice(t *testing.T) {
	l := newLoop(t).learn().run(80, stuck())
	if l.f.Service != "shop" || l.f.Cache != "feed" || l.f.Key != (signal.Key{}) {
		t.Errorf("service %q, cache %q, key %+v; want shop, feed and none", l.f.Service, l.f.Cache, l.f.Key)
	}
}

func TestOriginsAreBounded(t *testing.T) {
	l := newLoop(t)
	tick := func(at time.Duration, first int) {
		var cs []signal.CacheState
		for n := range 1001 {
			cs = append(cs, feed(func(c *signal.CacheState) { c.Cache, c.Origin = fmt.Sprintf("c%04d", first+n), signal.Origin{} }))
		}
		l.d.Observe(&signal.Tick{At: after(at), Caches: cs})
	}
	tick(second, 0)
	refused := 0
	for _, r := range reasons(l.d) {
		if r == "blind: Its origin is not watched: there are more than 1000." {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d caches are said not to be watched, want 1", refused)
	}
	tick(2*second, 5000) // all are silent now: others take their places
	if n := len(reasons(l.d)); n != 1001 {
		t.Errorf("%d limits, want one a cache", n)
	}
}

func TestWrongThresholdsAreNamed(t *testing.T) {
	type c = detectors.Config
	nan := math.NaN()
	tests := []struct {
		c    c
		want string
	}{
		{c{BudgetExceeded: detectors.BudgetExceededConfig{TicketDemand: 0.05}}, "configure budget-exceeded: ticket_demand is 0.05: want 0.1 to 10"},
		{c{BudgetExceeded: detectors.BudgetExceededConfig{PageDemand: 0.5}}, "configure budget-exceeded: page_demand is 0.5: want 0.8 to 10"},
		{c{BudgetExceeded: detectors.BudgetExceededConfig{TicketAfter: ms}}, "configure budget-exceeded: ticket_after is 1ms: want 1s to 24h0m0s"},
		{c{BudgetExceeded: detectors.BudgetExceededConfig{PageAfter: ms}}, "configure budget-exceeded: page_after is 1ms: want 1s to 1h0m0s"},
		{c{BudgetExceeded: detectors.BudgetExceededConfig{ClearAfter: ms}}, "configure budget-exceeded: clear_after is 1ms: want 1s to 24h0m0s"},
		{c{MetastableLoop: detectors.MetastableLoopConfig{Goodput: 1}}, "configure metastable-loop: goodput is 1: want 0.1 to 0.99"},
		{c{MetastableLoop: detectors.MetastableLoopConfig{Amplification: 1}}, "configure metastable-loop: amplification is 1: want 1.1 to 100"},
		{c{MetastableLoop: detectors.MetastableLoopConfig{HitRatio: nan}}, "configure metastable-loop: hit_ratio is NaN: want 0.1 to 0.95"},
		{c{MetastableLoop: detectors.MetastableLoopConfig{FillSuccess: -1}}, "configure metastable-loop: fill_success is -1: want 0.01 to 0.9"},
		{c{MetastableLoop: detectors.MetastableLoopConfig{Hold: second}}, "configure metastable-loop: hold is 1s: want 10s to 10m0s"},
		{c{MetastableLoop: detectors.MetastableLoopConfig{ClearAfter: ms}}, "configure metastable-loop: clear_after is 1ms: want 1s to 24h0m0s"},
		{c{Overload: detectors.OverloadConfig{Use: 11}}, "configure overload: use is 11: want 0.1 to 10"},
		{c{Overload: detectors.OverloadConfig{Goodput: nan}}, "configure overload: goodput is NaN: want 0.1 to 0.99"},
		{c{Overload: detectors.OverloadConfig{TicketAfter: ms}}, "configure overload: ticket_after is 1ms: want 1s to 1h0m0s"},
		{c{Overload: detectors.OverloadConfig{PageAfter: ms}}, "configure overload: page_after is 1ms: want 1s to 1h0m0s"},
		{c{Overload: detectors.OverloadConfig{ClearAfter: ms}}, "configure overload: clear_after is 1ms: want 1s to 24h0m0s"},
		{c{RetryStorm: detectors.RetryStormConfig{Amplification: 1}}, "configure retry-storm: amplification is 1: want 1.1 to 100"},
		{c{RetryStorm: detectors.RetryStormConfig{Goodput: 1}}, "configure retry-storm: goodput is 1: want 0.1 to 0.99"},
		{c{RetryStorm: detectors.RetryStormConfig{MinRequests: -1}}, "configure retry-storm: min_requests is -1: want 1 to 1000000"},
		{c{RetryStorm: detectors.RetryStormConfig{PageAfter: time.Hour}}, "configure retry-storm: page_after is 1h0m0s: want 1s to 10m0s"},
		{c{RetryStorm: detectors.RetryStormConfig{TicketAfter: ms}}, "configure retry-storm: ticket_after is 1ms: want 1s to 1h0m0s"},
		{c{RetryStorm: detectors.RetryStormConfig{ClearAfter: ms}}, "configure retry-storm: clear_after is 1ms: want 1s to 24h0m0s"},
		{c{Vulnerable: detectors.VulnerableConfig{Demand: 0.01}}, "configure vulnerable: demand is 0.01: want 0.1 to 100"},
		{c{Vulnerable: detectors.VulnerableConfig{Hold: second}}, "configure vulnerable: hold is 1s: want 1m0s to 24h0m0s"},
	}
	for _, tc := range tests {
		t.Run(tc.want, func(t *testing.T) {
			if _, err := detectors.All(tc.c); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func BenchmarkOriginDetectors(b *testing.B) {
	for _, d := range originDetectors(b) {
		b.Run(d.Doc().ID+", 100 origins", func(b *testing.B) {
			var cs []signal.CacheState
			for n := range 100 {
				cs = append(cs, usually(func(x *traffic) {
					x.change = func(c *signal.CacheState) { c.Cache, c.Origin.Name = fmt.Sprint("c", n), fmt.Sprint("db", n) }
				}).state())
			}
			b.ReportAllocs()
			at := time.Duration(0)
			for b.Loop() {
				at += second
				d.Observe(&signal.Tick{At: after(at), Caches: cs})
			}
		})
	}
}
