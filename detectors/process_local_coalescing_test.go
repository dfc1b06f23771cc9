package detectors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newProcessLocal() (detectors.Detector, error) {
	return detectors.NewProcessLocalCoalescing(detectors.ProcessLocalCoalescingConfig{})
}

// eachOne is an episode in which n instances recompute, one each, of a service
// that claims single-flight.
func eachOne(n int, change ...episodeOption) ticks {
	return alone(second, n, append([]episodeOption{coalesced}, change...)...)
}

// says is the claim.
var says = claims(signal.Claims{Protection: []string{signal.ProtectSingleFlight}})

// alone is an episode that ended a second before at.
func alone(at time.Duration, n int, change ...episodeOption) ticks {
	return in(ticks{tick(at, burst(at-second, n, change...))}, says)
}

func TestProcessLocalCoalescing(t *testing.T) {
	of := func(n int) cacheOption { return func(c *signal.CacheState) { c.Origin.Budget = n } }
	tellAll(t, newProcessLocal, []story{
		{"nothing happens, and it is quiet", idle(0, 5*second), nil},
		{"four instances are quiet", eachOne(4), nil},
		{"five are information, far below the budget", in(eachOne(5), says, of(11)), []string{"1s info"}},
		{"half the budget is a ticket", in(eachOne(5), says, of(10)), []string{"1s ticket"}},
		{"one short of the budget too", in(eachOne(9), says, of(10)), []string{"1s ticket"}},
		{"all of it pages", in(eachOne(10), says, of(10)), []string{"1s page/2"}},
		{"twice is of priority 1", in(eachOne(20), says, of(10)), []string{"1s page/1"}},
		{"without a budget it is information", in(eachOne(100), says, noBudget), []string{"1s info"}},
		{"a negative budget is none", in(eachOne(100), says, of(-1)), []string{"1s info"}},
		{"a process that runs two is another trouble", ticks{tick(second, burst(0, 20))}, nil},
		{"a process that does not say what it ran at once is too", eachOne(20, func(e *episode) {
			for i := range e.Window.Shares {
				e.Window.Shares[i].InFlightPeak = 0
			}
			e.Window.InFlightPeak = 0
		}), nil},
		{"twenty that did not meet are quiet", eachOne(20, func(e *episode) { e.PeakLow = 3 }), nil},
		{"a fleet that starts cold is a ticket at most", in(eachOne(20, cold), says, of(10), uptime(30*second)), []string{"1s ticket"}},
		{"an older one is not cold", in(eachOne(20, cold), says, of(10), uptime(62*second)), []string{"1s page/1"}},
		{"it is found at an urgent tick", ticks{urgent(eachOne(8, live)[0])}, []string{"1s page/2"}},
		{"and grows", ticks{urgent(eachOne(5, live)[0]), urgent(eachOne(8, live)[0]), urgent(eachOne(16, live)[0])}, []string{"1s ticket", "1s page/2", "1s page/1"}},
		{"a page stays one", slices.Concat(eachOne(8), alone(minute, 5, coalesced)), []string{"1s page/2"}},
		{"it clears after ten minutes", slices.Concat(eachOne(8), idle(2*second, 20*minute)), []string{"1s page/2", "10m1s cleared"}},
		{"half as many keep it open", slices.Concat(eachOne(8), alone(5*minute, 3, coalesced), idle(6*minute, 20*minute)), []string{"1s page/2", "15m0s cleared"}},
		{"fewer do not", slices.Concat(eachOne(8), alone(5*minute, 2, coalesced), idle(6*minute, 20*minute)), []string{"1s page/2", "10m1s cleared"}},
		{"what is long over raises nothing", ticks{tick(minute, burst(0, 20, coalesced))}, nil},
	})
}

func TestProcessLocalCoalescingSpeaksWhereReadersCoalesce(t *testing.T) {
	// met are readers who wait in the process of another.
	met := func(e *episode) {
		e.Window.MissPeak = 2
		for i := range e.Window.Shares {
			e.Window.Shares[i].MissPeak = 2
		}
	}
	spared := func(e *episode) { e.Window.Coalesced = 1 }
	fleet := func(ts ...ticks) ticks { return in(slices.Concat(ts...), fleetOf(20)) }
	each := func(at time.Duration, n int, change ...episodeOption) ticks {
		return ticks{tick(at, burst(at-second, n, append([]episodeOption{coalesced, func(e *episode) { e.Window.MissPeak = 1 }}, change...)...))}
	}
	two := ticks{tick(minute, burst(minute-second, 8))}
	tellAll(t, newProcessLocal, []story{
		{"8 of 20 may be chance where nobody says so", fleet(each(second, 8, met)), nil},
		{"not if one was seen to wait for another's recompute", fleet(each(second, 8, met, spared)), []string{"1s page/2"}},
		{"20 of 20 are no chance", fleet(each(second, 20, met)), []string{"1s page/1"}},
		{"unless no two readers met in any of them", fleet(each(second, 20)), nil},
		{"nor are 8 five times", fleet(each(second, 8, met), each(minute, 8, met), each(2*minute, 8, met), each(3*minute, 8, met), each(4*minute, 8, met)), []string{"4m0s page/2"}},
		{"but if two ran at once in one they are", fleet(each(second, 8, met), two, each(2*minute, 8, met), each(3*minute, 8, met), each(4*minute, 8, met)), nil},
	})
}

func TestProcessLocalCoalescingSaysWhatItKnows(t *testing.T) {
	f := lastOf(t, made(t)(newProcessLocal()), eachOne(20, func(e *episode) { e.Window.Coalesced = 101 }))
	want := detectors.Finding{
		Detector: "process-local-coalescing", Service: "shop", Cache: "feed", Key: signal.Key{ID: 1, Group: "feed:*"}, Origin: "db",
		Severity: detectors.Page, Priority: 1, Onset: after(10 * ms), Detected: after(second), Advice: f.Advice,
		Summary: "feed:* in cache feed: 20 instances recomputed one key at once, one each. The origin can run 8.",
		Evidence: []detectors.Evidence{
			{Name: "peak", Value: 20, Unit: "{recompute}", Note: "at one instant in the fleet"},
			{Name: "budget", Value: 8, Unit: "{recompute}", Note: "as declared"},
			{Name: "instances", Value: 20, Unit: "{instance}", Note: "that recomputed it, never two at a time"},
			{Name: "spared", Value: 101, Unit: "{reader}", Note: "waited for a recompute in their own process"},
			{Name: "duplicates", Value: 19, Unit: "{recompute}", Note: "served nobody but their own process"},
			{Name: "recompute.mean", Value: 0.4, Unit: "s", Note: "of those that ended"},
			{Name: "ttl", Value: 60, Unit: "s", Note: "the shortest lately"},
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("finding (-want +got):\n%s", diff)
	}
}

func TestProcessLocalCoalescingSaysWhatItCannotJudge(t *testing.T) {
	d := made(t)(newProcessLocal())
	d.Observe(in(idle(0, 0), noBudget)[0])
	want := []string{"feed: What its origin can run at once is not declared: instances that recompute side by side are information only."}
	if diff := cmp.Diff(want, unsure(d)); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}
