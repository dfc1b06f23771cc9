package instrument_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Unix(1_700_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// recorder is a sink that keeps everything.
type recorder struct {
	windows []*signal.Window
	urgent  int
	vitals  []*signal.Vitals
}

func (r *recorder) Window(w *signal.Window, urgent bool) {
	r.windows = append(r.windows, w)
	if urgent {
		r.urgent++
	}
}

func (r *recorder) Vitals(v *signal.Vitals) { r.vitals = append(r.vitals, v) }

func (r *recorder) Dropped() uint64 { return 0 }

// merged returns all windows of the recorder as one.
func (r *recorder) merged(t *testing.T) *signal.Window {
	t.Helper()
	if len(r.windows) == 0 {
		t.Fatal("no window was reported")
	}
	w := *r.windows[0]
	for _, o := range r.windows[1:] {
		w.Merge(o)
	}
	return &w
}

// newMonitor returns a monitor that a test drives by hand.
func newMonitor(t testing.TB, o instrument.Options) (*instrument.Monitor, *recorder, *clock) {
	t.Helper()
	c, r := newClock(), &recorder{}
	if o.Now == nil {
		o.Now = c.Now
	}
	o.Interval = -1
	m, err := instrument.New("feed", o)
	if err != nil {
		t.Fatal(err)
	}
	m.Attach(r)
	t.Cleanup(func() { m.Close() })
	return m, r, c
}

func TestUrgentFlushComesWithTheFirstDuplicateAndNotTooOften(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	m.Begin("k", instrument.Start{})
	m.FlushUrgent()
	if r.urgent != 0 {
		t.Fatal("one recompute alone is not urgent")
	}
	for range 10 {
		m.Begin("k", instrument.Start{})
		m.FlushUrgent()
		c.Step(30 * time.Millisecond)
	}
	if r.urgent != 3 { // at 0, 120 and 240 ms
		t.Errorf("%d urgent windows in 300 ms; want 3", r.urgent)
	}
}

func TestAClockThatJumpsBackNeverGivesNegativeDurations(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	m.ObserveMiss(t.Context(), "k")
	run := m.Begin("k", instrument.Start{})
	hold, wait := m.LockHold("k"), m.LockWait("k")
	c.Step(-time.Hour)
	m.ObserveMiss(t.Context(), "k")
	m.ObserveStore(t.Context(), "k", instrument.Expiry{TTL: time.Minute})
	run.End(signal.OutcomeOK)
	hold.Release(false)
	wait.Done()
	m.EarlyRefresh("k", -time.Second, -time.Second)
	m.Flush()
	for _, w := range r.windows {
		if w.Busy < 0 || w.End < w.Start || w.Locks.HoldSum < 0 || w.Locks.WaitSum < 0 || w.Early.LeadSum < 0 {
			t.Errorf("negative: %+v", w)
		}
		for _, iv := range w.Intervals {
			if !iv.Running() && iv.End < iv.Start {
				t.Errorf("interval ends before it starts: %+v", iv)
			}
		}
	}
}

func TestCloseDrainsAndSaysGoodbye(t *testing.T) {
	r := &recorder{}
	m, err := instrument.New("feed", instrument.Options{Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m.Attach(r)
	m.ObserveMiss(t.Context(), "k")
	m.Close()
	m.Close()
	if len(r.windows) != 1 || len(r.vitals) == 0 || !r.vitals[len(r.vitals)-1].Closing {
		t.Errorf("windows %d, vitals %d; want the last window and a goodbye", len(r.windows), len(r.vitals))
	}
}

func TestANilMonitorDoesNothing(t *testing.T) {
	var m *instrument.Monitor
	m.Hit("k")
	m.Stale("k")
	m.LookupError("k")
	m.Miss("k").Done()
	m.ObserveMiss(t.Context(), "k")
	m.ObserveStore(t.Context(), "k", instrument.Expiry{})
	m.Store("k", instrument.Expiry{})
	m.Touch("k", instrument.Expiry{})
	m.Invalidate("k")
	run := m.Begin("k", instrument.Start{})
	run.Retry()
	run.Negative()
	run.End(signal.OutcomeOK)
	m.Follow("k").Done()
	m.EarlyRefresh("k", 0, 0)
	m.LockAttempt("k", true)
	m.LockWait("k").Done()
	m.LockHold("k").Release(false)
	m.Flush()
	m.FlushUrgent()
	m.Attach(nil)
	m.Observe(nil)
	m.Snapshot()
	if v, err := instrument.Recompute(t.Context(), m, "k", func(context.Context) (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("Recompute returned %d, %v", v, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

func TestManyGoroutinesOnOneKeyLoseNothing(t *testing.T) {
	m, r, _ := newMonitor(t, instrument.Options{Now: time.Now})
	const workers, each = 64, 200
	var wg sync.WaitGroup
	stop := make(chan struct{})
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		for {
			select {
			case <-stop:
				return
			default:
				m.Flush()
				m.FlushUrgent()
			}
		}
	}()
	for range workers {
		wg.Go(func() {
			for range each {
				m.Hit("hot")
				m.ObserveMiss(t.Context(), "hot")
				run := m.Begin("hot", instrument.Start{})
				m.Follow("hot").Done()
				run.End(signal.OutcomeOK)
				m.Store("hot", instrument.Expiry{TTL: time.Minute})
			}
		})
	}
	wg.Wait()
	close(stop)
	<-flushed
	m.Flush()
	s := m.Snapshot()
	var got [5]uint64
	for _, g := range s.Groups {
		got[0] += g.Lookups.Hits
		got[1] += g.Lookups.Misses
		got[2] += g.Recomputes.Starts()
		got[3] += g.Recomputes.Ends(signal.OutcomeOK)
		got[4] += g.Stores
	}
	const n = workers * each
	if got != [5]uint64{n, n, n, n, n} {
		t.Errorf("hits, misses, starts, ends, stores = %v; want %d of each", got, n)
	}
	for _, w := range r.windows {
		if int(w.InFlightPeak) > workers {
			t.Fatalf("in flight %d with %d goroutines", w.InFlightPeak, workers)
		}
	}
}

func TestVitalsTellWhatWasDoneAndWhatIsToCome(t *testing.T) {
	claims := signal.Claims{Protection: []string{signal.ProtectSingleFlight}, Timeout: time.Second, Attempts: 3}
	m, r, c := newMonitor(t, instrument.Options{Claims: claims})
	m.Store("a:1", instrument.Expiry{TTL: 10 * time.Second})
	m.Store("a:2", instrument.Expiry{TTL: 10 * time.Second})
	m.Store("a:3", instrument.Expiry{TTL: 10 * time.Minute})
	m.Store("a:4", instrument.Expiry{TTL: 2 * time.Hour}) // too far away
	m.Store("a:5", instrument.Expiry{None: true})
	m.Store("a:6", instrument.Expiry{TTL: 10 * time.Second})
	m.Invalidate("a:6")
	m.ObserveMiss(t.Context(), "a:7")
	first := m.Begin("a:7", instrument.Start{})
	c.Step(time.Second)
	first.End(signal.OutcomeTimedOut)
	m.Begin("a:7", instrument.Start{Attempt: 2})
	again := m.Begin("a:7", instrument.Start{Attempt: 3})
	c.Step(400 * time.Millisecond)
	again.End(signal.OutcomeOK)
	m.Flush()

	v := r.vitals[len(r.vitals)-1]
	if v.Running != 1 || v.Retries != (signal.Retries{Requests: 1, Attempts: 3}) || v.Stores != 6 || v.Busy != 1400*time.Millisecond {
		t.Errorf("running %d, retries %+v, stores %d, busy %v; want 1, 1 of 3, 6, 1.4s", v.Running, v.Retries, v.Stores, v.Busy)
	}
	if v.Recomputes.Starts() != 3 || v.Recomputes.Ends(signal.OutcomeTimedOut) != 1 || v.Durations.Count() != 1 {
		t.Errorf("starts %d, timed out %d, timed %d; want 3, 1, and the one that ended well", v.Recomputes.Starts(), v.Recomputes.Ends(signal.OutcomeTimedOut), v.Durations.Count())
	}
	if diff := cmp.Diff(claims, v.Claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	var keys []uint32
	for _, bin := range v.Expiries {
		keys = append(keys, bin.Keys)
	}
	if diff := cmp.Diff([]uint32{2, 1}, keys); diff != "" {
		t.Errorf("keys by bin of expiry (-want +got):\n%s", diff)
	}
}
