package detectors_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newBypass() (detectors.Detector, error) {
	return detectors.NewCoalescingBypass(detectors.CoalescingBypassConfig{})
}

var flights = claims(signal.Claims{Protection: []string{signal.ProtectSingleFlight}})

// atOnce is an episode whose instances ran that many at once.
func atOnce(started time.Duration, peaks ...uint32) signal.Episode {
	return burst(started, 4, func(e *episode) {
		w := e.Window
		w.Shares, w.InFlightPeak = nil, 0
		w.Recomputes = signal.Recomputes{}
		for i, p := range peaks {
			w.Shares = append(w.Shares, signal.Share{Source: signal.Source{Service: "shop", Instance: fmt.Sprintf("%03d", i), Build: "v2"}, Recomputes: uint64(p), InFlightPeak: p})
			w.InFlightPeak = max(w.InFlightPeak, p)
			w.Recomputes.Started[signal.CauseExpired] += uint64(p)
		}
	})
}

func TestCoalescingBypassOfAClaim(t *testing.T) {
	// one is an episode a minute in which one process ran one too many.
	one := func(n int) (out ticks) {
		for i := range n {
			at := time.Duration(i) * minute
			out = append(out, tick(at+second, atOnce(at, 1, 2, 1)))
		}
		return in(out, flights)
	}
	givenUp := func(n uint64) ticks {
		e := atOnce(0, 3, 2)
		e.Window.Recomputes.Ended[signal.CauseExpired][signal.OutcomeCancelled] = n
		return in(ticks{tick(second, e)}, flights)
	}
	tellAll(t, newBypass, []story{
		{"nothing happens, and it is quiet", idle(0, 5*second, feed(flights)), nil},
		{"one a process is what is claimed", in(ticks{tick(second, atOnce(0, 1, 1, 1, 1))}, flights), nil},
		{"two too many page", in(ticks{tick(second, atOnce(0, 3))}, flights), []string{"1s feed/0 page/2"}},
		{"in two processes as well", in(ticks{tick(second, atOnce(0, 2, 2))}, flights), []string{"1s feed/0 page/2"}},
		{"without the claim it is quiet", in(ticks{tick(second, atOnce(0, 30, 30))}), nil},
		{"a claim holds for ten minutes", slices.Concat(in(idle(0, 0), flights), in(ticks{tick(10*minute, atOnce(10*minute-second, 3))})), []string{"10m0s feed/0 page/2"}},
		{"and no longer", slices.Concat(in(idle(0, 0), flights), in(ticks{tick(10*minute+second, atOnce(10*minute, 3))})), nil},
		{"what began before the claim is not held to it", in(ticks{tick(second, atOnce(-minute, 3, 3))}, func(c *signal.CacheState) {
			flights(c)
			c.UptimeMin = 30 * time.Second
		}), nil},
		{"one too many is quiet", one(2), nil},
		{"three times in ten minutes it is a ticket", one(3), []string{"2m1s feed/0 ticket"}},
		{"one episode shown three times is one", in(ticks{tick(second, atOnce(0, 2)), tick(2*second, atOnce(0, 2)), tick(3*second, atOnce(0, 2))}, flights), nil},
		{"those that were given up do not count", givenUp(3), nil},
		{"others do", givenUp(1), []string{"1s feed/0 page/2"}},
		{"that fills the origin is of priority 1", in(ticks{tick(second, func() signal.Episode {
			e := atOnce(0, 4, 4)
			e.PeakLow = 8
			return e
		}())}, flights), []string{"1s feed/0 page/1"}},
		{"it is found at an urgent tick", in(ticks{urgent(tick(second, atOnce(0, 3)))}, flights), []string{"1s feed/0 page/2"}},
		{"keys of one cache are one finding", in(ticks{tick(second, atOnce(0, 3), func() signal.Episode {
			e := atOnce(0, 3)
			e.Window.Key.ID = 2
			return e
		}())}, flights), []string{"1s feed/0 page/2"}},
		{"it clears after ten minutes", slices.Concat(in(ticks{tick(second, atOnce(0, 3))}, flights), idle(2*second, 20*minute, feed(flights))), []string{"1s feed/0 page/2", "10m1s feed/0 cleared"}},
		{"one too many keeps it open", slices.Concat(in(ticks{tick(second, atOnce(0, 3)), tick(5*minute, atOnce(5*minute-second, 2))}, flights), idle(6*minute, 20*minute, feed(flights))),
			[]string{"1s feed/0 page/2", "15m0s feed/0 cleared"}},
		{"what is long over raises nothing", in(ticks{tick(minute, atOnce(0, 30))}, flights), nil},
	})
}

func TestCoalescingBypassSaysWhatItKnows(t *testing.T) {
	e := atOnce(0, 4, 1, 3)
	e.Window.Recomputes.Ended[signal.CauseExpired][signal.OutcomeTimedOut] = 1
	f := lastOf(t, made(t)(newBypass()), in(ticks{tick(second, e)}, flights))
	want := detectors.Finding{
		Detector: "coalescing-bypass", Service: "shop", Cache: "feed", Origin: "db",
		Severity: detectors.Page, Priority: 2, Onset: after(10 * ms), Detected: after(second), Advice: f.Advice,
		Summary: "Cache feed: single-flight is claimed, and 2 instances recomputed one key of feed:* up to 4 times at once, all of build v2.",
		Evidence: []detectors.Evidence{
			{Name: "excess", Value: 4, Unit: "{recompute}", Note: "beyond one a process; pages at 2"},
			{Name: "process.peak", Value: 4, Unit: "{recompute}", Note: "of one key at one instant in one process"},
			{Name: "instances", Value: 2, Unit: "{instance}", Note: "that ran two or more, all of build v2"},
			{Name: "peak", Value: 4, Unit: "{recompute}", Note: "at one instant in the fleet"},
			{Name: "budget", Value: 8, Unit: "{recompute}", Note: "as declared"},
			{Name: "given_up", Value: 1, Unit: "{recompute}", Note: "timed out or cancelled; not counted as excess"},
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("finding (-want +got):\n%s", diff)
	}
}

// rollout is a build in a fleet: so many instances, which in each episode start
// and spare so many recomputes.
type rollout struct {
	build          string
	instances      int
	starts, spared uint64
}

// expiries is an episode a second in which the builds take part.
func expiries(from time.Duration, n int, builds ...rollout) (out ticks) {
	for i := range n {
		at := from + time.Duration(i)*second
		e := burst(at, 4, func(e *episode) {
			w := e.Window
			w.Shares = nil
			for _, b := range builds {
				for k := range b.instances {
					w.Shares = append(w.Shares, signal.Share{
						Source:     signal.Source{Service: "shop", Instance: fmt.Sprintf("%s-%02d", b.build, k), Build: b.build},
						Recomputes: b.starts, InFlightPeak: uint32(b.starts), Coalesced: b.spared,
					})
				}
			}
		})
		out = append(out, tick(at+second, e))
	}
	return out
}

func TestCoalescingBypassOfABuild(t *testing.T) {
	old := rollout{"v1", 8, 1, 5}
	before := func() ticks { return expiries(0, 10, old) }
	tellAll(t, newBypass, []story{
		{"a build alone is quiet", before(), nil},
		{"one that is as good is quiet", slices.Concat(before(), expiries(minute, 20, old, rollout{"v2", 4, 1, 5})), nil},
		{"one that spares nobody pages once it had 100 readers", slices.Concat(before(), expiries(minute, 20, old, rollout{"v2", 4, 6, 0})), []string{"1m5s feed/0 page/2"}},
		{"ninety-six are too few", slices.Concat(before(), expiries(minute, 4, old, rollout{"v2", 4, 6, 0})), nil},
		{"one instance is too few", slices.Concat(before(), expiries(minute, 60, old, rollout{"v2", 1, 6, 0})), nil},
		{"half as many spared are quiet", slices.Concat(before(), expiries(minute, 60, old, rollout{"v2", 4, 35, 25})), nil},
		{"a canary with little traffic starts one, and is quiet", slices.Concat(before(), expiries(minute, 60, old, rollout{"v2", 4, 1, 0})), nil},
		{"a build that never spared many cannot lose them", slices.Concat(expiries(0, 30, rollout{"v1", 8, 90, 10}), expiries(minute, 30, rollout{"v2", 4, 6, 0})), nil},
		{"builds without a name are not compared", slices.Concat(expiries(0, 10, rollout{"", 8, 1, 5}), expiries(minute, 30, rollout{"", 4, 6, 0})), nil},
		{"the old one may be gone", slices.Concat(before(), expiries(5*minute, 20, rollout{"v2", 4, 6, 0})), []string{"5m5s feed/0 page/2"}},
		{"rolled back, it clears", slices.Concat(before(), expiries(minute, 20, old, rollout{"v2", 4, 6, 0}), idle(90*second, 20*minute)), []string{"1m5s feed/0 page/2", "11m20s feed/0 cleared"}},
	})
}

func TestCoalescingBypassOfABuildSaysWhatItKnows(t *testing.T) {
	f := lastOf(t, made(t)(newBypass()), slices.Concat(expiries(0, 10, rollout{"v1", 8, 1, 4}), expiries(minute, 5, rollout{"v2", 4, 6, 0})))
	if want := "Cache feed: build v2 spares 0 % of readers a recompute, build v1 spared 80 %."; f.Summary != want {
		t.Errorf("summary %q, want %q", f.Summary, want)
	}
	want := []detectors.Evidence{
		{Name: "spared.after", Value: 0, Unit: "1", Note: "of readers that needed a value, by 4 instances of build v2"},
		{Name: "spared.before", Value: 0.8, Unit: "1", Note: "by 8 instances of build v1"},
		{Name: "chance", Value: f.Evidence[2].Value, Unit: "1", Note: "of such a difference between instances of one build; pages below 0.001"},
		{Name: "starts", Value: 6, Unit: "{recompute}", Note: "a process and episode; one that coalesces starts one"},
		{Name: "readers", Value: 120, Unit: "{reader}", Note: "of the new build, that needed a value"},
	}
	if diff := cmp.Diff(want, f.Evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	if f.Severity != detectors.Page || f.Onset != after(minute+second) {
		t.Errorf("severity %v, onset %v", f.Severity, f.Onset.Sub(epoch))
	}
}

// TestCoalescingBypassIsNotFooledByInstancesThatDiffer deploys a build that
// changes nothing, a thousand times, to a fleet whose instances have a mind of
// their own.
func TestCoalescingBypassIsNotFooledByInstancesThatDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	pages := 0
	for range 1000 {
		d, paged := made(t)(newBypass()), false
		// Each instance spares a share of its own, from next to none to nearly all.
		habit := map[string]float64{}
		for i := range 15 {
			ts := expiries(time.Duration(i)*2*second, 1, rollout{"v1", 6, 6, 6})
			if i >= 5 {
				ts = expiries(time.Duration(i)*2*second, 1, rollout{"v1", 6, 6, 6}, rollout{"v2", 4, 6, 6})
			}
			for k := range ts[0].Episodes[0].Window.Shares {
				s := &ts[0].Episodes[0].Window.Shares[k]
				if _, ok := habit[s.Instance]; !ok {
					habit[s.Instance] = rng.Float64()
				}
				s.Recomputes, s.Coalesced = 0, 0
				for range 12 {
					if rng.Float64() < habit[s.Instance] {
						s.Coalesced++
					} else {
						s.Recomputes++
					}
				}
			}
			for _, f := range d.Observe(ts[0]) {
				paged = paged || f.Severity == detectors.Page
			}
		}
		if paged {
			pages++
		}
	}
	if pages > 6 { // looks at 100, 200 and 400 readers, each wrong once in 1,000; twice that
		t.Errorf("%d of 1,000 deploys that change nothing page", pages)
	}
}

func TestCoalescingBypassIsBounded(t *testing.T) {
	d := made(t)(newBypass())
	for i := range 50 {
		d.Observe(expiries(time.Duration(i)*second, 1, rollout{fmt.Sprintf("v%02d", i), 3000, 1, 1})[0])
	}
	if n := detectors.BuildsOf(d, "feed"); n > 4*2000 {
		t.Errorf("%d instances are remembered, want at most 2,000 of 4 builds", n)
	}
}

func TestCoalescingBypassSaysWhatItCannotJudge(t *testing.T) {
	d := made(t)(newBypass())
	d.Observe(tick(0))
	if got := unsure(d); len(got) != 1 || !strings.Contains(got[0], "No application claims single-flight") {
		t.Errorf("limits %q", got)
	}
	d.Observe(in(idle(second, second), flights)[0])
	if got := unsure(d); got != nil {
		t.Errorf("limits %q of one that does", got)
	}
}
