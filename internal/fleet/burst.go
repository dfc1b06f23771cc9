package fleet

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// burst is an episode that grows.
type burst struct {
	started signal.Nanos // names it; does not move any more once it was shown
	named   bool
	span    span
	known   bool         // a source knew of a value that was there before
	heard   signal.Nanos // when the latest window arrived
	overdue bool         // it was over for long when the first window came
	final   bool
	due     signal.Nanos // when the value before it was to expire

	generation string // of the value that is replaced, if a source said

	merged  *signal.Window   // what has been merged so far; nil at first
	pending []*signal.Window // what has not
	offset  time.Duration    // largest clock correction, either way

	weight     uint64         // provoked recomputes added
	shown      uint64         // weight at the last look
	seen       signal.Episode // at the last look
	duplicates uint64         // counted in the totals
}

// span is a stretch of time.
type span struct{ from, to signal.Nanos }

func (s span) with(o span) span       { return span{min(s.from, o.from), max(s.to, o.to)} }
func (s span) length() time.Duration  { return s.to.Sub(s.from) }
func (s span) near(o span) bool       { return s.from <= o.to.Add(slack) && o.from <= s.to.Add(slack) }
func (s span) at(t signal.Nanos) span { return span{min(s.from, t), max(s.to, t)} }

// activity returns when readers waited or recomputes ran in w, as closely as it
// can be told, and false if none did.
func activity(w *signal.Window) (span, bool) {
	whole := span{w.Start, w.End}
	if w.Recomputes.Provoked() == 0 && w.InFlightPeak == 0 && w.MissPeak == 0 {
		return whole, false
	}
	var sp span
	for _, iv := range w.Intervals {
		if !iv.Cause.Provoked() {
			continue
		}
		if sp.to == 0 {
			sp = span{iv.Start, iv.Start}
		}
		if sp = sp.at(iv.Start); iv.Running() {
			sp = sp.at(w.End)
		} else {
			sp = sp.at(iv.End)
		}
	}
	if sp.to == 0 || w.Sampled {
		return whole, true
	}
	return sp, true
}

// takes reports whether activity in sp belongs to b.
func (b *burst) takes(w *signal.Window, sp span) bool {
	if b.generation != "" && w.Generation != "" {
		return b.generation == w.Generation
	}
	return b.span.near(sp) && b.span.with(sp).length() <= maxEpisode
}

// add takes a window in and reports whether b has become so much heavier that
// it should be looked at at once: a quarter each time, so that a burst of any
// size asks for a handful of looks.
func (b *burst) add(now signal.Nanos, w *signal.Window, offset time.Duration) (urgent bool) {
	b.heard = now
	if b.final {
		return false
	}
	b.generation = max(b.generation, w.Generation)
	b.offset = max(b.offset, offset.Abs())
	b.pending = append(b.pending, w)
	b.weight += w.Recomputes.Provoked()
	trouble := w.InFlightPeak >= 2 || w.Duplicates > 0
	return trouble && 4*b.weight >= 5*b.shown
}

// join adds all of o to b.
func (b *burst) join(o *burst) {
	b.span = b.span.with(o.span)
	if o.named && (!b.named || o.started < b.started) {
		b.started, b.named = o.started, true
	}
	b.overdue = b.overdue && o.overdue
	b.known = b.known || o.known
	b.generation = max(b.generation, o.generation)
	b.heard = max(b.heard, o.heard)
	b.offset = max(b.offset, o.offset)
	b.weight += o.weight
	b.shown += o.shown
	b.duplicates += o.duplicates
	if o.merged != nil {
		b.pending = append(b.pending, o.merged)
	}
	b.pending = append(b.pending, o.pending...)
}

// window merges what is pending and returns all of it.
func (b *burst) window() *signal.Window {
	all := b.pending
	if b.merged != nil {
		all = append(all, b.merged)
	}
	b.merged, b.pending = mergeAll(all), nil
	return b.merged
}

// episode looks at b.
func (b *burst) episode(k *key, now signal.Nanos, t *totals) signal.Episode {
	if len(b.pending) == 0 && b.seen.Window != nil { // nothing is new but time
		b.seen.Final, b.seen.TTL = b.final, k.ttl
		t.look(now, b, &b.seen)
		return b.seen
	}
	w := b.window()
	if !b.named {
		b.started, b.named = b.span.from, true
		b.due = k.due(b.started)
	}
	o := signal.Sweep(w.Intervals, b.span.to)
	low, high := w.PeakBounds(b.span.to)
	e := signal.Episode{
		Started: b.started, Window: w,
		PeakLow: low, PeakHigh: high,
		Onset: o.Onset, Wasted: o.Wasted,
		Duplicates:  max(o.Duplicates(), w.Duplicates),
		KnownBefore: b.known || k.known != 0 && k.known < b.span.from, Due: b.due, TTL: k.ttl, Offset: b.offset, Final: b.final,
	}
	b.shown, b.seen = b.weight, e
	t.look(now, b, &e)
	return e
}

// finish forgets what b is made of: it is final, and has been shown. What is late
// for it is known by when it was.
func (b *burst) finish() { b.merged, b.pending, b.seen = nil, nil, signal.Episode{} }
