package detectors

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// vigilGap is how long nobody may wait before a wait is over: what comes after
// is another lock.
const vigilGap = 3 * time.Second

// vigil is a stretch of time in which readers waited for one key's lock.
type vigil struct {
	taken  signal.Nanos // when the lock was taken that they wait for, at the latest
	waited signal.Nanos // the last tick with waiters
	idle   int          // ticks in a row with waiters and without a sign of work
	known  bool         // somebody reported to have taken the lock, or to recompute
}

// look takes in what happened since the last regular tick.
func (v *vigil) look(at signal.Nanos, w *signal.Window) {
	l := &w.Locks
	if v.taken == 0 {
		v.taken = min(at, w.Start)
		v.waited = at
	}
	if waits(w) {
		v.waited = at
	}
	v.known = v.known || l.Held > 0 || works(w)
	if works(w) {
		v.idle = 0
	} else if waitsNow(w) {
		v.idle++
	}
	switch {
	case l.HeldSince != 0 && l.Held > 0:
		v.taken = min(at, l.HeldSince)
	case l.Holds > 0 || recomputed(w):
		// It changed hands, some time since the last tick.
		v.taken = min(at, max(v.taken, w.Start))
	}
}

// works reports whether w shows that somebody does what the lock is held for.
// Recomputes that were inferred are seen only once they are over, and readers
// that wait may be taken for some; then a hold must do.
func works(w *signal.Window) bool {
	l := &w.Locks
	if l.Holds > 0 || l.Acquired > 0 {
		return true
	}
	if w.Unknown.Has(signal.UnknownStarts) || w.Unknown.Has(signal.UnknownRecomputes) {
		return l.Held > 0
	}
	return recomputes(w)
}

// recomputes reports whether a recompute runs in w, began or ended.
func recomputes(w *signal.Window) bool {
	for _, iv := range w.Intervals {
		if iv.Running() {
			return true
		}
	}
	return w.Recomputes.Starts() > 0 || recomputed(w)
}

// recomputed reports whether a recompute ended in w.
func recomputed(w *signal.Window) bool {
	for o := range signal.NumOutcomes {
		if w.Recomputes.Ends(o) > 0 {
			return true
		}
	}
	return false
}

func (v *vigil) evidence(age, limit time.Duration, why string, readers int, w *signal.Window, c *signal.CacheState) []Evidence {
	var l evidenceList
	l.add("lock.age", seconds(age), "s", "since it was taken, or readers began to wait")
	l.add("recompute.longest", seconds(limit), "s", why)
	l.addPositive("readers", float64(readers), "{reader}", "waiting, if every process had its worst moment at once")
	l.addPositive("lock.ttl", seconds(c.Claims.LockTTL), "s", "as declared: then it frees itself")
	l.add("idle", float64(v.idle), "s", "without a sign of work")
	l.addPositive("attempts", float64(w.Locks.Attempts), "{attempt}", "to take it, since the last tick")
	l.addPositive("silent", float64(c.Silent), "{instance}", "stopped reporting without goodbye")
	return l
}

// holders is what is learnt of who holds the locks of a cache: of how many waits
// that ended somebody was seen to be the holder.
type holders struct{ seen, unseen int }

// maxHolders bounds what is remembered, so that what changes is noticed.
const maxHolders = 1000

func (h *holders) learn(seen bool) {
	if seen {
		h.seen++
	} else {
		h.unseen++
	}
	if h.seen+h.unseen > maxHolders {
		h.seen, h.unseen = h.seen/2, h.unseen/2
	}
}

// doubtful reports whether a holder may well be one that does not report.
func (h *holders) doubtful() bool { return h != nil && 10*h.unseen > h.seen && h.unseen > 0 }

// unheard reports whether nothing is known of holders yet.
func (h *holders) unheard() bool { return h == nil || h.seen+h.unseen == 0 }
