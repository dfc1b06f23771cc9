package instrument

import (
	"encoding/hex"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// maxUrgent bounds the list of keys waiting for an urgent flush; more than that
// wait for the regular one.
const maxUrgent = 1024

// Flush ends the open window of every active key, hands the windows and then
// the vitals to the sinks, and starts anew. The monitor does so by itself
// unless [Options.Interval] is negative.
func (m *Monitor) Flush() {
	if m != nil {
		m.flush(false)
	}
}

func (m *Monitor) flush(closing bool) {
	m.flushMu.Lock()
	defer m.flushMu.Unlock()
	now := m.now()
	m.table.epoch.Add(1)
	m.groups.begin(now)
	m.sent = 0
	m.total.Running, m.total.Waiting = 0, 0
	m.active.each(func(e *entry) { m.flushEntry(e, now, false) })
	m.flushEntry(m.rest, now, false)
	m.foldHits()
	m.groups.rebalance(now)
	m.emitVitals(now, closing)
}

// FlushUrgent ends the windows of those keys only that may be in trouble. It
// costs nothing if there are none.
func (m *Monitor) FlushUrgent() {
	if m == nil {
		return
	}
	m.urgentMu.Lock()
	list := m.urgent
	m.urgent = nil
	m.urgentMu.Unlock()
	if len(list) == 0 {
		return
	}
	m.flushMu.Lock()
	defer m.flushMu.Unlock()
	now := m.now()
	for _, e := range list {
		m.flushEntry(e, now, true)
	}
}

// hurry reports whether e should be flushed at once, which it is at most every
// urgentEvery. e.mu is held.
func (e *entry) hurry(now int64) bool {
	if e.isRest() || e.queued || (e.urgentAt != 0 && now-e.urgentAt < int64(urgentEvery)) {
		return false
	}
	e.urgentAt, e.queued = now, true
	return true
}

// hasten puts e on the list of urgent keys and wakes whoever flushes it.
func (m *Monitor) hasten(e *entry) {
	m.urgentMu.Lock()
	if len(m.urgent) < maxUrgent {
		m.urgent = append(m.urgent, e)
	}
	m.urgentMu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// flushEntry ends e's open window, if it has one, and passes it on. m.flushMu
// is held.
func (m *Monitor) flushEntry(e *entry, now int64, urgent bool) {
	e.mu.Lock()
	if e.dead {
		e.mu.Unlock()
		m.coming.move(e, 0)
		return
	}
	e.settle(now, int64(m.opt.MissTimeout))
	e.queued = false
	hits := e.takeHits()
	if hits > 0 && e.delta == nil {
		e.lastTake = now // it is in use: not the first to be forgotten
	}
	w := m.take(e, now)
	if e.group == m.groups.other && e.wanted != otherGroup {
		e.group = m.groups.resolve(e.wanted)
	}
	g, readers, running := e.group, e.readers, e.running
	if !urgent {
		m.total.Waiting += readers
		m.total.Running += running
		m.coming.move(e, e.life.due())
		if e.busy() && !e.isRest() {
			m.active.add(e)
		}
	}
	if w != nil {
		w.Lookups.Hits = hits
		w.Key.Group = g.totals.Group
	}
	e.mu.Unlock()

	m.total.Lookups.Hits += hits
	g.live(readers, running)
	if w == nil {
		g.totals.Lookups.Hits += hits
		return
	}
	m.sum(w)
	g.fold(w, now)
	m.groups.weigh(e.wanted, w.Lookups.Misses+w.Recomputes.Starts())
	switch {
	case e.isRest():
	case m.sent >= m.opt.MaxWindows && dull(w):
		m.overflowed.Add(1)
	default:
		m.sent++
		m.send(w, urgent)
	}
}

// dull reports whether nothing happened twice at once in w: what is left out
// first when there is too much to report.
func dull(w *signal.Window) bool {
	return w.MissPeak < 2 && w.InFlightPeak < 2 && w.Duplicates == 0 && w.Coalesced == 0 &&
		w.Early.IsZero() && w.Locks.IsZero()
}

// sum adds a window to what the vitals tell.
func (m *Monitor) sum(w *signal.Window) {
	t := &m.total
	t.Lookups.Misses += w.Lookups.Misses
	t.Lookups.Stale += w.Lookups.Stale
	t.Lookups.Errors += w.Lookups.Errors
	t.Work.Add(&signal.Work{
		Recomputes: w.Recomputes, Busy: w.Busy, Duplicates: w.Duplicates, WhileFresh: w.WhileFresh,
		Coalesced: w.Coalesced, Stores: w.Stores.Count, Early: w.Early.Count, Retries: w.Retries,
	})
}

func (m *Monitor) send(w *signal.Window, urgent bool) {
	for i, s := range m.sinks {
		if i == len(m.sinks)-1 {
			s.Window(w, urgent)
			return
		}
		c := *w
		c.Intervals = slices.Clone(w.Intervals)
		s.Window(&c, urgent)
	}
}

// take closes e's open window at now, or returns nil if there is nothing to
// tell. Recomputes that run, and readers who pile up, are something to tell even
// if nothing happened. e.mu is held.
func (m *Monitor) take(e *entry, now int64) *signal.Window {
	if e.delta == nil {
		if e.idleRuns() && e.readers < 2 && e.waiting == 0 && e.holding == 0 {
			return nil
		}
		e.open(e.lastTake)
	}
	w := e.delta
	e.delta = nil
	e.lastTake = now
	w.Source, w.Cache, w.End = m.source, m.cache, max(signal.Nanos(now), w.Start)
	if len(e.pending) > 0 {
		w.Unknown |= inferred
	}
	if e.isRest() {
		return w
	}
	w.Locks.Waiting, w.Locks.Held = e.waiting, e.holding
	if e.holding > 0 {
		w.Locks.HeldSince = signal.Nanos(e.heldAt)
	}
	w.Key = m.name(e)
	w.Intervals = e.intervals(w)
	if w.Unknown.Has(signal.UnknownStarts) {
		w.InFlightPeak = max(w.InFlightPeak, uint32(signal.Sweep(w.Intervals, w.End).Peak))
	}
	return w
}

// intervals returns the recomputes that ended in w and those that still run, or
// a sample of them, and hands them over. Those that were said to run before are
// always among them, or they would seem to run for ever; there are never more of
// them than fit. e.mu is held.
func (e *entry) intervals(w *signal.Window) []signal.Interval {
	must, rest := e.owed, e.closed
	e.owed, e.closed, e.cut = nil, nil, 0
	for _, s := range e.slots {
		iv := signal.Interval{ID: s.id, Start: signal.Nanos(s.start), Cause: s.cause}
		switch {
		case s.id == 0:
		case s.told:
			must = append(must, iv)
		default:
			rest = append(rest, iv)
		}
	}
	room := signal.MaxIntervals - len(must)
	w.Sampled = w.Sampled || len(rest) > room
	rest = signal.SampleIntervals(rest, room)
	for i := range e.slots {
		s := &e.slots[i]
		s.told = s.told || s.id != 0 && slices.ContainsFunc(rest, func(iv signal.Interval) bool { return iv.ID == s.id })
	}
	return signal.SampleIntervals(append(must, rest...), signal.MaxIntervals)
}

// name says of the key what may be said. e.mu is held.
func (m *Monitor) name(e *entry) signal.Key {
	k := signal.Key{ID: m.id(e)}
	switch m.opt.Privacy {
	case PrivacyHash:
		k.Text = hex.EncodeToString(e.sum)
	case PrivacyRaw:
		k.Text = e.key
	}
	return k
}

// settleAfter is how long after a store a miss that came before it may still
// turn out to be a recompute of its own; twice the latest recompute if that is
// longer.
const settleAfter = int64(time.Second)

// settle gives up on inferred misses that no store will answer: their reader
// went away, or was served by somebody else's store. e.mu is held.
func (e *entry) settle(now, timeout int64) {
	if len(e.pending) == 0 {
		return
	}
	grace := max(settleAfter, 2*int64(e.lastRun))
	served := e.life.storedAt
	kept := e.pending[:0]
	for _, p := range e.pending {
		if now-p.at < timeout && (served <= p.at || now-served < grace) {
			kept = append(kept, p)
			continue
		}
		e.leave()
		e.habit.unanswered++
		if p.run.m != nil {
			e.finishRun(p.run, now, p.run.cause, signal.OutcomeUnknown)
		}
	}
	clear(e.pending[len(kept):])
	e.pending = kept
	if len(kept) == 0 {
		e.pending = nil
	}
}

// foldHits moves hits on keys that are not tracked into the totals.
func (m *Monitor) foldHits() {
	n := m.hits.take()
	m.total.Lookups.Hits += n
	m.groups.other.totals.Lookups.Hits += n
}

func (m *Monitor) emitVitals(now int64, closing bool) {
	if len(m.sinks) == 0 {
		return
	}
	v := m.total
	v.Source, v.Cache, v.Origin, v.Claims = m.source, m.cache, m.opt.Origin, m.opt.Claims
	for i := range m.durations {
		v.Durations[i] = m.durations[i].Load()
	}
	v.Expiries = m.coming.take(signal.Nanos(now))
	v.At, v.Uptime = signal.Nanos(now), max(0, time.Duration(now-m.began))
	v.Tracked, v.Overflowed = uint64(m.table.keys.Load()), m.overflowed.Load()
	v.Dropped, v.Closing = m.dropped(), closing
	for _, s := range m.sinks {
		c := v
		s.Vitals(&c)
	}
}

func (m *Monitor) dropped() uint64 {
	var n uint64
	for _, s := range m.sinks {
		n += s.Dropped()
	}
	return n
}
