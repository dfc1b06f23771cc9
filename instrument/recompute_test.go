package instrument_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestNaiveDogpileIsCountedExactly(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	ctx := t.Context()
	m.Store("feed:1", instrument.Expiry{TTL: time.Second})
	c.Step(2 * time.Second)

	const readers, apart, took = 40, 10 * time.Millisecond, 100 * time.Millisecond
	var runs []instrument.Run
	for i := range readers {
		if i >= 10 { // each takes 100 ms, one starts every 10 ms
			runs[i-10].End(signal.OutcomeOK)
			m.Store("feed:1", instrument.Expiry{TTL: time.Minute})
		}
		m.ObserveMiss(ctx, "feed:1")
		runs = append(runs, m.Begin("feed:1", instrument.Start{}))
		c.Step(apart)
	}
	for _, run := range runs[readers-10:] {
		run.End(signal.OutcomeOK)
	}
	m.Flush()

	w := r.merged(t)
	if w.MissPeak != 10 || w.InFlightPeak != 10 {
		t.Errorf("peaks: miss %d, in flight %d; want 10 and 10", w.MissPeak, w.InFlightPeak)
	}
	if got := w.Recomputes.Started[signal.CauseExpired] + w.Recomputes.Started[signal.CauseEvicted]; got != readers {
		t.Errorf("started %d; want %d", got, readers)
	}
	if w.Duplicates != readers-1 {
		t.Errorf("duplicates %d; want %d", w.Duplicates, readers-1)
	}
	if got := signal.Sweep(w.Intervals, w.End); got.Peak != 10 || got.Bursts != 1 {
		t.Errorf("sweep of intervals: %+v; want a peak of 10 in one burst", got)
	}
	if w.Stores.Count != readers-10+1 {
		t.Errorf("stores %d; want %d", w.Stores.Count, readers-10+1)
	}
}

func TestRecomputeThatStartsWhileFreshIsWasted(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	m.ObserveMiss(t.Context(), "k")
	c.Step(time.Millisecond)
	m.Store("k", instrument.Expiry{TTL: time.Minute}) // somebody else's
	c.Step(time.Millisecond)
	m.Begin("k", instrument.Start{}).End(signal.OutcomeOK)
	m.Flush()
	w := r.merged(t)
	if w.WhileFresh != 1 || w.Duplicates != 1 {
		t.Errorf("while fresh %d, duplicates %d; want 1 and 1", w.WhileFresh, w.Duplicates)
	}
}

func TestCauseIsInferredFromWhatIsRemembered(t *testing.T) {
	tests := []struct {
		name string
		do   func(*instrument.Monitor, *clock)
		want signal.Cause
	}{
		{"a key never seen is cold", func(*instrument.Monitor, *clock) {}, signal.CauseCold},
		{"a value past its TTL has expired", func(m *instrument.Monitor, c *clock) {
			m.Store("k", instrument.Expiry{TTL: time.Second})
			c.Step(time.Second)
		}, signal.CauseExpired},
		{"a value past its instant has expired", func(m *instrument.Monitor, c *clock) {
			m.Store("k", instrument.Expiry{At: c.Now().Add(time.Second)})
			c.Step(time.Second)
		}, signal.CauseExpired},
		{"a value gone before its TTL was evicted", func(m *instrument.Monitor, c *clock) {
			m.Store("k", instrument.Expiry{TTL: time.Minute})
			c.Step(time.Second)
		}, signal.CauseEvicted},
		{"a value without expiry that is gone was evicted", func(m *instrument.Monitor, c *clock) {
			m.Store("k", instrument.Expiry{None: true})
		}, signal.CauseEvicted},
		{"a deleted value was invalidated", func(m *instrument.Monitor, c *clock) {
			m.Store("k", instrument.Expiry{TTL: time.Minute})
			m.Invalidate("k")
		}, signal.CauseInvalidated},
		{"a shortened life counts", func(m *instrument.Monitor, c *clock) {
			m.Store("k", instrument.Expiry{TTL: time.Minute})
			m.Touch("k", instrument.Expiry{TTL: time.Second})
			c.Step(2 * time.Second)
		}, signal.CauseExpired},
		{"a kept life counts", func(m *instrument.Monitor, c *clock) {
			m.Store("k", instrument.Expiry{TTL: time.Second})
			m.Store("k", instrument.Expiry{Keep: true})
			c.Step(2 * time.Second)
		}, signal.CauseExpired},
		{"a value of unknown life is unknown", func(m *instrument.Monitor, c *clock) {
			m.Store("k", instrument.Expiry{})
		}, signal.CauseUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, r, c := newMonitor(t, instrument.Options{})
			tt.do(m, c)
			c.Step(time.Millisecond)
			m.Begin("k", instrument.Start{}).End(signal.OutcomeOK)
			m.Flush()
			if got := r.merged(t).Recomputes.Started[tt.want]; got != 1 {
				t.Errorf("started: %v; want one %v", r.merged(t).Recomputes.Started, tt.want)
			}
		})
	}
}

func TestRecomputeReportsOutcomes(t *testing.T) {
	boom := errors.New("boom")
	tests := []struct {
		err  error
		want signal.Outcome
	}{
		{nil, signal.OutcomeOK},
		{boom, signal.OutcomeFailed},
		{fmt.Errorf("query: %w", context.DeadlineExceeded), signal.OutcomeTimedOut},
		{fmt.Errorf("query: %w", context.Canceled), signal.OutcomeCancelled},
	}
	for _, tt := range tests {
		m, r, _ := newMonitor(t, instrument.Options{})
		_, err := instrument.Recompute(t.Context(), m, "k", func(context.Context) (int, error) { return 0, tt.err })
		if err != tt.err {
			t.Errorf("error %v came back as %v", tt.err, err)
		}
		m.Flush()
		if got := r.merged(t).Recomputes.Ends(tt.want); got != 1 {
			t.Errorf("%v: %d recomputes ended as %v; want 1", tt.err, got, tt.want)
		}
	}
}

func TestPanicInRecomputeIsCountedAndGoesOn(t *testing.T) {
	m, r, _ := newMonitor(t, instrument.Options{})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		instrument.Recompute(t.Context(), m, "k", func(context.Context) (int, error) { panic("boom") })
	}()
	m.Flush()
	if got := r.merged(t).Recomputes.Ends(signal.OutcomeFailed); got != 1 {
		t.Errorf("failed %d; want 1", got)
	}
}

func TestEndTwiceCountsOnce(t *testing.T) {
	m, r, _ := newMonitor(t, instrument.Options{})
	run := m.Begin("k", instrument.Start{})
	other := m.Begin("k", instrument.Start{})
	run.End(signal.OutcomeOK)
	run.End(signal.OutcomeOK)
	other.End(signal.OutcomeOK)
	m.Flush()
	if got := r.merged(t).Recomputes.Ends(signal.OutcomeOK); got != 2 {
		t.Errorf("ended %d; want 2", got)
	}
}

func TestLocksAndEarlyRefreshesAreReported(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	m.LockAttempt("k", true)
	m.LockAttempt("k", false)
	held := c.Now()
	hold := m.LockHold("k")
	wait := m.LockWait("k")
	c.Step(100 * time.Millisecond)
	m.Flush()
	hold.Release(true)
	wait.Done()
	m.EarlyRefresh("k", 2*time.Second, 400*time.Millisecond)
	m.Flush()
	w := r.merged(t)
	ms := 100 * time.Millisecond
	if first := r.windows[0].Locks; first.Held != 1 || first.Waiting != 1 || first.HeldSince.Time() != held.UTC() {
		t.Errorf("while it is held: %+v; want one holder since %v, and one who waits", first, held)
	}
	want := signal.Locks{Held: 1, Waiting: 1, HeldSince: signal.At(held), Attempts: 2, Acquired: 1, Waits: 1, WaitSum: ms, WaitMax: ms, WaitPeak: 1, Holds: 1, HoldSum: ms, HoldMax: ms, Lost: 1}
	if diff := cmp.Diff(want, w.Locks); diff != "" {
		t.Errorf("locks (-want +got):\n%s", diff)
	}
	early := signal.Early{Count: 1, LeadSum: 2 * time.Second, LeadMax: 2 * time.Second, DeltaMax: 400 * time.Millisecond}
	if diff := cmp.Diff(early, w.Early); diff != "" {
		t.Errorf("early (-want +got):\n%s", diff)
	}
}

func TestEarlyRefreshersAreNoDogpile(t *testing.T) {
	m, r, _ := newMonitor(t, instrument.Options{})
	for range 5 {
		m.Begin("k", instrument.Start{Cause: signal.CauseEarly})
	}
	m.Flush()
	w := r.merged(t)
	if w.InFlightPeak != 0 || w.Duplicates != 0 || w.Recomputes.Started[signal.CauseEarly] != 5 {
		t.Errorf("in flight %d, duplicates %d, early %d; want 0, 0, 5", w.InFlightPeak, w.Duplicates, w.Recomputes.Started[signal.CauseEarly])
	}
}

func TestAValueOlderThanAnInvalidationIsAStaleWrite(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	m.ObserveMiss(t.Context(), "k")
	run := m.Begin("k", instrument.Start{})
	c.Step(time.Millisecond)
	m.Invalidate("k")
	c.Step(time.Millisecond)
	m.ObserveMiss(t.Context(), "k")
	m.ObserveStore(run.Context(t.Context()), "k", instrument.Expiry{TTL: time.Minute}) // from before
	run.End(signal.OutcomeOK)
	fresh := m.Begin("k", instrument.Start{})
	fresh.Store(instrument.Expiry{TTL: time.Minute}) // from after
	fresh.End(signal.OutcomeOK)
	m.Flush()
	if got := r.merged(t).Stores; got.Count != 2 || got.Stale != 1 {
		t.Errorf("stores %d, stale %d; want 2 and 1", got.Count, got.Stale)
	}
}

func TestVersionsOfWhatIsStoredAreTold(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	m.Version("unknown", 7) // nothing is known of it, and still is not
	store := func(version uint64) signal.Nanos {
		c.Step(time.Millisecond)
		m.Store("k", instrument.Expiry{TTL: time.Minute})
		m.Version("k", version)
		return signal.At(c.Now())
	}
	first := store(5)
	store(4)
	store(5)
	last := store(4)
	store(0)
	store(1 << 63)
	m.Flush()
	want := signal.Versions{Oldest: 4, OldestAt: last, Newest: 5, NewestAt: first}
	if got := r.merged(t).Stores.Versions; got != want {
		t.Errorf("versions %+v, want %+v", got, want)
	}
}
