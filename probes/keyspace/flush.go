package keyspace

import (
	"slices"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Counts are cumulative since the ledger was made.
type Counts struct {
	// Lookups holds misses only: hits are not seen.
	Lookups signal.Lookups
	Work    signal.Work
	Tracked uint64 // keys remembered, now
	// Overflowed counts events on keys there was no room for, and windows
	// there were too many of.
	Overflowed uint64
}

// Flush returns what was seen since the flush before, a window or more for each
// key on which something happened, and the counts. now must not be before the At
// of any event observed. The windows are the caller's.
func (l *Ledger) Flush(now signal.Nanos) ([]*signal.Window, Counts) {
	l.age(now)
	ws := l.done
	for _, k := range l.active {
		if k.w != nil {
			ws = append(ws, l.take(k, min(now, k.w.Start.Add(signal.MaxSpan))))
		}
	}
	l.done, l.active = nil, nil
	ws = l.fit(ws)
	l.counts.Tracked = uint64(len(l.keys))
	return ws, l.counts
}

// take closes a key's window at end.
func (l *Ledger) take(k *entry, end signal.Nanos) *signal.Window {
	w := k.w
	k.w = nil
	w.Source, w.Cache = l.o.Source, l.o.Cache
	w.Key = signal.Key{ID: k.id, Group: k.group, Text: k.text}
	w.End = max(w.End, end)
	k.tellLock(w)
	w.Sampled = w.Sampled || len(k.closed) > signal.MaxIntervals
	w.Intervals = signal.SampleIntervals(k.closed, signal.MaxIntervals)
	k.closed = nil
	l.counts.Lookups.Misses += w.Lookups.Misses
	return w
}

// fit leaves out, of too many windows, those of keys on which nothing happened
// twice.
func (l *Ledger) fit(ws []*signal.Window) []*signal.Window {
	left := l.o.MaxWindows
	return slices.DeleteFunc(ws, func(w *signal.Window) bool {
		if left--; left >= 0 || w.MissPeak > 1 || w.InFlightPeak > 1 || w.Duplicates > 0 || !w.Locks.IsZero() {
			return false
		}
		l.counts.Overflowed++
		return true
	})
}

// age gives up on misses that no store has answered in time. Those that somebody
// else's store answered are forgotten; so are those of readers who wait for a
// lock. Of all others it is said that there was nothing to be had.
func (l *Ledger) age(now signal.Nanos) {
	for k := range l.waiting {
		k.settle(now)
		n := 0
		for n < len(k.misses) && now.Sub(k.misses[n]) >= l.o.GiveUp {
			n++
		}
		if k.misses = k.misses[n:]; len(k.misses) == 0 {
			k.misses = nil
			delete(l.waiting, k)
		}
		if n > 0 && k.matched == 0 && !k.present && k.lock.heldAt == 0 {
			l.open(k, now).Recomputes.Ended[signal.CauseNegative][signal.OutcomeOK] += uint64(n)
			l.counts.Work.Recomputes.Ended[signal.CauseNegative][signal.OutcomeOK] += uint64(n)
		}
	}
}
