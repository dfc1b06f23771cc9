package instrument

import (
	"context"
	"reflect"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Hit counts a read that found a value. This is the hot path.
func (m *Monitor) Hit(key string) {
	if m == nil {
		return
	}
	hash := m.hash(key)
	if e := m.table.find(hash, key); e != nil {
		e.hit()
		return
	}
	m.hits.inc()
}

// Stale counts a read that was answered with an old value on purpose.
func (m *Monitor) Stale(key string) {
	m.count(key, func(w *signal.Window) { w.Lookups.Stale++ })
}

// LookupError counts a read that failed: neither a hit nor a miss.
func (m *Monitor) LookupError(key string) {
	m.count(key, func(w *signal.Window) { w.Lookups.Errors++ })
}

// count applies f to the key's open window.
func (m *Monitor) count(key string, f func(*signal.Window)) {
	if m == nil {
		return
	}
	now := m.now()
	e := m.lockEntry(key)
	f(e.open(now))
	e.mu.Unlock()
}

// Wait is a caller that waits: a reader for a value, a follower for somebody
// else's recompute, a caller for a lock. The zero Wait does nothing.
type Wait struct {
	m    *Monitor
	e    *entry
	at   int64
	kind waitKind
}

type waitKind uint8

const (
	waitValue waitKind = iota // counts as a reader
	waitClaim                 // followed without a miss of its own: nothing to undo
	waitLock
)

// Done ends the wait. Call it once, with or without success.
func (w Wait) Done() {
	if w.m == nil {
		return
	}
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	switch w.kind {
	case waitValue:
		w.e.leave()
	case waitLock:
		w.endLockLocked()
	}
}

// Miss counts a read that found nothing, and its reader, who waits until Done.
// Use it where no client hook reports the miss.
func (m *Monitor) Miss(key string) Wait {
	if m == nil {
		return Wait{}
	}
	now := m.now()
	e := m.lockEntry(key)
	defer e.mu.Unlock()
	w := e.open(now)
	w.Lookups.Misses++
	e.enter(w)
	return Wait{m: m, e: e, at: now, kind: waitValue}
}

// ObserveMiss counts a read that found nothing, for client hooks: the reader
// waits until a store of the key is observed ([Monitor.ObserveStore]), an
// explicit call claims the miss, or [Options.MissTimeout] passes. ctx serves to
// tell callers apart; it is remembered until then.
func (m *Monitor) ObserveMiss(ctx context.Context, key string) {
	if m == nil {
		return
	}
	now, urgent := m.now(), false
	e := m.lockEntry(key)
	w := e.open(now)
	w.Lookups.Misses++
	if e.isRest() || len(e.pending) >= maxPending {
		if !e.isRest() {
			m.overflowed.Add(1)
		}
		e.mu.Unlock()
		return
	}
	e.enter(w)
	p := pending{ctx: identity(ctx), at: now, cause: e.life.cause(now)}
	if e.habit.naive() {
		p.run = e.presume(m, w, p)
		urgent = int(e.running) >= m.opt.UrgentInFlight && e.hurry(now)
	}
	e.pending = append(e.pending, p)
	e.mu.Unlock()
	if urgent {
		m.hasten(e)
	}
}

// identity returns ctx if it can tell one caller from another: a pointer, which
// may be compared without fear of a panic.
func identity(ctx context.Context) context.Context {
	if ctx == nil || reflect.TypeOf(ctx).Kind() != reflect.Pointer {
		return nil
	}
	return ctx
}

// enter counts one more reader in w, the open window. e.mu is held.
func (e *entry) enter(w *signal.Window) {
	e.readers++
	w.MissPeak = max(w.MissPeak, e.readers)
}

// leave counts one reader less. e.mu is held.
func (e *entry) leave() {
	if e.readers > 0 {
		e.readers--
	}
}

// claimDepth bounds the search for a caller's own miss; beyond it, and for a
// caller that cannot be told from others, the oldest is taken. Whichever is
// taken, the sum of all durations is the same.
const claimDepth = 32

// claim takes the miss that ctx belongs to, or the oldest, off the list of those
// nobody has claimed. Its reader goes on waiting. e.mu is held.
func (e *entry) claim(ctx context.Context) (pending, bool) {
	if len(e.pending) == 0 {
		return pending{}, false
	}
	at := 0
	if ctx = identity(ctx); ctx != nil {
		for i := range e.pending[:min(len(e.pending), claimDepth)] {
			if e.pending[i].ctx == ctx {
				at = i
				break
			}
		}
	}
	p := e.pending[at]
	e.pending[at] = e.pending[0]
	e.pending[0] = pending{}
	if e.pending = e.pending[1:]; len(e.pending) == 0 {
		e.pending = nil
	}
	return p, true
}
