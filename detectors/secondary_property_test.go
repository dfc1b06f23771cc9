package detectors_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// secondary are the detectors of locks, builds and early refresh.
func secondary(t testing.TB) []detectors.Detector {
	must := made(t)
	return []detectors.Detector{
		must(newBypass()), must(newPoisoning()), must(newExcess()), must(newIneffective()), must(newLockConvoy()),
		must(newLockLost()), must(newOrphanedLock()), must(newProcessLocal()), must(newStaleOverwrite()),
	}
}

// wild draws numbers, many of them extreme.
type wild struct{ *rand.Rand }

func (r wild) count() uint64 {
	switch r.IntN(8) {
	case 0:
		return r.Uint64()
	case 1:
		return math.MaxUint64
	case 2, 3:
		return 0
	}
	return r.Uint64N(200)
}

func (r wild) span() time.Duration {
	switch r.IntN(8) {
	case 0:
		return time.Duration(r.Uint64())
	case 1:
		return 0
	}
	return time.Duration(r.Int64N(int64(10 * second)))
}

func (r wild) near(at signal.Nanos) signal.Nanos {
	switch r.IntN(10) {
	case 0:
		return signal.Nanos(r.Uint64())
	case 1:
		return 0
	}
	return at.Add(time.Duration(r.Int64N(int64(20*second))) - 15*second)
}

func (r wild) window(at signal.Nanos) *signal.Window {
	w := &signal.Window{
		Source: signal.Source{Service: "shop"}, Cache: "feed",
		Key:   signal.Key{ID: signal.KeyID(r.IntN(4)), Group: "feed:*", Text: "feed:secret"},
		Start: r.near(at), End: r.near(at), MissPeak: uint32(r.count()), InFlightPeak: uint32(r.count()),
		Unknown: signal.Unknown(r.IntN(64)), Busy: r.span(), BusyMax: r.span(), Coalesced: r.count(), Duplicates: r.count(),
		Lookups:       signal.Lookups{Hits: r.count(), Misses: r.count()},
		Invalidations: r.count(), InvalidatedAt: r.near(at),
		Stores: signal.Stores{Count: r.count(), Stale: r.count()},
		Early:  signal.Early{Count: r.count(), LeadSum: r.span(), LeadMax: r.span(), DeltaMax: r.span()},
		Locks: signal.Locks{
			Attempts: r.count(), Acquired: r.count(), Waits: r.count(), WaitSum: r.span(), WaitMax: r.span(), WaitPeak: uint32(r.count()),
			Holds: r.count(), HoldSum: r.span(), HoldMax: r.span(), Lost: r.count(), Waiting: uint32(r.count()), Held: uint32(r.count()), HeldSince: r.near(at),
		},
	}
	for c := range signal.NumCauses {
		w.Recomputes.Started[c] = r.count()
		for o := range signal.NumOutcomes {
			w.Recomputes.Ended[c][o] = r.count()
		}
	}
	for range r.IntN(6) {
		w.Intervals = append(w.Intervals, signal.Interval{
			ID: r.Uint64N(20), Start: r.near(at), End: r.near(at),
			Cause: signal.Cause(r.IntN(int(signal.NumCauses))), Outcome: signal.Outcome(r.IntN(int(signal.NumOutcomes))),
		})
	}
	for i := range r.IntN(4) {
		w.Shares = append(w.Shares, signal.Share{
			Source:     signal.Source{Service: "shop", Instance: string(rune('a' + i)), Build: []string{"", "v1", "v2"}[r.IntN(3)]},
			Recomputes: r.count(), InFlightPeak: uint32(r.count()), MissPeak: uint32(r.count()), Coalesced: r.count(),
		})
	}
	return w
}

func (r wild) tick(at signal.Nanos) *signal.Tick {
	t := &signal.Tick{At: at, Urgent: r.IntN(4) == 0}
	protection := [][]string{nil, {signal.ProtectXFetch}, {signal.ProtectSingleFlight, signal.ProtectLock, signal.ProtectXFetch}}[r.IntN(3)]
	c := feed(claims(signal.Claims{
		Protection: protection, Timeout: r.span(), Attempts: r.IntN(4), Beta: []float64{0, -1, 1, 1e-300, math.Inf(1), math.NaN(), 10}[r.IntN(7)],
		Clamp: r.span(), LockTTL: r.span(),
	}))
	c.Work = signal.Work{Busy: r.span(), Early: r.count()}
	for i := range c.Work.Durations {
		if r.IntN(8) == 0 {
			c.Work.Durations[i] = r.Uint64N(100)
		}
	}
	if r.IntN(6) == 0 {
		silent(&c)
	}
	if r.IntN(8) > 0 {
		t.Caches = []signal.CacheState{c}
	}
	for range r.IntN(5) {
		low := r.IntN(40)
		t.Episodes = append(t.Episodes, signal.Episode{
			Started: r.near(at), Window: r.window(at), PeakLow: low, PeakHigh: low + r.IntN(3), Onset: r.near(at), Wasted: r.span(), Duplicates: r.count(),
			KnownBefore: r.IntN(2) == 0, TTL: r.span(), Offset: r.span(), Final: r.IntN(2) == 0,
		})
	}
	if !t.Urgent {
		// One state a key, as the fleet makes them.
		for id := range signal.KeyID(4) {
			if r.IntN(2) == 0 {
				w := r.window(at)
				w.Key.ID = id
				t.Keys = append(t.Keys, signal.KeyState{Window: w, TTL: r.span()})
			}
		}
	}
	return t
}

// holdToPromise fails if what was found breaks the contract of a detector.
func holdToPromise(t interface{ Fatalf(string, ...any) }, d detectors.Detector, known map[signal.KeyID]detectors.Severity, tk *signal.Tick, fs []detectors.Finding) {
	told := map[signal.KeyID]bool{}
	for _, f := range fs {
		before, open := known[f.Key.ID]
		switch {
		case f.Detector != d.Doc().ID || told[f.Key.ID]:
			t.Fatalf("%s: key %d is told twice, or as %s", d.Doc().ID, f.Key.ID, f.Detector)
		case f.Cleared && (!open || tk.Urgent):
			t.Fatalf("%s: key %d clears: open %v, urgent %v", f.Detector, f.Key.ID, open, tk.Urgent)
		case open && f.Severity < before:
			t.Fatalf("%s: key %d falls from %v to %v", f.Detector, f.Key.ID, before, f.Severity)
		case (f.Severity == detectors.Page) != (f.Priority == 1 || f.Priority == 2) || f.Severity == detectors.Page && !d.Doc().MayPage:
			t.Fatalf("%s: severity %v and priority %d", f.Detector, f.Severity, f.Priority)
		case f.Onset > tk.At || f.Detected > tk.At:
			t.Fatalf("%s: onset %d, detected %d, tick %d", f.Detector, f.Onset, f.Detected, tk.At)
		case f.Summary == "" || f.Advice == "" || len(f.Evidence) == 0 || strings.Contains(f.Summary+f.Advice, "secret"):
			t.Fatalf("%s: %+v", f.Detector, f)
		}
		for _, e := range f.Evidence {
			if math.IsNaN(e.Value) || math.IsInf(e.Value, 0) || e.Value < 0 || strings.Contains(e.Note, "secret") {
				t.Fatalf("%s: evidence %+v", f.Detector, e)
			}
		}
		told[f.Key.ID] = true
		if known[f.Key.ID] = f.Severity; f.Cleared {
			delete(known, f.Key.ID)
		}
	}
	for id := range known {
		if !tk.Urgent && !told[id] {
			t.Fatalf("%s: key %d is open and not told", d.Doc().ID, id)
		}
	}
}

func TestSecondaryDetectorsKeepTheContractWhateverTheyAreShown(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := wild{rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))}
		ds, other := secondary(t), secondary(t)
		known := make([]map[signal.KeyID]detectors.Severity, len(ds))
		for i := range known {
			known[i] = map[signal.KeyID]detectors.Severity{}
		}
		at := epoch
		for range rapid.IntRange(1, 60).Draw(rt, "ticks") {
			switch r.IntN(20) {
			case 0:
				at = at.Add(-10 * second)
			case 1:
				at = at.Add(20 * minute)
			default:
				at = at.Add(second)
			}
			tk := r.tick(at)
			var found [][]detectors.Finding
			for i, d := range ds {
				fs := d.Observe(tk)
				holdToPromise(rt, d, known[i], tk, fs)
				found = append(found, fs)
			}
			r.Shuffle(len(tk.Keys), func(i, j int) { tk.Keys[i], tk.Keys[j] = tk.Keys[j], tk.Keys[i] })
			r.Shuffle(len(tk.Caches), func(i, j int) { tk.Caches[i], tk.Caches[j] = tk.Caches[j], tk.Caches[i] })
			for i, d := range other {
				if diff := cmp.Diff(found[i], d.Observe(tk)); diff != "" {
					rt.Fatalf("%s, shuffled (-in order +shuffled):\n%s", d.Doc().ID, diff)
				}
				if diff := cmp.Diff(ds[i].(detectors.Limited).Limits(), d.(detectors.Limited).Limits()); diff != "" {
					rt.Fatalf("%s, shuffled: limits (-in order +shuffled):\n%s", d.Doc().ID, diff)
				}
			}
		}
	})
}

func TestSecondaryDetectorsLeaveTheTickAlone(t *testing.T) {
	make := func() *signal.Tick { return wild{rand.New(rand.NewPCG(5, 6))}.tick(epoch) }
	for _, d := range secondary(t) {
		tk := make()
		d.Observe(tk)
		if diff := cmp.Diff(make(), tk, cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })); diff != "" {
			t.Errorf("%s (-before +after):\n%s", d.Doc().ID, diff)
		}
	}
}

func TestSecondaryDetectorsAreBounded(t *testing.T) {
	for _, d := range secondary(t) {
		most := reflect.ValueOf(d).Elem().FieldByName("c").FieldByName("MaxKeys")
		id := signal.KeyID(0)
		for i := range 30 {
			at := time.Duration(i) * second
			tk := with(tick(at), feed(xfetch(1)))
			for range 1000 {
				id++
				tk.Keys = append(tk.Keys, key(at, keyID(id), locks(signal.Locks{Waiting: 1, Waits: 1, Lost: 1}), staleStores(1), invalidated(at), ran(uint64(id), at-second, at, signal.CauseEarly)))
			}
			if fs := d.Observe(tk); len(fs) > 1000 {
				t.Fatalf("%s: %d findings", d.Doc().ID, len(fs))
			}
			if n := detectors.Noted(d); most.IsValid() && n > int(most.Int()) {
				t.Fatalf("%s: %d keys are remembered, want %d at most", d.Doc().ID, n, most.Int())
			}
		}
	}
	t.Run("and say so", func(t *testing.T) {
		d := made(t)(newLockLost())
		tk := tick(second)
		for id := range signal.KeyID(1001) {
			tk.Keys = append(tk.Keys, key(second, keyID(id), locks(signal.Locks{Lost: 1})))
		}
		d.Observe(tk)
		if diff := cmp.Diff([]string{"feed: 1000 findings are open: there is no room for more."}, unsure(d)); diff != "" {
			t.Errorf("limits (-want +got):\n%s", diff)
		}
	})
}

func TestWrongConfigurationOfSecondaryDetectorsIsNamed(t *testing.T) {
	tests := []struct {
		c    detectors.Config
		want string
	}{
		{detectors.Config{CoalescingBypass: detectors.CoalescingBypassConfig{PageExcess: -1}}, "configure coalescing-bypass: page_excess is -1: want 1 to 1000000"},
		{detectors.Config{CoalescingBypass: detectors.CoalescingBypassConfig{TicketEpisodes: 17}}, "configure coalescing-bypass: ticket_episodes is 17: want 1 to 16"},
		{detectors.Config{CoalescingBypass: detectors.CoalescingBypassConfig{Chance: 0.1}}, "configure coalescing-bypass: chance is 0.1: want 1e-09 to 0.05"},
		{detectors.Config{DeltaPoisoning: detectors.DeltaPoisoningConfig{Factor: math.NaN()}}, "configure delta-poisoning: factor is NaN: want 1.5 to 100"},
		{detectors.Config{EarlyRefreshExcess: detectors.EarlyRefreshExcessConfig{Cycles: 65}}, "configure early-refresh-excess: cycles is 65: want 10 to 64"},
		{detectors.Config{EarlyRefreshIneffective: detectors.EarlyRefreshIneffectiveConfig{Reach: 1}}, "configure early-refresh-ineffective: reach is 1: want 2 to 100"},
		{detectors.Config{LockConvoy: detectors.LockConvoyConfig{Share: 2}}, "configure lock-convoy: share is 2: want 0.001 to 1"},
		{detectors.Config{LockConvoy: detectors.LockConvoyConfig{MaxKeys: 1}}, "configure lock-convoy: max_keys is 1: want 100 to 1000000"},
		{detectors.Config{LockLost: detectors.LockLostConfig{ForecastShare: 1.1}}, "configure lock-lost: forecast_share is 1.1: want 0.1 to 1"},
		{detectors.Config{OrphanedLock: detectors.OrphanedLockConfig{IdleTicks: 1}}, "configure orphaned-lock: idle_ticks is 1: want 2 to 60"},
		{detectors.Config{ProcessLocalCoalescing: detectors.ProcessLocalCoalescingConfig{Peak: 1}}, "configure process-local-coalescing: peak is 1: want 2 to 1000000"},
		{detectors.Config{StaleOverwrite: detectors.StaleOverwriteConfig{ClearAfter: 25 * time.Hour}}, "configure stale-overwrite: clear_after is 25h0m0s: want 1s to 24h0m0s"},
	}
	for _, tc := range tests {
		if _, err := detectors.All(tc.c); err == nil || err.Error() != tc.want {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}

func BenchmarkSecondaryDetectors(b *testing.B) {
	for _, d := range secondary(b) {
		b.Run(d.Doc().ID, func(b *testing.B) {
			tk := with(tick(second), feed(xfetch(1)))
			for id := range signal.KeyID(100_000) {
				k := key(second, keyID(id), locks(signal.Locks{Waits: 1, WaitMax: ms}), invalidated(second), ran(uint64(id), 0, second, signal.CauseEarly))
				k.Window.Early.Count = 1
				tk.Keys = append(tk.Keys, k)
			}
			b.ReportAllocs()
			for b.Loop() {
				d.Observe(tk)
			}
		})
	}
}
