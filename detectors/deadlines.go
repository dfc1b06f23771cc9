package detectors

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// dueFor is how long deadlines that have passed are remembered, and how
	// long readers have to find a value gone before it counts as one that
	// nobody reads.
	dueFor = time.Minute
	// yieldSamples is how many deadlines make a yield known; yieldKeep is
	// about how many of the latest count.
	yieldSamples = 100
	yieldKeep    = 10_000
)

// deadlines follows when the values of one cache expire.
type deadlines struct {
	coming []signal.ExpiryBin // as of the last regular tick, in order
	at     signal.Nanos       // of that tick
	due    []load             // passed within dueFor, in order
	passed float64            // deadlines that passed before that
	missed float64            // keys that were found expired
	told   bool               // somebody has reported deadlines
	sample signal.Sample      // what those that are coming were scaled up from
}

// load is what falls due in one second: so many keys, which take their origin
// so many seconds to serve.
type load struct {
	at         signal.Nanos
	keys, work float64
}

// look takes in the deadlines a regular tick knows of a cache, and the keys whose
// episodes became final at it and whose values had expired, or may have; seen
// says whether somebody would have told of them.
func (d *deadlines) look(at signal.Nanos, c *signal.CacheState, expired float64, seen bool) {
	bins := c.Expiries
	if at < d.at {
		*d = deadlines{passed: d.passed, missed: d.missed, told: d.told}
	}
	for _, b := range d.coming {
		// A bin counts once, as it was when all of it lay ahead for the
		// last time.
		if b.Width == time.Second && b.At > d.at && b.At <= at {
			d.due = append(d.due, load{at: b.At, keys: float64(b.Keys)})
		}
	}
	d.mature(at, seen)
	d.missed += expired
	for d.passed > yieldKeep {
		d.passed, d.missed = d.passed/2, d.missed/2
	}
	d.told = d.told || len(bins) > 0
	d.coming, d.sample = append(d.coming[:0], bins...), c.Sample
	slices.SortFunc(d.coming, func(a, b signal.ExpiryBin) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Width, b.Width), strings.Compare(a.Group, b.Group), cmp.Compare(a.Keys, b.Keys))
	})
	d.at = at
}

// mature takes deadlines into account once readers had their time, if their
// misses would have been seen.
func (d *deadlines) mature(at signal.Nanos, seen bool) {
	n := 0
	for n < len(d.due) && at.Sub(d.due[n].at) > dueFor {
		if seen {
			d.passed += d.due[n].keys
		}
		n++
	}
	d.due = append(d.due[:0], d.due[n:]...)
}

// yield returns how many recomputes a deadline has meant lately, at most one,
// and whether that has been learned. Less than one means that values expire
// that nobody reads, or that several processes report the deadline of one value.
func (d *deadlines) yield() (float64, bool) {
	if d.passed < yieldSamples {
		return 1, false
	}
	return min(1, d.missed/d.passed), true
}

// loads returns what is to fall due, second by second: the work of each key is
// cost seconds of its origin's time. What is only known to ten seconds is taken
// to be spread over them.
func (d *deadlines) loads(cost float64) []load {
	yield, _ := d.yield()
	out := make([]load, 0, len(d.coming))
	for _, b := range d.coming {
		if at := b.At.Add(b.Width); at <= d.at {
			continue // from a clock that is behind
		}
		parts := min(max(1, int(b.Width/time.Second)), maxParts)
		keys := float64(b.Keys) * yield / float64(parts)
		for i := range parts {
			out = append(out, load{b.At.Add(time.Duration(i) * time.Second), keys, keys * cost})
		}
	}
	return out
}

// fell returns what fell due within dueFor, in the same way.
func (d *deadlines) fell(cost float64) []load {
	yield, _ := d.yield()
	out := slices.Clone(d.due)
	for i := range out {
		out[i].keys *= yield
		out[i].work = out[i].keys * cost
	}
	return out
}

// maxParts bounds the seconds of one bin.
const maxParts = 60

// mergeLoads adds loads up by the second, in order. It keeps none of them.
func mergeLoads(all ...[]load) []load {
	ls := slices.Concat(all...)
	slices.SortFunc(ls, func(a, b load) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.work, b.work), cmp.Compare(a.keys, b.keys))
	})
	out := ls[:0]
	for _, l := range ls {
		l.at = second(l.at)
		if n := len(out); n > 0 && out[n-1].at == l.at {
			out[n-1].keys += l.keys
			out[n-1].work += l.work
			continue
		}
		out = append(out, l)
	}
	return out
}

// wave is a stretch of time in which more falls due than is served.
type wave struct {
	from, at signal.Nanos // its first second, and that after which most is left
	peak     float64      // seconds until what is left then is served
	keys     float64      // due from from to at
	loads    []load       // those
}

// highest returns the wave of the highest backlog if the origin spends the
// share rate of each second on what is due. That is Lindley's recursion: what a
// second leaves is added to what the next brings. There must be one load a
// second at most, in order; the wave borrows from them.
func highest(ls []load, rate float64) wave {
	var top, w wave
	left, first, keys := 0.0, 0, 0.0
	for i, l := range ls {
		if i > 0 {
			pause := l.at.Sub(ls[i-1].at).Seconds() - 1
			left = max(0, left-rate*max(0, pause))
		}
		if left == 0 {
			w, first, keys = wave{from: l.at}, i, 0
		}
		keys += l.keys
		left = max(0, left+l.work-rate)
		if left/rate > w.peak {
			w.at, w.peak, w.keys, w.loads = l.at, left/rate, keys, ls[first:i+1]
		}
		if w.peak > top.peak {
			top = w
		}
	}
	return top
}

// spread measures how far apart the deadlines in ls are: between the 1st and
// the 99th percentile, scaled up to all of them. It also returns the second in
// which most fall due.
func spread(ls []load) (width time.Duration, fullest load) {
	total := 0.0
	for _, l := range ls {
		total += l.keys
		if l.keys > fullest.keys {
			fullest = l
		}
	}
	if total == 0 {
		return 0, fullest
	}
	return time.Duration(float64(quantile(ls, 0.99*total)-quantile(ls, 0.01*total)) / 0.98), fullest
}

// quantile returns the instant by which so many of the keys in ls are due, those
// of a second being spread over it.
func quantile(ls []load, keys float64) signal.Nanos {
	for _, l := range ls {
		if l.keys > 0 && keys <= l.keys {
			return l.at.Add(time.Duration(keys / l.keys * float64(time.Second)))
		}
		keys -= l.keys
	}
	return ls[len(ls)-1].at.Add(time.Second)
}
