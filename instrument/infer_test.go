package instrument_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestInferredRecomputeIsAMissFollowedByAStore(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	type who struct{}
	a, b := context.WithValue(t.Context(), who{}, "a"), context.WithValue(t.Context(), who{}, "b")
	m.ObserveMiss(a, "k")
	c.Step(10 * time.Millisecond)
	m.ObserveMiss(b, "k")
	c.Step(10 * time.Millisecond)
	m.ObserveStore(b, "k", instrument.Expiry{TTL: time.Minute}) // b took 10 ms
	c.Step(10 * time.Millisecond)
	m.ObserveStore(a, "k", instrument.Expiry{TTL: time.Minute}) // a took 30 ms
	m.ObserveStore(a, "k", instrument.Expiry{TTL: time.Minute}) // no miss: only a store
	m.Flush()

	w := r.merged(t)
	if got := w.Recomputes.Ends(signal.OutcomeOK); got != 2 {
		t.Fatalf("recomputes %d; want 2", got)
	}
	if w.Busy != 40*time.Millisecond || w.BusyMax != 30*time.Millisecond {
		t.Errorf("busy %v, longest %v; want 40ms and 30ms: each store belongs to its caller's miss", w.Busy, w.BusyMax)
	}
	if w.Duplicates != 1 || w.InFlightPeak != 2 || w.Stores.Count != 3 {
		t.Errorf("duplicates %d, peak %d, stores %d; want 1, 2, 3", w.Duplicates, w.InFlightPeak, w.Stores.Count)
	}
	if !w.Unknown.Has(signal.UnknownStarts) {
		t.Error("an inferred recompute is not marked as such")
	}
}

func TestExplicitCallsClaimTheInferredMiss(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	m.ObserveMiss(t.Context(), "k")
	m.ObserveMiss(t.Context(), "k")
	follower := m.Follow("k")
	_, err := instrument.Recompute(t.Context(), m, "k", func(ctx context.Context) (int, error) {
		c.Step(10 * time.Millisecond)
		m.ObserveStore(ctx, "k", instrument.Expiry{TTL: time.Minute})
		return 1, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	follower.Done()
	m.Flush()
	w := r.merged(t)
	got := []uint64{w.Lookups.Misses, w.Recomputes.Starts(), w.Coalesced, w.Duplicates, uint64(w.MissPeak)}
	if diff := cmp.Diff([]uint64{2, 1, 1, 0, 2}, got); diff != "" {
		t.Errorf("misses, starts, coalesced, duplicates, miss peak (-want +got):\n%s", diff)
	}
	if w.Unknown != 0 {
		t.Errorf("unknown %b; want nothing: all was explicit", w.Unknown)
	}
	c.Step(time.Second)
	m.ObserveMiss(t.Context(), "k")
	m.Flush()
	if last := r.windows[len(r.windows)-1]; last.MissPeak != 1 {
		t.Errorf("miss peak %d after everybody was served; want 1", last.MissPeak)
	}
}

func TestMissNobodyAnswersIsForgotten(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{MissTimeout: 5 * time.Second})
	for range 3 {
		m.ObserveMiss(t.Context(), "k")
	}
	for range 6 {
		c.Step(time.Second)
		m.Flush()
	}
	n := len(r.windows)
	m.ObserveMiss(t.Context(), "k")
	m.Flush()
	if got := r.windows[n].MissPeak; got != 1 {
		t.Errorf("miss peak %d; want 1 after the others timed out", got)
	}
}

func TestReadersServedBySomebodyElsesStoreStopWaiting(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	for range 5 {
		m.ObserveMiss(t.Context(), "k") // single-flight the monitor is not told of
	}
	c.Step(10 * time.Millisecond)
	m.ObserveStore(t.Context(), "k", instrument.Expiry{TTL: time.Minute})
	c.Step(2 * time.Second)
	m.Flush()
	n := len(r.windows)
	c.Step(time.Second)
	m.ObserveMiss(t.Context(), "k")
	m.Flush()
	w := r.windows[n]
	if w.MissPeak != 1 {
		t.Errorf("miss peak %d; want 1", w.MissPeak)
	}
	if got := r.merged(t).Recomputes.Starts(); got != 1 {
		t.Errorf("starts %d; want 1: followers are not recomputes", got)
	}
}
