package instrument_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
func (r *recorder) Dropped() uint64         { return 0 }

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

func TestSampledIntervalsNeverClaimMoreThanThereWas(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	const rate, seconds, takes = 500, 3, 200 * time.Millisecond // 100 at once
	type running struct {
		run instrument.Run
		end time.Time
	}
	var now []running
	var peak int
	for i := range rate * seconds {
		for len(now) > 0 && !now[0].end.After(c.Now()) {
			now[0].run.End(signal.OutcomeOK)
			now = now[1:]
		}
		now = append(now, running{m.Begin("k", instrument.Start{}), c.Now().Add(takes)})
		peak = max(peak, len(now))
		c.Step(time.Second / rate)
		if i%rate == rate-1 {
			m.Flush()
		}
		if i%50 == 49 {
			m.FlushUrgent()
		}
	}
	for _, x := range now {
		x.run.End(signal.OutcomeOK)
	}
	m.Flush()
	w := r.merged(t)
	o := signal.Sweep(w.Intervals, w.End)
	if low, high := w.PeakBounds(w.End); !w.Sampled || low > peak || high < peak {
		t.Errorf("sampled %v, peak %d to %d; want it sampled, and %d within", w.Sampled, low, high, peak)
	}
	if o.Total > w.Busy {
		t.Errorf("the intervals last %v in all, and the recomputes %v", o.Total, w.Busy)
	}
	for _, iv := range w.Intervals {
		if iv.Running() {
			t.Fatalf("all have ended, and one seems to run: %+v", iv)
		}
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

func TestHostileKeysAreBounded(t *testing.T) {
	for name, key := range map[string]string{
		"empty":   "",
		"huge":    strings.Repeat("x", 1<<20),
		"binary":  "\x00\xff\xfe\n\r",
		"script":  "</script><script>alert(1)</script>",
		"newline": "feed\n:1",
	} {
		t.Run(name, func(t *testing.T) {
			m, r, _ := newMonitor(t, instrument.Options{Privacy: instrument.PrivacyRaw})
			m.Hit(key)
			m.ObserveMiss(t.Context(), key)
			m.Begin(key, instrument.Start{}).End(signal.OutcomeOK)
			m.Hit(key)
			m.Flush()
			w := r.merged(t)
			if w.Lookups.Misses != 1 || w.Recomputes.Starts() != 1 || w.Lookups.Hits != 1 {
				t.Errorf("misses %d, starts %d, hits %d; want 1 of each", w.Lookups.Misses, w.Recomputes.Starts(), w.Lookups.Hits)
			}
			if len(w.Key.Text) > 256 || len(w.Key.Group) > 64 || w.Key.Group == "" {
				t.Errorf("key is not bounded: %d bytes of text, group %q", len(w.Key.Text), w.Key.Group)
			}
		})
	}
}

func TestNothingButTheGroupLeavesByDefault(t *testing.T) {
	m, r, _ := newMonitor(t, instrument.Options{})
	m.ObserveMiss(t.Context(), "user:alice@example.eu")
	m.Flush()
	w := r.merged(t)
	if w.Key.Text != "" || w.Key.Group != "user:*" {
		t.Errorf("text %q, group %q; want none and user:*", w.Key.Text, w.Key.Group)
	}
}

func TestSaltChangesIDsAndInstancesAgree(t *testing.T) {
	id := func(salt string) signal.KeyID {
		m, r, _ := newMonitor(t, instrument.Options{Salt: salt})
		m.ObserveMiss(t.Context(), "feed:1")
		m.Flush()
		return r.merged(t).Key.ID
	}
	one, another := id("a"), id("a")
	if one != another {
		t.Error("two instances with one salt disagree on a key's id")
	}
	if one == id("b") {
		t.Error("the salt makes no difference")
	}
}

func TestMemoryIsBoundedUnderAFlood(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{MaxKeys: 1024, MaxWindows: 100})
	const flood = 50_000
	for i := range flood {
		m.ObserveMiss(t.Context(), fmt.Sprintf("k:%d", i))
		if i%5000 == 4999 {
			c.Step(time.Second)
			m.Flush()
		}
	}
	s := m.Snapshot()
	var misses uint64
	for _, g := range s.Groups {
		misses += g.Lookups.Misses
	}
	if misses != flood {
		t.Errorf("%d misses counted; want %d: overflow loses nothing", misses, flood)
	}
	if s.Tracked > 1024 || s.Overflowed == 0 {
		t.Errorf("tracked %d, overflowed %d; want at most 1024, and some", s.Tracked, s.Overflowed)
	}
	if len(r.windows) > 11*100 {
		t.Errorf("%d windows; want at most 100 per flush", len(r.windows))
	}
}

func TestAHotKeyGetsInDuringAFlood(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{MaxKeys: 64})
	for s := range 3 {
		for i := range 5000 {
			m.ObserveMiss(t.Context(), fmt.Sprintf("k:%d:%d", s, i))
		}
		c.Step(time.Second)
		m.Flush()
	}
	r.windows = nil
	for range 5 {
		m.Begin("hot:1", instrument.Start{})
	}
	m.Flush()
	for _, w := range r.windows {
		if w.InFlightPeak == 5 {
			return
		}
	}
	t.Error("the hot key was not reported")
}

func TestGroupsAreBounded(t *testing.T) {
	m, _, _ := newMonitor(t, instrument.Options{MaxGroups: 3})
	for _, k := range []string{"a:1", "b:1", "c:1", "d:1", "e:1"} {
		m.ObserveMiss(t.Context(), k)
	}
	var got []string
	for _, g := range m.Snapshot().Groups {
		got = append(got, fmt.Sprint(g.Group, "=", g.Lookups.Misses))
	}
	if diff := cmp.Diff([]string{"a:*=1", "b:*=1", "c:*=1", "other=2"}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestASilentGroupGivesItsPlaceToTheHeaviest(t *testing.T) {
	m, _, c := newMonitor(t, instrument.Options{MaxGroups: 1})
	m.ObserveMiss(t.Context(), "a:1")
	m.Flush()
	for i := range 10 {
		c.Step(10 * time.Minute)
		m.ObserveMiss(t.Context(), "light:1")
		for j := range 5 {
			m.ObserveMiss(t.Context(), fmt.Sprintf("heavy:%d:%d", i, j))
		}
		m.Flush()
	}
	var got []string
	for _, g := range m.Snapshot().Groups {
		got = append(got, g.Group)
	}
	if diff := cmp.Diff([]string{"heavy:*", "other"}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestPeaksStayForTwoFixedWindowsAndNoScrapeResetsThem(t *testing.T) {
	m, _, c := newMonitor(t, instrument.Options{})
	runs := []instrument.Run{m.Begin("feed:1", instrument.Start{}), m.Begin("feed:1", instrument.Start{})}
	for _, r := range runs {
		r.End(signal.OutcomeOK)
	}
	peak := func() uint32 { return m.Snapshot().Groups[0].InFlightPeak }
	for range 3 {
		if got := peak(); got != 2 {
			t.Fatalf("peak %d; want 2 at every scrape", got)
		}
	}
	c.Step(20 * time.Second)
	if got := peak(); got != 2 {
		t.Errorf("peak %d after 20 s; want 2", got)
	}
	c.Step(10 * time.Second)
	if got := peak(); got != 0 {
		t.Errorf("peak %d after 30 s; want 0", got)
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

func TestOptionsAreValidated(t *testing.T) {
	for field, o := range map[string]instrument.Options{
		"MaxKeys":        {MaxKeys: 1},
		"MaxBytes":       {MaxBytes: 1},
		"MaxWindows":     {MaxWindows: 1},
		"MaxGroups":      {MaxGroups: 100_000},
		"Privacy":        {Privacy: 9},
		"Interval":       {Interval: time.Minute},
		"UrgentInFlight": {UrgentInFlight: 1},
		"MissTimeout":    {MissTimeout: 1},
		"Origin.Budget":  {Origin: signal.Origin{Budget: -1}},
	} {
		if _, err := instrument.New("feed", o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v does not name the field", field, err)
		}
	}
	for _, name := range []string{"", "a\nb", "\xff", strings.Repeat("x", 200)} {
		if _, err := instrument.New(name, instrument.Options{}); err == nil {
			t.Errorf("the cache name %q was taken", name)
		}
	}
}

func TestAPanickingGroupFunctionHarmsNobody(t *testing.T) {
	m, r, _ := newMonitor(t, instrument.Options{Group: func(string) string { panic("mine") }})
	m.ObserveMiss(t.Context(), "k")
	m.Flush()
	if got := r.merged(t).Key.Group; got != "other" {
		t.Errorf("group %q; want other", got)
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

func TestAHitDoesNotAllocate(t *testing.T) {
	m, _, _ := newMonitor(t, instrument.Options{})
	m.ObserveMiss(t.Context(), "tracked:1")
	for _, key := range []string{"tracked:1", "untracked:1"} {
		if n := testing.AllocsPerRun(1000, func() { m.Hit(key) }); n != 0 {
			t.Errorf("a hit on %s allocates %v times", key, n)
		}
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
