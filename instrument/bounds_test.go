package instrument_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

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

func TestStoresInAFloodAreAllCounted(t *testing.T) {
	m, _, _ := newMonitor(t, instrument.Options{MaxKeys: 64, Now: time.Now})
	const workers, each = 8, 5000
	var wg sync.WaitGroup
	for n := range workers {
		wg.Go(func() {
			for i := range each {
				m.Store(fmt.Sprintf("k:%d:%d", n, i), instrument.Expiry{TTL: time.Minute})
				if i%10 == 0 {
					m.Flush() // so that keys are idle, and make room for others
				}
			}
		})
	}
	wg.Wait()
	var stores uint64
	for _, g := range m.Snapshot().Groups {
		stores += g.Stores
	}
	if stores != workers*each {
		t.Errorf("%d stores counted; want %d", stores, workers*each)
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

func TestAHitDoesNotAllocate(t *testing.T) {
	m, _, _ := newMonitor(t, instrument.Options{})
	m.ObserveMiss(t.Context(), "tracked:1")
	for _, key := range []string{"tracked:1", "untracked:1"} {
		if n := testing.AllocsPerRun(1000, func() { m.Hit(key) }); n != 0 {
			t.Errorf("a hit on %s allocates %v times", key, n)
		}
	}
}
