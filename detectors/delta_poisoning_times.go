package detectors

import (
	"math"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// maxDeltas is how many recomputes of a key are remembered: one and nine
	// others, of which five move the median.
	maxDeltas = 10
	minOthers = 5
)

// deltas remembers how long the latest recomputes of a key took, those that
// made a value.
type deltas struct {
	ids   [maxDeltas]uint64
	times [maxDeltas]time.Duration
	n     int
}

// add takes in the recomputes of w that ended and were not seen before, in order
// of their start, and returns their times.
func (d *deltas) add(w *signal.Window) []time.Duration {
	var fresh []time.Duration
	for _, iv := range w.Intervals {
		if iv.Outcome != signal.OutcomeOK || iv.Running() || iv.Cause == signal.CauseNegative || slices.Contains(d.ids[:min(d.n, maxDeltas)], iv.ID) {
			continue
		}
		took := max(0, iv.End.Sub(iv.Start))
		d.ids[d.n%maxDeltas], d.times[d.n%maxDeltas] = iv.ID, took
		d.n++
		fresh = append(fresh, took)
	}
	return fresh
}

// usual returns the median of the recomputes other than the one that took about
// delta, and how many they are.
func (d *deltas) usual(delta time.Duration) (median time.Duration, of int) {
	others := slices.Clone(d.times[:min(d.n, maxDeltas)])
	self, off := -1, delta/10 // a stored time is rounded, or includes the write
	for i, t := range others {
		if miss := (t - delta).Abs(); miss <= off {
			self, off = i, miss
		}
	}
	if self >= 0 {
		others = slices.Delete(others, self, self+1)
	}
	if len(others) == 0 {
		return 0, 0
	}
	slices.Sort(others)
	return others[len(others)/2], len(others)
}

const (
	strainNow  = 10 * time.Second
	strainSpan = time.Minute
	// strainRefreshes is how many early refreshes in strainNow can be said to
	// be more than before.
	strainRefreshes = 10
)

// strain is how hard an origin works, and how much of that is refreshing early.
type strain struct {
	budget int
	ticks  rolling[strainTick]
}

type strainTick struct {
	busy  time.Duration
	early uint64
}

// learnOrigins takes in what caches of each origin did since the last tick.
func (d *deltaPoisoning) learnOrigins(t *signal.Tick) {
	took := d.pulse.beat(t.At)
	known := map[originName]bool{}
	for _, s := range spendings(t) {
		known[s.name] = true
		o := d.origins[s.name]
		if o == nil {
			o = &strain{ticks: rolling[strainTick]{span: strainSpan}}
			d.origins[s.name] = o
		}
		work := s.work()
		o.budget = s.budget
		o.ticks.add(t.At, took, strainTick{max(0, work.Busy), work.Recomputes.Started[signal.CauseEarly]})
	}
	for name := range d.origins {
		if !known[name] {
			delete(d.origins, name)
		}
	}
}

// now returns which part of the origin's budget was busy of late, and how many
// times as often as before values were refreshed early. Either is 0 if it is not
// known.
func (o *strain) now(at signal.Nanos) (use, rise float64) {
	late, lateTook := o.ticks.since(at.Add(-strainNow))
	all, allTook := o.ticks.since(at.Add(-strainSpan))
	var busy time.Duration
	var early, before float64
	for _, s := range late {
		busy += s.v.busy
		early += float64(s.v.early)
	}
	for _, s := range all[:len(all)-len(late)] {
		before += float64(s.v.early)
	}
	if lateTook < strainNow/2 || o.budget == 0 {
		return 0, 0
	}
	use = busy.Seconds() / lateTook.Seconds() / float64(o.budget)
	if beforeTook := allTook - lateTook; beforeTook >= strainNow && early >= strainRefreshes {
		// One more than there was: that none was before is no proof of a rise
		// without end.
		rise = early / lateTook.Seconds() / (max(1, before) / beforeTook.Seconds())
	}
	return min(use, math.MaxInt32), rise
}
