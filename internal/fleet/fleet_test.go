package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	ms = signal.Nanos(time.Millisecond)
	s  = signal.Nanos(time.Second)
	t0 = 1_700_000_000 * s // when each test begins, on the fleet's clock
)

func newFleet(t testing.TB, o fleet.Options) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func source(n int) signal.Source {
	return signal.Source{Service: "app", Instance: fmt.Sprintf("i%03d", n)}
}

// window returns what instance n saw of key 1 if it recomputed from start to
// each of ends; zero is still running.
func window(n int, from, to, start signal.Nanos, ends ...signal.Nanos) *signal.Window {
	w := &signal.Window{Source: source(n), Cache: "feed", Key: signal.Key{ID: 1, Group: "feed:*"}, Start: from, End: to}
	for i, end := range ends {
		w.Recomputes.Started[signal.CauseExpired]++
		w.Intervals = append(w.Intervals, signal.Interval{ID: uint64(n)<<32 + uint64(start) + uint64(i), Start: start, End: end, Cause: signal.CauseExpired})
		w.InFlightPeak++
	}
	if len(ends) > 1 {
		w.Duplicates = uint64(len(ends) - 1)
	}
	return w
}

func vitals(n int, at signal.Nanos) *signal.Vitals {
	return &signal.Vitals{Source: source(n), Cache: "feed", At: at, Uptime: time.Hour}
}

// one returns the only episode of a tick.
func one(t *testing.T, tick *signal.Tick) signal.Episode {
	t.Helper()
	if tick == nil || len(tick.Episodes) != 1 {
		t.Fatalf("want one episode, got %+v", tick)
	}
	return tick.Episodes[0]
}

func TestConcurrencyIsSweptAcrossInstances(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	for n := range 20 { // each has two at once; all 40 overlap only around 190..200 ms
		start := t0 + signal.Nanos(n)*10*ms
		f.Add(t0+s, []*signal.Window{window(n, t0, t0+s, start, start+200*ms, start+200*ms)}, nil)
	}
	e := one(t, f.Tick(t0+s))
	if e.PeakLow != 40 || e.PeakHigh != 40 || e.Duplicates != 39 || e.Window.Instances() != 20 {
		t.Errorf("peak %d to %d, duplicates %d, instances %d; want 40, 40, 39, 20", e.PeakLow, e.PeakHigh, e.Duplicates, e.Window.Instances())
	}
	if e.Onset != t0 {
		t.Errorf("onset %v after the start; want 0", e.Onset.Sub(t0))
	}
}

func TestRunningRecomputeIsCountedOnceWhenItEnds(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	f.Add(t0+s, []*signal.Window{window(1, t0, t0+s, t0+900*ms, 0)}, nil)
	if e := one(t, f.Tick(t0+s)); e.Final || e.PeakLow != 1 {
		t.Fatalf("while it runs: %+v", e)
	}
	w := window(1, t0+s, t0+2*s, t0+900*ms, t0+1300*ms)
	w.Recomputes = signal.Recomputes{}
	f.Add(t0+2*s, []*signal.Window{w}, nil)
	e := one(t, f.Tick(t0+2*s))
	if e.PeakLow != 1 || e.Duplicates != 0 || len(e.Window.Intervals) != 1 || e.Window.Recomputes.Starts() != 1 {
		t.Errorf("once it ended: peak %d, duplicates %d, intervals %d, starts %d; want 1, 0, 1, 1", e.PeakLow, e.Duplicates, len(e.Window.Intervals), e.Window.Recomputes.Starts())
	}
}

func TestEachExpiryIsAnEpisodeThatEndsAsFinalOnce(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	finals := map[signal.Nanos]int{}
	names := map[signal.Nanos]bool{}
	for i := range signal.Nanos(12) {
		now := t0 + (i+1)*s
		if i%4 == 0 {
			start := t0 + i*s + 100*ms
			f.Add(now, []*signal.Window{window(1, t0+i*s, now, start, start+400*ms), window(2, t0+i*s, now, start, start+400*ms)}, nil)
		}
		for _, e := range f.Tick(now).Episodes {
			names[e.Started] = true
			if e.Final {
				finals[e.Started]++
			}
		}
	}
	if len(names) != 3 || len(finals) != 3 {
		t.Fatalf("%d episodes, %d final; want 3 and 3", len(names), len(finals))
	}
	for at, n := range finals {
		if n != 1 {
			t.Errorf("episode at %v was final %d times", at.Sub(t0), n)
		}
	}
}

func TestAKeyThatNeverRestsIsCutIntoEpisodes(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	names := map[signal.Nanos]bool{}
	for i := range signal.Nanos(200) {
		now := t0 + (i+1)*s
		f.Add(now, []*signal.Window{window(1, now-s, now, now-s, now, now)}, nil)
		for _, e := range f.Tick(now).Episodes {
			names[e.Started] = true
			if e.Window.End.Sub(e.Window.Start) > 62*time.Second {
				t.Fatalf("an episode of %v", e.Window.End.Sub(e.Window.Start))
			}
		}
	}
	if len(names) < 3 || len(names) > 5 {
		t.Errorf("%d episodes in 200 s; want one a minute", len(names))
	}
}

func TestGenerationsDecideBeforeTimeDoes(t *testing.T) {
	gen := func(w *signal.Window, g string) *signal.Window { w.Generation = g; return w }
	tests := []struct {
		name  string
		a, b  *signal.Window
		peaks []int
	}{
		{"one generation joins though the clocks do not", gen(window(1, t0, t0+s, t0, t0+ms*400), "g1"), gen(window(2, t0, t0+s, t0+800*ms, t0+900*ms), "g1"), []int{1}},
		{"two generations stay apart though they overlap", gen(window(1, t0, t0+s, t0, t0+ms*400), "g1"), gen(window(2, t0, t0+s, t0, t0+400*ms), "g2"), []int{1, 1}},
		{"no generation joins by time", gen(window(1, t0, t0+s, t0, t0+ms*400), "g1"), window(2, t0, t0+s, t0, t0+400*ms), []int{2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFleet(t, fleet.Options{})
			f.Add(t0+s, []*signal.Window{tt.a, tt.b}, nil)
			var got []int
			for _, e := range f.Tick(t0 + s).Episodes {
				got = append(got, e.PeakLow)
			}
			if diff := cmp.Diff(tt.peaks, got); diff != "" {
				t.Errorf("peaks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClockThatIsOffIsPutRight(t *testing.T) {
	for _, off := range []signal.Nanos{-5 * s, -50 * ms, 50 * ms, 5 * s, 3600 * s} {
		t.Run(off.Sub(0).String(), func(t *testing.T) {
			f := newFleet(t, fleet.Options{})
			for i := range signal.Nanos(5) {
				now := t0 - 5*s + i*s
				f.Add(now+5*ms, nil, []*signal.Vitals{vitals(1, now), vitals(2, now+off)})
			}
			skewed := window(2, t0, t0+s, t0+200*ms, t0+600*ms)
			skewed.Shift(time.Duration(off))
			f.Add(t0+s+5*ms, []*signal.Window{window(1, t0, t0+s, t0+200*ms, t0+600*ms), skewed}, nil)
			if e := one(t, f.Tick(t0+s+5*ms)); e.PeakLow != 2 {
				t.Errorf("peak %d with a clock off by %v; want 2", e.PeakLow, off.Sub(0))
			}
		})
	}
}

func TestAClockThatIsSteppedIsFollowed(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	off := signal.Nanos(0)
	for i := range signal.Nanos(30) {
		now := t0 + i*s
		if i == 10 {
			off = -30 * s
		}
		f.Add(now, nil, []*signal.Vitals{vitals(1, now+off)})
	}
	if got := f.Stats().OffsetMax; got != 30*time.Second {
		t.Errorf("offset %v; want 30s", got)
	}
}

func TestWindowsThatCannotBeAreCountedAndDropped(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	f.Add(t0, nil, []*signal.Vitals{vitals(1, t0)})
	f.Add(t0, []*signal.Window{
		window(1, t0+time5(60), t0+time5(61), t0+time5(60), 0),
		window(1, t0-time5(121), t0-time5(120), t0-time5(121), t0-time5(120)),
	}, nil)
	if got := f.Stats(); got.Future != 1 || got.Past != 1 {
		t.Errorf("future %d, past %d; want 1 and 1", got.Future, got.Past)
	}
	if n := len(f.Tick(t0 + s).Episodes); n != 0 {
		t.Errorf("%d episodes; want none", n)
	}
}

func time5(n int) signal.Nanos { return signal.Nanos(n) * s }

func TestAWindowSentTwiceCountsOnce(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	for range 3 {
		f.Add(t0+s, []*signal.Window{window(1, t0, t0+s, t0, t0+ms, t0+ms)}, nil)
	}
	e := one(t, f.Tick(t0+s))
	if e.Window.Recomputes.Starts() != 2 || f.Stats().Duplicate != 2 {
		t.Errorf("starts %d, duplicates %d; want 2 and 2", e.Window.Recomputes.Starts(), f.Stats().Duplicate)
	}
	if got := f.Totals(t0 + s)[0].Recomputes; got != 2 {
		t.Errorf("total %d; want 2", got)
	}
}

func TestLateWindowsRaiseNothing(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	f.Add(t0+s, []*signal.Window{window(1, t0, t0+s, t0, t0+100*ms)}, nil)
	f.Tick(t0 + s)
	if e := one(t, f.Tick(t0+4*s)); !e.Final {
		t.Fatal("the episode is not final after 3 s")
	}
	if f.Add(t0+5*s, []*signal.Window{window(2, t0, t0+s, t0, t0+100*ms, t0+100*ms)}, nil) {
		t.Error("a late window asks for a tick")
	}
	if n := len(f.Tick(t0 + 6*s).Episodes); n != 0 || f.Stats().Late != 1 {
		t.Errorf("%d episodes shown, %d late; want 0 and 1", n, f.Stats().Late)
	}
	f.Add(t0+30*s, []*signal.Window{other(window(3, t0, t0+s, t0, t0+100*ms, t0+100*ms))}, nil)
	if e := one(t, f.Tick(t0+31*s)); !e.Final {
		t.Error("history heard of for the first time is not final")
	}
}

func other(w *signal.Window) *signal.Window { w.Key.ID = 2; return w }

func TestUrgencyAsksForAHandfulOfTicks(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	if f.Add(t0, []*signal.Window{window(0, t0-s, t0, t0-100*ms, 0)}, nil) {
		t.Error("one recompute is urgent")
	}
	if f.UrgentTick(t0) != nil {
		t.Error("an urgent tick without cause")
	}
	asked := 0
	for n := 1; n <= 200; n++ {
		now := t0 + signal.Nanos(n)*ms
		if f.Add(now, []*signal.Window{window(n, now-50*ms, now, now-50*ms, 0, 0)}, nil) {
			asked++
			if e := one(t, f.UrgentTick(now)); e.PeakLow < 2 {
				t.Fatalf("urgent with a peak of %d", e.PeakLow)
			}
		}
	}
	if asked < 5 || asked > 40 {
		t.Errorf("%d urgent ticks for a burst of 400; want a handful", asked)
	}
}

func TestColdOnlyIfNobodyKnewTheKey(t *testing.T) {
	cold := func(from signal.Nanos) *signal.Window {
		w := window(2, from, from+s, from, from+400*ms)
		w.Recomputes.Started = [signal.NumCauses]uint64{}
		w.Recomputes.Started[signal.CauseCold] = 1
		w.Intervals[0].Cause = signal.CauseCold
		w.Stores.Count, w.Stores.TTLMin = 1, 3*time.Second // and stores it: known from then on
		w.Lookups.Hits = 5
		return w
	}
	f := newFleet(t, fleet.Options{})
	f.Add(t0+s, []*signal.Window{cold(t0)}, nil)
	if e := one(t, f.Tick(t0+s)); e.KnownBefore {
		t.Error("the first recompute ever is known before")
	}
	f.Tick(t0 + 4*s)
	f.Add(t0+6*s, []*signal.Window{cold(t0 + 5*s)}, nil)
	if e := one(t, f.Tick(t0+6*s)); !e.KnownBefore || e.TTL != 3*time.Second {
		t.Errorf("known %v, ttl %v; want true and 3s: another instance stored it", e.KnownBefore, e.TTL)
	}
}

func TestAnEpisodeKnowsWhenTheValueItReplacesWasDue(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	first := window(1, t0, t0+s, t0, t0+100*ms)
	first.Stores = signal.Stores{Count: 1, ExpiryMin: t0 + 60*s, ExpiryMax: t0 + 60*s, TTLMin: time.Minute, TTLMax: time.Minute}
	f.Add(t0+s, []*signal.Window{first}, nil)
	if e := one(t, f.Tick(t0+s)); e.Due != 0 {
		t.Errorf("the first value ever replaces one that was due %v after the start", e.Due.Sub(t0))
	}
	f.Tick(t0 + 10*s)
	again := window(2, t0+20*s, t0+21*s, t0+20*s, t0+20*s+100*ms)
	again.Stores = signal.Stores{Count: 1, ExpiryMin: t0 + 80*s, ExpiryMax: t0 + 80*s, TTLMin: time.Minute, TTLMax: time.Minute}
	f.Add(t0+21*s, []*signal.Window{again}, nil)
	if e := one(t, f.Tick(t0+21*s)); e.Due != t0+60*s {
		t.Errorf("due %v after the start; want 1m0s: it vanished early", e.Due.Sub(t0))
	}
}

func TestCacheStatesFollowTheHeartbeat(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	v := func(n int, at signal.Nanos, hits uint64) *signal.Vitals {
		x := vitals(n, at)
		x.Lookups.Hits = hits
		x.Origin = signal.Origin{Name: "db", Budget: 8}
		return x
	}
	f.Add(t0, nil, []*signal.Vitals{v(1, t0, 100), v(2, t0, 50)})
	f.Tick(t0)
	f.Add(t0+s, nil, []*signal.Vitals{v(1, t0+s, 110), v(2, t0+s, 5)}) // the second restarted
	c := f.Tick(t0 + s).Caches[0]
	want := signal.CacheState{Cache: "feed", Service: "app", Origin: signal.Origin{Name: "db", Budget: 8}, Instances: 2,
		UptimeMin: time.Hour, UptimeMax: time.Hour, Lookups: signal.Lookups{Hits: 15}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	bye := v(2, t0+2*s, 5)
	bye.Closing = true
	f.Add(t0+2*s, nil, []*signal.Vitals{bye})
	if c := f.Tick(t0 + 10*s).Caches[0]; c.Instances != 0 || c.Silent != 1 {
		t.Errorf("reporting %d, silent %d; want 0 and 1: one said goodbye", c.Instances, c.Silent)
	}
	if cs := f.Tick(t0 + 1000*s).Caches; len(cs) != 0 {
		t.Errorf("still remembered after a quarter of an hour: %+v", cs)
	}
}

func TestWorkAndComingExpiriesAreSummedOverInstances(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	v := func(n int, at signal.Nanos, requests uint64) *signal.Vitals {
		x := vitals(n, at)
		x.Retries = signal.Retries{Requests: requests, Attempts: 3 * requests}
		x.Recomputes.Started[signal.CauseExpired] = requests
		x.Durations[10] = requests
		x.Running, x.Waiting = 2, 3
		x.Expiries = []signal.ExpiryBin{{At: t0 + 100*s, Width: time.Second, Keys: 4}}
		x.Claims = signal.Claims{Attempts: 3}
		return x
	}
	f.Add(t0, nil, []*signal.Vitals{v(1, t0, 10), v(2, t0, 10)})
	f.Tick(t0)
	f.Add(t0+s, nil, []*signal.Vitals{v(1, t0+s, 15), v(2, t0+s, 12)})
	c := f.Tick(t0 + s).Caches[0]
	if c.Work.Retries != (signal.Retries{Requests: 7, Attempts: 21}) || c.Work.Durations.Count() != 7 || c.Work.Recomputes.Starts() != 7 {
		t.Errorf("work since the previous tick: %+v", c.Work)
	}
	if c.Running != 4 || c.Waiting != 6 || c.Claims.Attempts != 3 {
		t.Errorf("running %d, waiting %d, claims %+v; want 4, 6, 3 attempts", c.Running, c.Waiting, c.Claims)
	}
	if diff := cmp.Diff([]signal.ExpiryBin{{At: t0 + 100*s, Width: time.Second, Keys: 8}}, c.Expiries); diff != "" {
		t.Errorf("expiries (-want +got):\n%s", diff)
	}
}

func TestAProtectionIsClaimedOnceEveryInstanceClaimsIt(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	v := func(n int, at signal.Nanos, protection ...string) *signal.Vitals {
		x := vitals(n, at)
		x.Claims.Protection = protection
		return x
	}
	f.Add(t0, nil, []*signal.Vitals{v(1, t0, "singleflight", "xfetch"), v(2, t0, "singleflight"), v(3, t0)})
	if got := f.Tick(t0).Caches[0].Claims.Protection; got != nil {
		t.Errorf("claimed %q while one instance does not; want nothing", got)
	}
	f.Add(t0+s, nil, []*signal.Vitals{v(3, t0+s, "xfetch", "singleflight")})
	if got := f.Tick(t0 + s).Caches[0].Claims.Protection; !slices.Equal(got, []string{"singleflight"}) {
		t.Errorf("claimed %q; want what all claim", got)
	}
}

func TestMissesAreCountedByKey(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	for id, misses := range map[signal.KeyID]uint64{1: 3, 2: 1, 66: 5} {
		for n := range 2 {
			w := window(n, t0, t0+s, t0, t0+ms)
			w.Key.ID, w.Lookups.Misses = id, misses
			f.Add(t0+s, []*signal.Window{w}, []*signal.Vitals{vitals(n, t0+s)})
		}
	}
	c := f.Tick(t0 + s).Caches[0]
	if c.MissedKeys != 3 || c.MissTop != 10 || c.Misses != 18 {
		t.Errorf("missed keys %d, top %d, all %d; want 3, 10, 18", c.MissedKeys, c.MissTop, c.Misses)
	}
	if c := f.Tick(t0 + 2*s).Caches[0]; c.MissedKeys != 0 || c.Misses != 0 {
		t.Errorf("a second later: %d keys, %d misses; want none", c.MissedKeys, c.Misses)
	}
}

func TestKeysWithLocksOrEarlyRefreshesAreToldSingly(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	plain, locked := window(1, t0, t0+s, t0, t0+ms), window(1, t0, t0+s, t0, t0+ms)
	locked.Key.ID, locked.Locks.Attempts = 2, 1
	f.Add(t0+s, []*signal.Window{plain, locked}, nil)
	f.Add(t0+s, []*signal.Window{func() *signal.Window { w := window(2, t0, t0+s, t0, t0+ms); w.Key.ID = 2; return w }()}, nil)
	tick := f.Tick(t0 + s)
	if len(tick.Keys) != 1 || tick.Keys[0].Window.Key.ID != 2 || tick.Keys[0].Window.Locks.Attempts != 1 || tick.Keys[0].Window.Recomputes.Starts() != 2 {
		t.Fatalf("keys told singly: %+v; want key 2, with all that both instances said", tick.Keys)
	}
	for _, e := range tick.Episodes { // which must not have lost anything to it
		if want := map[signal.KeyID]uint64{1: 1, 2: 2}[e.Window.Key.ID]; e.Window.Recomputes.Starts() != want {
			t.Errorf("episode of key %d has %d starts; want %d", e.Window.Key.ID, e.Window.Recomputes.Starts(), want)
		}
	}
	if again := f.Tick(t0 + 2*s); len(again.Keys) != 0 {
		t.Errorf("told again a second later: %+v", again.Keys)
	}
}

func TestKeysAreBounded(t *testing.T) {
	f := newFleet(t, fleet.Options{MaxKeys: 64})
	for i := range 10_000 {
		w := window(1, t0, t0+s, t0, t0+ms)
		w.Key.ID = signal.KeyID(i)
		f.Add(t0+s, []*signal.Window{w}, nil)
	}
	st := f.Stats()
	if st.Keys > 128 || st.Overflowed < 9_000 {
		t.Errorf("keys %d, overflowed %d; want at most 128, and the rest", st.Keys, st.Overflowed)
	}
}

func TestTotalsCountEachEpisodeOnceAndNeverFall(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	var last fleet.CacheTotals
	for i := range signal.Nanos(10) {
		now := t0 + (i+1)*s
		if i < 3 { // one burst that is told in three windows
			w := window(1, now-s, now, now-s, now, now)
			w.Busy = 2 * time.Second
			f.Add(now, []*signal.Window{w}, nil)
		}
		f.Tick(now)
		c := f.Totals(now)[0]
		if c.Duplicates < last.Duplicates || c.Wasted < last.Wasted || c.Recomputes < last.Recomputes {
			t.Fatalf("fell from %+v to %+v", last, c)
		}
		last = c
	}
	if last.Recomputes != 6 || last.Duplicates != 3 || last.Wasted != 3*time.Second || last.Busy != 6*time.Second || last.InFlightPeak != 2 {
		t.Errorf("totals %+v; want 6 recomputes, 3 duplicates, 3s wasted of 6s, peak 2", last)
	}
}

func TestTotalsOfInventedCachesAreBounded(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	for i := range 5000 {
		w := window(1, t0, t0+s, t0, t0+ms)
		w.Cache = fmt.Sprintf("cache-%d", i)
		f.Add(t0+s, []*signal.Window{w}, nil)
	}
	if n := len(f.Totals(t0 + s)); n != 1000 {
		t.Errorf("totals of %d caches; want 1000", n)
	}
	f.Tick(t0 + 25*3600*s)
	if n := len(f.Totals(t0 + 25*3600*s)); n != 0 {
		t.Errorf("totals of %d caches a day later; want none", n)
	}
}

// TestOrderDoesNotMatter gives one set of windows in many orders, with
// repetitions, and wants the same ticks.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type spec struct{ n, start, length, second int }
		specs := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) spec {
			return spec{rapid.IntRange(1, 5).Draw(rt, "instance"), rapid.IntRange(0, 900).Draw(rt, "start"), rapid.IntRange(0, 1500).Draw(rt, "length"), rapid.IntRange(0, 3).Draw(rt, "second")}
		}), 1, 30).Draw(rt, "windows")
		seed := rapid.Uint64().Draw(rt, "seed")
		run := func(shuffle bool) []signal.Tick {
			f := newFleet(t, fleet.Options{})
			rng := rand.New(rand.NewPCG(seed, 1))
			var ticks []signal.Tick
			for second := range 8 {
				now := t0 + time5(second+1)
				var ws []*signal.Window
				for i, sp := range specs {
					if sp.second != second {
						continue
					}
					start := t0 + time5(second) + signal.Nanos(sp.start)*ms
					end := start + signal.Nanos(sp.length)*ms
					if end > now {
						end = 0
					}
					w := window(sp.n, t0+time5(second), now, start, end)
					w.Start += signal.Nanos(i) // windows of one source are told apart
					w.Intervals[0].ID = uint64(i + 1)
					ws = append(ws, w)
				}
				if shuffle {
					rng.Shuffle(len(ws), func(i, j int) { ws[i], ws[j] = ws[j], ws[i] })
				}
				f.Add(now, ws, nil)
				tick := *f.Tick(now)
				for i := range tick.Episodes {
					e := &tick.Episodes[i]
					if e.PeakLow < 0 || e.PeakHigh < e.PeakLow || e.Wasted < 0 || e.Duplicates > e.Window.Recomputes.Starts() {
						rt.Fatalf("impossible: %+v", *e)
					}
				}
				tick.Episodes = slices.Clone(tick.Episodes)
				for i := range tick.Episodes { // the window is only lent
					w := *tick.Episodes[i].Window
					tick.Episodes[i].Window = &w
				}
				ticks = append(ticks, tick)
			}
			return ticks
		}
		if diff := cmp.Diff(run(false), run(true)); diff != "" {
			rt.Fatalf("the order matters (-in order +shuffled):\n%s", diff)
		}
	})
}

func TestOptionsAreValidated(t *testing.T) {
	for _, o := range []fleet.Options{{Lateness: time.Hour}, {MaxKeys: 1}, {MaxSources: -1}} {
		if _, err := fleet.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}

func BenchmarkTick(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			f, err := fleet.New(fleet.Options{MaxKeys: 2 * n})
			if err != nil {
				b.Fatal(err)
			}
			now := t0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				now += 100 * s
				f.Tick(now) // what was before is forgotten
				now += s
				for i := range n {
					w := window(1, now-s, now, now-s, now)
					w.Key.ID = signal.KeyID(i)
					f.Add(now, []*signal.Window{w}, nil)
				}
				b.StartTimer()
				f.Tick(now)
			}
		})
	}
}
