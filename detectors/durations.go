package detectors

import (
	"math"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// typicalHalf is how long recomputes are collected before the older half of
// what is remembered is let go: they are those of the last half hour to hour.
const typicalHalf = 30 * time.Minute

// typical remembers how long the recomputes of each cache took of late, those
// that ended well.
type typical struct{ by map[string]*typicalTimes }

type typicalTimes struct {
	recent, older signal.Durations
	turned        signal.Nanos
}

func newTypical() *typical { return &typical{by: map[string]*typicalTimes{}} }

// learn takes in a regular tick. Caches that are gone are forgotten: the tick
// has those that went silent for ten minutes more.
func (t *typical) learn(tick *signal.Tick, caches map[string]*signal.CacheState) {
	for cache := range t.by {
		if caches[cache] == nil {
			delete(t.by, cache)
		}
	}
	for i := range tick.Caches {
		c := &tick.Caches[i]
		d := t.by[c.Cache]
		if d == nil {
			d = &typicalTimes{turned: tick.At}
			t.by[c.Cache] = d
		}
		if tick.At.Sub(d.turned).Abs() >= typicalHalf {
			d.older, d.recent, d.turned = d.recent, signal.Durations{}, tick.At
		}
		d.recent.Add(&c.Work.Durations)
	}
}

// of returns what is known of a cache.
func (t *typical) of(cache string) signal.Durations {
	d := t.by[cache]
	if d == nil {
		return signal.Durations{}
	}
	h := d.older
	h.Add(&d.recent)
	return h
}

// durationOf returns a number of seconds, which is not negative, to the
// nanosecond; what is too long is as long as it can be.
func durationOf(seconds float64) time.Duration {
	return time.Duration(min(math.Round(seconds*float64(time.Second)), math.MaxInt64/2))
}
