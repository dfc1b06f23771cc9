package instrument

import (
	"context"
	"errors"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Start describes a recompute that begins. The zero value lets the monitor find
// out what it can.
type Start struct {
	// Cause of the recompute. Zero: inferred from what the monitor remembers
	// of the key's last value.
	Cause signal.Cause
	// LookedUp is when the reader found nothing. Zero: taken from the miss a
	// client hook saw, if any. It tells whether a value that is fresh by now
	// makes the recompute needless.
	LookedUp time.Time
	// Generation names the value that is replaced, if the caller knows a name
	// that every instance agrees on, such as a writer's id kept with the
	// value. Recomputes of different generations are never joined.
	Generation string
	// Attempt says that this is a further attempt of one logical request: 2
	// for the first retry, and so on. Zero or 1: the first.
	Attempt int
}

// Run is a recompute that runs. End it once. The zero Run does nothing.
type Run struct {
	m      *Monitor
	e      *entry
	slot   int32
	reader bool // it holds the reader whose miss it claimed
	cause  signal.Cause
	id     uint64
	start  int64
}

// Recompute runs fn, which must make the value of key anew and store it, and
// measures it as one recompute. fn should pass on the context it is given, so
// that a client hook knows the stores under it. An error that is or wraps
// context.DeadlineExceeded or context.Canceled counts as such. A panic in fn
// counts as a failure and goes on.
func Recompute[T any](ctx context.Context, m *Monitor, key string, fn func(context.Context) (T, error)) (T, error) {
	if m == nil {
		return fn(ctx)
	}
	run := m.begin(ctx, key, Start{})
	outcome := signal.OutcomeFailed
	defer func() { run.End(outcome) }()
	v, err := fn(run.Context(ctx))
	outcome = OutcomeOf(err)
	return v, err
}

// OutcomeOf returns how a recompute that returned err ended.
func OutcomeOf(err error) signal.Outcome {
	switch {
	case err == nil:
		return signal.OutcomeOK
	case errors.Is(err, context.DeadlineExceeded):
		return signal.OutcomeTimedOut
	case errors.Is(err, context.Canceled):
		return signal.OutcomeCancelled
	default:
		return signal.OutcomeFailed
	}
}

// Begin notes that a recompute of key starts. See also [Recompute].
func (m *Monitor) Begin(key string, s Start) Run { return m.begin(context.Background(), key, s) }

func (m *Monitor) begin(ctx context.Context, key string, s Start) Run {
	if m == nil {
		return Run{}
	}
	now := m.now()
	e := m.lockEntry(key)
	r := e.start(m, ctx, now, s)
	urgent := int(e.running) >= m.opt.UrgentInFlight && r.cause.Provoked() && e.hurry(now)
	e.mu.Unlock()
	if urgent {
		m.hasten(e)
	}
	return r
}

// start counts a recompute that begins. e.mu is held.
func (e *entry) start(m *Monitor, ctx context.Context, now int64, s Start) Run {
	w := e.open(now)
	if s.Generation != "" {
		w.Generation = s.Generation
	}
	p, claimed := e.claim(ctx)
	if claimed && p.run.m != nil { // it has been presumed to run since its miss
		r := p.run
		r.reader = true
		return r
	}
	cause, lookedUp := s.Cause, int64(signal.At(s.LookedUp))
	if claimed {
		if lookedUp == 0 {
			lookedUp = p.at
		}
		if cause == signal.CauseUnknown {
			cause = p.cause
		}
	}
	if cause == signal.CauseUnknown && !e.isRest() {
		cause = e.life.cause(now)
	}
	if s.Attempt <= 1 {
		w.Retries.Requests++
	}
	w.Retries.Attempts++
	r := e.launch(m, w, now, cause, !e.isRest() && e.life.freshSince(lookedUp, now))
	r.reader = claimed
	return r
}

// launch counts a recompute that runs from start on. e.mu is held.
func (e *entry) launch(m *Monitor, w *signal.Window, start int64, cause signal.Cause, fresh bool) Run {
	r := Run{m: m, e: e, id: m.runIDs.Add(1), start: start, cause: cause}
	w.Recomputes.Started[cause]++
	e.judge(w, cause.Provoked() && e.running > 0, fresh)
	r.slot = e.occupy(slot{id: r.id, start: start, cause: cause})
	if cause.Provoked() && !e.isRest() {
		e.running++
		w.InFlightPeak = max(w.InFlightPeak, e.running)
	}
	return r
}

// judge counts a recompute that is wasted. e.mu is held.
func (e *entry) judge(w *signal.Window, overlaps, fresh bool) {
	if overlaps || fresh {
		w.Duplicates++
	}
	if fresh {
		w.WhileFresh++
	}
}

// occupy keeps s until it is freed, and returns where; -1 if there are too many.
func (e *entry) occupy(s slot) int32 {
	if n := len(e.free); n > 0 {
		i := e.free[n-1]
		e.free = e.free[:n-1]
		e.slots[i] = s
		return i
	}
	if len(e.slots) >= maxRunning {
		return -1
	}
	e.slots = append(e.slots, s)
	return int32(len(e.slots) - 1)
}

// Context returns a context under which a client hook takes a store of the
// run's key as the run's own.
func (r Run) Context(ctx context.Context) context.Context {
	if r.m == nil {
		return ctx
	}
	return context.WithValue(ctx, runKey{}, r)
}

type runKey struct{}

// Retry counts another attempt on the origin within the same logical request,
// after one that failed. A hedge, which is a copy of a call that still runs, is
// not one: it is part of the run, and needs no word.
func (r Run) Retry() {
	if r.m == nil {
		return
	}
	now := r.m.now()
	r.e.mu.Lock()
	r.e.open(now).Retries.Attempts++
	r.e.mu.Unlock()
}

// Store counts a value that the run wrote, where no client hook sees it.
func (r Run) Store(x Expiry) {
	if r.m != nil {
		r.e.mu.Lock()
		r.m.store(r.e, r.start, x)
	}
}

// End ends the run; its reader has a value, or gave up. A second call does
// nothing.
func (r Run) End(o signal.Outcome) { r.end(o, r.cause) }

// Negative ends the run with the finding that the origin has no such thing.
func (r Run) Negative() { r.end(signal.OutcomeOK, signal.CauseNegative) }

func (r Run) end(o signal.Outcome, cause signal.Cause) {
	if r.m == nil || o >= signal.NumOutcomes {
		return
	}
	now := max(r.m.now(), r.start)
	e := r.e
	e.mu.Lock()
	ended := e.finishRun(r, now, cause, o)
	if ended && r.reader {
		e.leave()
	}
	group := e.groupName()
	e.mu.Unlock()
	if !ended {
		return
	}
	for _, ob := range r.m.observing() {
		ob.RecomputeDuration(group, time.Duration(now-r.start))
	}
}

// finishRun ends r at now, and reports whether it had not ended before. e.mu is
// held.
func (e *entry) finishRun(r Run, now int64, cause signal.Cause, o signal.Outcome) bool {
	told := false
	if r.slot >= 0 {
		if e.slots[r.slot].id != r.id {
			return false
		}
		told = e.slots[r.slot].told
		e.slots[r.slot] = slot{}
		e.free = append(e.free, r.slot)
	}
	w := e.open(now)
	if r.cause.Provoked() && e.running > 0 {
		e.running--
	}
	iv := signal.Interval{ID: r.id, Start: signal.Nanos(r.start), End: signal.Nanos(max(now, r.start)), Cause: cause, Outcome: o}
	r.m.tally(e, w, iv)
	switch {
	case told:
		e.owed = append(e.owed, iv)
	case r.slot >= 0:
		e.keep(w, iv)
	case !e.isRest():
		w.Sampled = true
	}
	return true
}

// tally counts a recompute that ended. e.mu is held.
func (m *Monitor) tally(e *entry, w *signal.Window, iv signal.Interval) {
	d := iv.End.Sub(iv.Start)
	if iv.Outcome == signal.OutcomeOK {
		m.durations[signal.DurationBucket(d)].Add(1)
	}
	w.Recomputes.Ended[iv.Cause][iv.Outcome]++
	w.Busy += d
	w.BusyMax = max(w.BusyMax, d)
	e.lastRun = d
}

// keep remembers one that ended for the open window. Once there are too many,
// only those that would be in the sample are kept, so that a burst of any size
// costs a comparison each. e.mu is held.
func (e *entry) keep(w *signal.Window, iv signal.Interval) {
	if e.isRest() || e.cut != 0 && iv.Rank() > e.cut {
		return
	}
	if e.closed = append(e.closed, iv); len(e.closed) > maxClosed {
		e.closed = signal.SampleIntervals(e.closed, signal.MaxIntervals)
		w.Sampled, e.cut = true, 0
		for _, kept := range e.closed {
			e.cut = max(e.cut, kept.Rank())
		}
	}
}
