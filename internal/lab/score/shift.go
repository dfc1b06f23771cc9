package score

import (
	"maps"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// Shift tells a scenario at another pace: every time in it is multiplied by Time,
// and every rate divided by it. Demand, utilisation and the number of keys that
// expire together stay what they were, so what is expected of the scenario stays
// true; but no time or rate is one that thresholds were chosen with.
type Shift struct {
	Name string  // in reports; empty for the scenario as it is
	Time float64 // above 0
}

// Shifts returns the scenario as it is, a fourth faster, and a fourth slower.
func Shifts() []Shift {
	return []Shift{{"", 1}, {"fast", 0.8}, {"slow", 1.25}}
}

// Apply returns sc at the pace of s; sc is not changed. Figures of the truth are
// left out: many are counts of one pace. Clock skew stays, being a property of
// hosts. Bounds on the time to detect grow with a slower pace, and do not shrink
// with a faster one: they are promises in seconds.
func (s Shift) Apply(sc *scenario.Scenario) *scenario.Scenario {
	out := *sc
	if s.Time == 1 {
		return &out
	}
	out.Truth = nil
	s.scale(&out.Duration)
	out.Caches = maps.Clone(sc.Caches)
	for name, c := range out.Caches {
		s.cache(&c)
		out.Caches[name] = c
	}
	out.Workloads = slices.Clone(sc.Workloads)
	for i := range out.Workloads {
		out.Workloads[i].Rate /= s.Time
	}
	out.Events = slices.Clone(sc.Events)
	for i := range out.Events {
		e := &out.Events[i]
		s.scale(&e.At, &e.For, &e.Over, &e.Down, &e.TTL)
	}
	out.Expect = slices.Clone(sc.Expect)
	for i := range out.Expect {
		x := &out.Expect[i]
		within := x.Within
		s.scale(&x.After, &x.Within)
		x.Within = max(x.Within, within)
	}
	return &out
}

// cache scales every time of c.
func (s Shift) cache(c *scenario.Cache) {
	s.scale(&c.TTL, &c.Jitter.Spread, &c.Sweep.Every, &c.Sweep.Phase, &c.StaleGrace,
		&c.Recompute.Fixed, &c.Recompute.P50, &c.Recompute.P99, &c.XFetch.Clamp,
		&c.Lock.TTL, &c.Lease.Every, &c.Client.Timeout, &c.Client.Backoff, &c.Client.CacheErrors, &c.Client.Hedge)
}

func (s Shift) scale(times ...*time.Duration) {
	for _, d := range times {
		*d = time.Duration(float64(*d) * s.Time)
	}
}
