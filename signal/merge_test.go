package signal_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// recompute is one run as it happened; windows tell parts of it.
func recompute(id uint64) signal.Interval {
	start := epoch + signal.Nanos(id%7)*50
	return signal.Interval{ID: id, Start: start, End: start + 10 + signal.Nanos(id%5)*40,
		Cause: signal.Cause(id % uint64(signal.NumCauses)), Outcome: signal.Outcome(1 + id%4)}
}

// reports draws up to most distinct recomputes out of a few, each as running or
// as ended, or as somebody might tell it who is mistaken.
func reports(t *rapid.T, most int) []signal.Interval {
	ids := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 20), 0, most, rapid.ID).Draw(t, "ids")
	var ivs []signal.Interval
	for _, id := range ids {
		iv := recompute(id)
		switch rapid.IntRange(0, 4).Draw(t, "told as") {
		case 0, 1:
			iv.End, iv.Outcome = 0, signal.OutcomeUnknown
		case 2:
			iv.Start -= signal.Nanos(rapid.IntRange(0, 2).Draw(t, "earlier"))
			iv.Cause = signal.Cause(rapid.IntRange(0, 2).Draw(t, "cause"))
		}
		ivs = append(ivs, iv)
	}
	return signal.SampleIntervals(ivs, signal.MaxIntervals)
}

func counts(t *rapid.T, label string, to ...*uint64) {
	for _, n := range to {
		*n = uint64(rapid.IntRange(0, 3).Draw(t, label))
	}
}

func lengths(t *rapid.T, label string, to ...*time.Duration) {
	for _, d := range to {
		*d = time.Duration(rapid.IntRange(0, 5).Draw(t, label))
	}
}

// instant draws an instant that may be unknown.
func instant(t *rapid.T, label string) signal.Nanos {
	if rapid.Bool().Draw(t, label+" known") {
		return epoch + signal.Nanos(rapid.IntRange(0, 1000).Draw(t, label))
	}
	return 0
}

func source(t *rapid.T) signal.Source {
	return signal.Source{
		Service:  rapid.SampledFrom([]string{"", "shop", "mail"}).Draw(t, "service"),
		Instance: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "instance"),
		Build:    rapid.SampledFrom([]string{"", "v1", "v2"}).Draw(t, "build"),
	}
}

// window draws what one source may have seen.
func window(t *rapid.T) *signal.Window {
	w := &signal.Window{
		Source: source(t), Cache: "feed",
		Key: signal.Key{ID: 7,
			Group: rapid.SampledFrom([]string{"", "feed:*", "other"}).Draw(t, "group"),
			Text:  rapid.SampledFrom([]string{"", "feed:1", "feed:2"}).Draw(t, "text")},
		Generation: rapid.SampledFrom([]string{"", "g1", "g2"}).Draw(t, "generation"),
		Start:      instant(t, "start"), End: instant(t, "end"),
		Unknown:      signal.Unknown(rapid.IntRange(0, 63).Draw(t, "unknown")),
		MissPeak:     uint32(rapid.IntRange(0, 3).Draw(t, "miss peak")),
		InFlightPeak: uint32(rapid.IntRange(0, 3).Draw(t, "in-flight peak")),
		Intervals:    reports(t, 8),
		Sampled:      rapid.Bool().Draw(t, "sampled"),
		Stores:       signal.Stores{ExpiryMin: instant(t, "expiry min"), ExpiryMax: instant(t, "expiry max")},
	}
	for range rapid.IntRange(0, 2).Draw(t, "versions") {
		w.Stores.Versions.Note(uint64(rapid.IntRange(0, 3).Draw(t, "version")), instant(t, "written"))
	}
	cause := rapid.IntRange(0, int(signal.NumCauses)-1).Draw(t, "cause")
	outcome := rapid.IntRange(0, int(signal.NumOutcomes)-1).Draw(t, "outcome")
	counts(t, "count", &w.Recomputes.Started[cause], &w.Recomputes.Ended[cause][outcome],
		&w.Lookups.Hits, &w.Lookups.Misses, &w.Lookups.Stale, &w.Lookups.Errors, &w.Duplicates, &w.WhileFresh, &w.Coalesced,
		&w.Stores.Count, &w.Stores.NoExpiry, &w.Invalidations, &w.Early.Count, &w.Locks.Attempts, &w.Locks.Acquired,
		&w.Locks.Waits, &w.Locks.Holds, &w.Locks.Lost, &w.Retries.Requests, &w.Retries.Attempts)
	lengths(t, "length", &w.Busy, &w.BusyMax, &w.Stores.TTLMin, &w.Stores.TTLMax, &w.Early.LeadSum, &w.Early.LeadMax,
		&w.Early.DeltaMax, &w.Locks.WaitSum, &w.Locks.WaitMax, &w.Locks.HoldSum, &w.Locks.HoldMax)
	w.Locks.WaitPeak = uint32(rapid.IntRange(0, 3).Draw(t, "wait peak"))
	return w
}

func clone(w *signal.Window) *signal.Window {
	c := *w
	c.Intervals, c.Shares = slices.Clone(w.Intervals), slices.Clone(w.Shares)
	return &c
}

// inTurn merges clones of ws one after the other.
func inTurn(ws []*signal.Window) *signal.Window {
	all := clone(ws[0])
	for _, w := range ws[1:] {
		all.Merge(w)
	}
	return all
}

// anyhow merges clones of ws in an order and grouping drawn from t.
func anyhow(t *rapid.T, ws []*signal.Window) *signal.Window {
	rest := make([]*signal.Window, len(ws))
	for i, w := range ws {
		rest[i] = clone(w)
	}
	for len(rest) > 1 {
		i := rapid.IntRange(0, len(rest)-1).Draw(t, "into")
		into := rest[i]
		rest = slices.Delete(rest, i, i+1)
		j := rapid.IntRange(0, len(rest)-1).Draw(t, "from")
		into.Merge(rest[j])
		rest[j] = into
	}
	return rest[0]
}

func TestMergeDoesNotDependOnOrderOrGrouping(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ws := rapid.SliceOfN(rapid.Custom(window), 2, 6).Draw(t, "windows")
		if diff := gocmp.Diff(inTurn(ws), anyhow(t, ws)); diff != "" {
			t.Fatalf("merged (-in turn +anyhow):\n%s", diff)
		}
	})
}

func TestMergeOfTwoIsTheSameBothWays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := window(t), window(t)
		if diff := gocmp.Diff(inTurn([]*signal.Window{a, b}), inTurn([]*signal.Window{b, a})); diff != "" {
			t.Fatalf("merged (-b into a +a into b):\n%s", diff)
		}
	})
}

func TestMergeLeavesTheOtherWindowAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := window(t), window(t), window(t)
		b.Merge(c)
		before := clone(b)
		a.Merge(b)
		a.Shift(time.Second)
		for i := range a.Shares {
			a.Shares[i].Recomputes = 1 << 40
		}
		if diff := gocmp.Diff(before, b); diff != "" {
			t.Fatalf("the merged window (-before +after):\n%s", diff)
		}
	})
}

func TestMergeMayTravelInBetween(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ws := rapid.SliceOfN(rapid.Custom(window), 3, 5).Draw(t, "windows")
		part := inTurn(ws[1:])
		line, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		var arrived signal.Window
		if err := json.Unmarshal(line, &arrived); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(inTurn(ws), inTurn([]*signal.Window{ws[0], &arrived})); diff != "" {
			t.Fatalf("merged (-at once +by way of another exporter):\n%s", diff)
		}
	})
}

func TestMergeBeyondTheBoundDoesNotDependOnOrderOrGrouping(t *testing.T) {
	t.Parallel()
	// Merges of whole fleets, as another exporter would send them: few, large,
	// and telling partly of the same recomputes.
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		pool := many(rng, rapid.SampledFrom([]int{signal.MaxFleetIntervals, signal.MaxFleetIntervals + 1, 6000}).Draw(t, "recomputes"))
		var ws []*signal.Window
		for range 4 {
			w := &signal.Window{Cache: "feed", Key: signal.Key{ID: 7}}
			for _, i := range rng.Perm(len(pool))[:rng.IntN(signal.MaxFleetIntervals)] {
				iv := pool[i]
				if rng.IntN(2) == 0 {
					iv.End, iv.Outcome = 0, signal.OutcomeUnknown
				}
				w.Intervals = append(w.Intervals, iv)
			}
			w.Intervals = signal.SampleIntervals(w.Intervals, signal.MaxFleetIntervals)
			ws = append(ws, w)
		}
		want := inTurn(ws)
		if got := anyhow(t, ws); !reflect.DeepEqual(want, got) { // cheaper than a diff
			t.Fatalf("merged (-in turn +anyhow):\n%s", gocmp.Diff(want, got))
		}
		distinct := map[uint64]bool{}
		for _, w := range ws {
			for _, iv := range w.Intervals {
				distinct[iv.ID] = true
			}
		}
		if sampled := len(distinct) > signal.MaxFleetIntervals; want.Sampled != sampled || len(want.Intervals) != min(len(distinct), signal.MaxFleetIntervals) {
			t.Fatalf("%d recomputes make %d intervals, sampled %v", len(distinct), len(want.Intervals), want.Sampled)
		}
	})
}

func TestMergeOfIntervals(t *testing.T) {
	t.Parallel()
	running := signal.Interval{ID: 1, Start: epoch, Cause: signal.CauseExpired}
	ended := signal.Interval{ID: 1, Start: epoch, End: epoch + 400, Cause: signal.CauseExpired, Outcome: signal.OutcomeOK}
	other := signal.Interval{ID: 2, Start: epoch + 1, Cause: signal.CauseExpired}
	tests := []struct {
		name       string
		a, b, want []signal.Interval
	}{
		{"one that is told running, then ended, is one that ended", []signal.Interval{running}, []signal.Interval{ended}, []signal.Interval{ended}},
		{"also if the later report comes first", []signal.Interval{ended}, []signal.Interval{running}, []signal.Interval{ended}},
		{"one that is told running twice runs once", []signal.Interval{running}, []signal.Interval{running}, []signal.Interval{running}},
		{"two are in order of start", []signal.Interval{other}, []signal.Interval{running}, []signal.Interval{running, other}},
		{"none and one are one", nil, []signal.Interval{running}, []signal.Interval{running}},
		{"one and none too", []signal.Interval{running}, nil, []signal.Interval{running}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := signal.Window{Intervals: tc.a}
			got.Merge(&signal.Window{Intervals: tc.b})
			if diff := gocmp.Diff(tc.want, got.Intervals); diff != "" {
				t.Errorf("intervals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMergeOfOneInstanceAddsUp(t *testing.T) {
	t.Parallel()
	src := signal.Source{Service: "shop", Instance: "a", Build: "v1"}
	first := signal.Window{Source: src, InFlightPeak: 3, MissPeak: 9}
	first.Recomputes.Started[signal.CauseExpired] = 4
	first.Recomputes.Started[signal.CauseEarly] = 5
	second := signal.Window{Source: src, InFlightPeak: 2, MissPeak: 1}
	second.Recomputes.Started[signal.CauseCold] = 1
	first.Merge(&second)
	want := []signal.Share{{Source: src, Recomputes: 5, InFlightPeak: 3, MissPeak: 9}}
	if diff := gocmp.Diff(want, first.Shares); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if first.Source != src || first.Instances() != 1 {
		t.Errorf("source %v, %d instances, want the one it was", first.Source, first.Instances())
	}
	if low, high := first.PeakBounds(epoch); low != 3 || high != 3 {
		t.Errorf("peak %d to %d, want 3: one process knows its own", low, high)
	}
}

func TestMergeNamesTheSourcesTheyHaveInCommon(t *testing.T) {
	t.Parallel()
	a := signal.Source{Service: "shop", Instance: "a", Build: "v1"}
	tests := []struct {
		name    string
		b, want signal.Source
	}{
		{"all", a, a},
		{"the service and the build", signal.Source{Service: "shop", Instance: "b", Build: "v1"}, signal.Source{Service: "shop", Build: "v1"}},
		{"the service", signal.Source{Service: "shop", Instance: "b", Build: "v2"}, signal.Source{Service: "shop"}},
		{"nothing, for an instance belongs to a service", signal.Source{Service: "mail", Instance: "a", Build: "v1"}, signal.Source{}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := signal.Window{Source: a}
			if w.Merge(&signal.Window{Source: tc.b}); w.Source != tc.want {
				t.Errorf("source %+v, want %+v", w.Source, tc.want)
			}
		})
	}
}

// fleet is what really happened to one key, in milliseconds, and how its
// instances tell of it: a window each second, with every recompute that ran in
// it while there is room, and the end of each that was told of as running.
type fleet struct {
	byInstance [][]signal.Interval
	until      signal.Nanos
}

const fleetSecond = 1000

func drawFleet(t *rapid.T) fleet {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	f := fleet{until: signal.Nanos(rapid.IntRange(1, 4).Draw(t, "seconds") * fleetSecond)}
	busy := rapid.SampledFrom([]int{3, 40, 200}).Draw(t, "recomputes")
	id := uint64(0)
	for range rapid.IntRange(1, 4).Draw(t, "instances") {
		var ivs []signal.Interval
		for range rng.IntN(busy + 1) {
			id++
			start := 1 + signal.Nanos(rng.Int64N(int64(f.until)))
			ivs = append(ivs, ok(id, start, start+1+signal.Nanos(rng.Int64N(1500))))
		}
		f.byInstance = append(f.byInstance, ivs)
	}
	return f
}

// peak counts what ran at each instant from from to to.
func peak(ivs []signal.Interval, from, to signal.Nanos) int {
	running := make([]int, to-from+1)
	for _, iv := range ivs {
		for t := max(iv.Start, from); t < iv.End && t <= to; t++ {
			running[t-from]++
		}
	}
	return slices.Max(running)
}

// windows returns what instance n tells.
func (f *fleet) windows(n int) (ws []*signal.Window) {
	told := map[uint64]bool{} // as running
	for from := signal.Nanos(0); from < f.until; from += fleetSecond {
		to := from + fleetSecond
		w := &signal.Window{Source: signal.Source{Instance: fmt.Sprint(n)}, Start: from, End: to}
		w.InFlightPeak = uint32(peak(f.byInstance[n], from, to))
		var due, rest []signal.Interval
		for _, iv := range f.byInstance[n] {
			if iv.Start > to || iv.End <= from {
				continue
			}
			if iv.End > to {
				iv.End, iv.Outcome = 0, signal.OutcomeUnknown
			}
			if told[iv.ID] {
				due = append(due, iv)
			} else {
				rest = append(rest, iv)
			}
		}
		w.Sampled = len(due)+len(rest) > signal.MaxIntervals
		w.Intervals = append(due, signal.SampleIntervals(rest, signal.MaxIntervals-len(due))...)
		w.Intervals = signal.SampleIntervals(w.Intervals, signal.MaxIntervals)
		for _, iv := range w.Intervals {
			told[iv.ID] = iv.Running()
		}
		ws = append(ws, w)
	}
	return ws
}

func TestPeakBoundsHoldTheTruth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFleet(t)
		var ws []*signal.Window
		for n := range f.byInstance {
			ws = append(ws, f.windows(n)...)
		}
		w := anyhow(t, ws)
		truth := peak(slices.Concat(f.byInstance...), 0, f.until)
		low, high := w.PeakBounds(f.until)
		if low > truth || truth > high {
			t.Fatalf("%d to %d, truth is %d", low, high, truth)
		}
		if !w.Sampled && low != high {
			t.Fatalf("%d to %d although every interval is known", low, high)
		}
	})
}

func TestPeakBoundsOfReaders(t *testing.T) {
	t.Parallel()
	a := signal.Window{Source: signal.Source{Instance: "a"}, MissPeak: 30}
	if low, high := a.MissPeakBounds(); low != 30 || high != 30 {
		t.Errorf("%d to %d for one source, want 30", low, high)
	}
	a.Merge(&signal.Window{Source: signal.Source{Instance: "b"}, MissPeak: 12})
	if low, high := a.MissPeakBounds(); low != 30 || high != 42 {
		t.Errorf("%d to %d for two, want 30 to 42", low, high)
	}
}
