package detectors

import (
	"math"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// maxDeltas is how many recomputes of a key are remembered: one and nine
	// others.
	maxDeltas = 10
	minOthers = 5
	// medianChance is how probable it may be that the median is above its bound.
	medianChance = 0.05
)

// deltas remembers how long the latest recomputes of a key took, those that
// made a value.
type deltas struct {
	all [maxDeltas]timed
	n   int
}

// timed is one recompute, or several that ran at once: they met the same origin
// and are no more proof of what is usual than one of them.
type timed struct {
	from, to signal.Nanos
	took     time.Duration // the longest
}

// add takes in the recomputes of w that ended, in order of their start, and
// returns the times of those that are news.
func (d *deltas) add(w *signal.Window) []time.Duration {
	var fresh []time.Duration
	for _, iv := range w.Intervals {
		if iv.Outcome != signal.OutcomeOK || iv.Running() || iv.Cause == signal.CauseNegative {
			continue
		}
		took := max(0, iv.End.Sub(iv.Start))
		if d.note(timed{iv.Start, max(iv.Start, iv.End), took}) {
			fresh = append(fresh, took)
		}
	}
	return fresh
}

// note remembers x, and reports whether it is none of those remembered, nor
// shorter than one it ran beside.
func (d *deltas) note(x timed) (news bool) {
	for i := range d.all[:min(d.n, maxDeltas)] {
		y := &d.all[i]
		if x.from > y.to || y.from > x.to {
			continue
		}
		news = x.took > y.took
		*y = timed{min(x.from, y.from), max(x.to, y.to), max(x.took, y.took)}
		return news
	}
	d.all[d.n%maxDeltas] = x
	d.n++
	return true
}

// usual returns the median of the recomputes other than the one that took about
// delta, what it is at most, and how many they are. None counts for more than
// clamp, unless that is zero.
func (d *deltas) usual(delta, clamp time.Duration) (median, most time.Duration, of int) {
	self, off := -1, delta/10 // a stored time is rounded, or includes the write
	others := make([]time.Duration, 0, maxDeltas)
	for _, x := range d.all[:min(d.n, maxDeltas)] {
		took := clamped(x.took, clamp)
		if miss := (took - delta).Abs(); miss <= off {
			self, off = len(others), miss
		}
		others = append(others, took)
	}
	if self >= 0 {
		others = slices.Delete(others, self, self+1)
	}
	if len(others) == 0 {
		return 0, 0, 0
	}
	slices.Sort(others)
	return others[len(others)/2], others[aboveMedian(len(others))], len(others)
}

// clamped returns what of a recompute time XFetch acts on; a clamp of zero is none.
func clamped(took, clamp time.Duration) time.Duration {
	if clamp > 0 {
		return min(took, clamp)
	}
	return took
}

// aboveMedian returns which of n values in order the median of what they were
// drawn from is hardly above, whatever its law: each of them is below it with a
// chance of one half.
func aboveMedian(n int) int {
	i := n - 1
	for i > n/2 && binomialTail(n, i, 0.5) <= medianChance {
		i--
	}
	return i
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
