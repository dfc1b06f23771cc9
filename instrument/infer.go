package instrument

import (
	"context"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// ObserveStore counts a value written, for client hooks, and infers a recompute
// if the write follows a miss that nobody has claimed. A store under the context
// of an explicit run, or while one runs, is that run's.
func (m *Monitor) ObserveStore(ctx context.Context, key string, x Expiry) {
	if m == nil {
		return
	}
	now := m.now()
	e := m.lockEntry(key)
	w := e.open(now)
	before := e.life.storedAt
	urgent, took := false, time.Duration(-1)
	began, explicit := explicit(ctx, e)
	if !explicit && e.onlyPresumed() {
		if p, ok := e.claim(ctx); ok {
			began = p.at
			took = e.infer(m, w, p, now, before)
			urgent = e.inferredAtOnce(m.opt.UrgentInFlight, p.at) && e.hurry(now)
		}
	}
	ttl := e.stored(w, now, began, x)
	group := e.groupName()
	e.mu.Unlock()
	if urgent {
		m.hasten(e)
	}
	for _, ob := range m.observing() {
		if took >= 0 {
			ob.RecomputeDuration(group, took)
		}
		if ttl > 0 {
			ob.StoreTTL(group, ttl)
		}
	}
}

// explicit reports whether ctx is that of an explicit run of e, and when that
// began.
func explicit(ctx context.Context, e *entry) (began int64, ok bool) {
	if ctx == nil {
		return 0, false
	}
	r, ok := ctx.Value(runKey{}).(Run)
	if !ok || r.e != e {
		return 0, false
	}
	return r.start, true
}

// onlyPresumed reports whether every recompute that runs was inferred: an
// explicit one may be about to store. e.mu is held.
func (e *entry) onlyPresumed() bool {
	running := len(e.slots) - len(e.free)
	if running == 0 {
		return true
	}
	for i := range e.pending {
		if e.pending[i].run.m != nil {
			running--
		}
	}
	return running <= 0
}

// inferred is what cannot be known of a recompute that was inferred.
const inferred = signal.UnknownStarts | signal.UnknownCoalesced | signal.UnknownEarly | signal.UnknownRetries

// infer counts the recompute between the miss p and a store at now; before is
// when the key was last stored. It is a duplicate if somebody else's value was
// stored in between. e.mu is held.
func (e *entry) infer(m *Monitor, w *signal.Window, p pending, now, before int64) time.Duration {
	w.Unknown |= inferred
	e.habit.answered++
	e.leave()
	start := min(p.at, now)
	if p.run.m != nil {
		e.finishRun(p.run, now, p.cause, signal.OutcomeOK)
		return time.Duration(now - start)
	}
	w.Recomputes.Started[p.cause]++
	e.judge(w, before > p.at, false)
	iv := signal.Interval{ID: m.runIDs.Add(1), Start: signal.Nanos(start), End: signal.Nanos(now), Cause: p.cause, Outcome: signal.OutcomeOK}
	m.tally(e, w, iv)
	e.keep(w, iv)
	return time.Duration(now - start)
}

// inferredAtOnce reports whether n of the recomputes that ended in the open
// window overlap the latest, itself included. e.mu is held.
func (e *entry) inferredAtOnce(n int, start int64) bool {
	for i := len(e.closed) - 1; i >= 0 && n > 0; i-- {
		if e.closed[i].End > signal.Nanos(start) {
			n--
		}
	}
	return n <= 0
}

// presume starts the recompute that the miss p is taken to be. e.mu is held.
func (e *entry) presume(m *Monitor, w *signal.Window, p pending) Run {
	w.Unknown |= inferred
	return e.launch(m, w, p.at, p.cause, false)
}

// habit remembers what became of a key's misses, where nobody says. Readers
// who each store a value of their own do not wait for each other, and will not
// the next time either: from then on a miss is taken for the start of a
// recompute, so that the next dogpile is seen while it builds up, even if the
// origin is too slow for any of it to end.
type habit struct {
	answered   uint32 // by a store of their own
	unanswered uint32
	coalesces  bool // the application says who waits for whom
}

// A habit takes habitMin misses to form, nine in ten of which must have been
// answered; after habitMax the past counts half.
const (
	habitMin = 8
	habitMax = 64
)

// naive reports whether a miss is likely to become a recompute.
func (h *habit) naive() bool {
	if h.answered+h.unanswered > habitMax {
		h.answered /= 2
		h.unanswered /= 2
	}
	return !h.coalesces && h.answered >= habitMin && h.answered >= 9*h.unanswered
}
