package instrument

import (
	"context"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Follow counts a caller that waits for somebody else's recompute of key: a
// follower of single-flight, not its leader. It claims the follower's own miss,
// if a client hook saw one. Call Done when the wait is over.
func (m *Monitor) Follow(key string) Wait {
	if m == nil {
		return Wait{}
	}
	now := m.now()
	e := m.lockEntry(key)
	defer e.mu.Unlock()
	e.open(now).Coalesced++
	e.habit.coalesces = true
	kind := waitClaim
	if p, ok := e.claim(context.Background()); ok {
		kind = waitValue
		if p.run.m != nil {
			e.finishRun(p.run, now, p.cause, signal.OutcomeUnknown)
		}
	}
	return Wait{m: m, e: e, at: now, kind: kind}
}

// EarlyRefresh counts a reader who found a value and volunteered to recompute it
// lead before its expiry, because delta, the time the last recompute took, said
// so (XFetch), or because it was due (refresh-ahead; delta zero). The recompute
// itself is a [Monitor.Begin] with CauseEarly.
func (m *Monitor) EarlyRefresh(key string, lead, delta time.Duration) {
	if m == nil {
		return
	}
	now := m.now()
	lead, delta = max(0, lead), max(0, delta)
	e := m.lockEntry(key)
	w := e.open(now)
	w.Early.Count++
	w.Early.LeadSum += lead
	w.Early.LeadMax = max(w.Early.LeadMax, lead)
	w.Early.DeltaMax = max(w.Early.DeltaMax, delta)
	group := e.groupName()
	e.mu.Unlock()
	for _, ob := range m.observing() {
		ob.EarlyLead(group, lead)
	}
}

// LockAttempt counts one attempt to take the lock that guards key.
func (m *Monitor) LockAttempt(key string, acquired bool) {
	m.count(key, func(w *signal.Window) {
		w.Locks.Attempts++
		if acquired {
			w.Locks.Acquired++
		}
	})
}

// LockWait notes a caller that waits for the lock that guards key, until Done.
func (m *Monitor) LockWait(key string) Wait {
	if m == nil {
		return Wait{}
	}
	now := m.now()
	e := m.lockEntry(key)
	defer e.mu.Unlock()
	w := e.open(now)
	if !e.isRest() {
		e.waiting++
		w.Locks.WaitPeak = max(w.Locks.WaitPeak, e.waiting)
	}
	return Wait{m: m, e: e, at: now, kind: waitLock}
}

// endLockLocked ends a wait for a lock. w.e.mu is held.
func (w Wait) endLockLocked() {
	now := w.m.now()
	d := max(0, time.Duration(now-w.at))
	l := &w.e.open(now).Locks
	l.Waits++
	l.WaitSum += d
	l.WaitMax = max(l.WaitMax, d)
	if w.e.waiting > 0 {
		w.e.waiting--
	}
	group := w.e.groupName()
	for _, ob := range w.m.observing() {
		ob.LockWait(group, d)
	}
}

// Hold is a lock that is held. The zero Hold does nothing.
type Hold struct {
	m  *Monitor
	e  *entry
	at int64
}

// LockHold notes that the caller holds the lock that guards key, until Release.
func (m *Monitor) LockHold(key string) Hold {
	if m == nil {
		return Hold{}
	}
	now := m.now()
	e := m.lockEntry(key)
	defer e.mu.Unlock()
	e.open(now)
	if !e.isRest() {
		if e.holding == 0 {
			e.heldAt = now
		}
		e.holding++
	}
	return Hold{m: m, e: e, at: now}
}

// Release ends the hold. lost says that the lock had expired, or was somebody
// else's, by then. Call it once.
func (h Hold) Release(lost bool) {
	if h.m == nil {
		return
	}
	now := h.m.now()
	d := max(0, time.Duration(now-h.at))
	h.e.mu.Lock()
	l := &h.e.open(now).Locks
	l.Holds++
	l.HoldSum += d
	l.HoldMax = max(l.HoldMax, d)
	if lost {
		l.Lost++
	}
	if h.e.holding > 0 {
		h.e.holding--
	}
	group := h.e.groupName()
	h.e.mu.Unlock()
	for _, ob := range h.m.observing() {
		ob.LockHold(group, d)
	}
}
