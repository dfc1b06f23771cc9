package signal_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

func ok(id uint64, start, end signal.Nanos) signal.Interval {
	return signal.Interval{ID: id, Start: start, End: end, Cause: signal.CauseExpired, Outcome: signal.OutcomeOK}
}

func with(iv signal.Interval, o signal.Outcome) signal.Interval {
	iv.Outcome = o
	return iv
}

func of(iv signal.Interval, c signal.Cause) signal.Interval {
	iv.Cause = c
	return iv
}

func TestSweep(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		ivs  []signal.Interval
		now  signal.Nanos
		want signal.Overlap
	}{
		{name: "nothing"},
		{name: "one alone wastes nothing", ivs: []signal.Interval{ok(1, 10, 20)},
			want: signal.Overlap{Peak: 1, PeakAt: 10, Total: 10, Count: 1, Bursts: 1}},
		{name: "one after the other is no overlap", ivs: []signal.Interval{ok(1, 10, 20), ok(2, 20, 30)},
			want: signal.Overlap{Peak: 1, PeakAt: 10, Total: 20, Count: 2, Bursts: 2}},
		{name: "two at once waste the one that ends last", ivs: []signal.Interval{ok(1, 10, 30), ok(2, 19, 29)},
			want: signal.Overlap{Peak: 2, PeakAt: 19, Onset: 19, Total: 30, Wasted: 20, Count: 2, Bursts: 1}},
		{name: "one that fails is no survivor", ivs: []signal.Interval{with(ok(1, 10, 12), signal.OutcomeFailed), ok(2, 11, 31)},
			want: signal.Overlap{Peak: 2, PeakAt: 11, Onset: 11, Total: 22, Wasted: 2, Count: 2, Bursts: 1}},
		{name: "if all fail the first counts as needed", ivs: []signal.Interval{with(ok(1, 10, 12), signal.OutcomeFailed), with(ok(2, 11, 31), signal.OutcomeTimedOut)},
			want: signal.Overlap{Peak: 2, PeakAt: 11, Onset: 11, Total: 22, Wasted: 20, Count: 2, Bursts: 1}},
		{name: "a chain is one burst although no three overlap", ivs: []signal.Interval{ok(1, 10, 20), ok(2, 19, 30), ok(3, 29, 40)},
			want: signal.Overlap{Peak: 2, PeakAt: 19, Onset: 19, Total: 32, Wasted: 22, Count: 3, Bursts: 1}},
		{name: "early refreshes, warm-ups and negative look-ups are left out", ivs: []signal.Interval{
			ok(1, 10, 20), of(ok(2, 10, 20), signal.CauseEarly), of(ok(3, 10, 20), signal.CauseWarmup), of(ok(4, 10, 20), signal.CauseNegative)},
			want: signal.Overlap{Peak: 1, PeakAt: 10, Total: 10, Count: 1, Bursts: 1}},
		{name: "what runs lasts until now", now: 50, ivs: []signal.Interval{with(ok(1, 10, 0), signal.OutcomeUnknown), ok(2, 40, 45)},
			want: signal.Overlap{Peak: 2, PeakAt: 40, Onset: 40, Total: 45, Wasted: 40, Count: 2, Bursts: 1}},
		{name: "what starts now runs with what runs now", now: 50, ivs: []signal.Interval{with(ok(1, 10, 0), signal.OutcomeUnknown), with(ok(2, 50, 0), signal.OutcomeUnknown)},
			want: signal.Overlap{Peak: 2, PeakAt: 50, Onset: 50, Total: 40, Count: 2, Bursts: 1}},
		{name: "what starts after now has only just started", now: 50, ivs: []signal.Interval{with(ok(1, 60, 0), signal.OutcomeUnknown)},
			want: signal.Overlap{Peak: 1, PeakAt: 60, Count: 1, Bursts: 1}},
		{name: "what took no time has run", ivs: []signal.Interval{ok(2, 10, 20), ok(1, 10, 10)},
			want: signal.Overlap{Peak: 2, PeakAt: 10, Onset: 10, Total: 10, Wasted: 10, Count: 2, Bursts: 1}},
		{name: "an end before its start is no time", ivs: []signal.Interval{ok(1, 10, 5)},
			want: signal.Overlap{Peak: 1, PeakAt: 10, Count: 1, Bursts: 1}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := gocmp.Diff(tc.want, signal.Sweep(tc.ivs, tc.now)); diff != "" {
				t.Errorf("overlap (-want +got):\n%s", diff)
			}
		})
	}
}

// horizon is when a short history ends. Every instant of it can be looked at.
const horizon = 40

// history draws up to most intervals that begin between 1 and horizon.
func history(t *rapid.T, most int) []signal.Interval {
	one := rapid.Custom(func(t *rapid.T) signal.Interval {
		iv := signal.Interval{
			Start:   signal.Nanos(rapid.IntRange(1, horizon).Draw(t, "start")),
			Cause:   signal.Cause(rapid.IntRange(0, int(signal.NumCauses)-1).Draw(t, "cause")),
			Outcome: signal.Outcome(rapid.IntRange(1, int(signal.NumOutcomes)-1).Draw(t, "outcome")),
		}
		if iv.End = iv.Start + signal.Nanos(rapid.IntRange(0, 10).Draw(t, "length")); iv.End > horizon {
			iv.End, iv.Outcome = 0, signal.OutcomeUnknown
		}
		return iv
	})
	ivs := rapid.SliceOfN(one, 0, most).Draw(t, "intervals")
	for i := range ivs {
		ivs[i].ID = uint64(i + 1)
	}
	return ivs
}

// runsAt reports whether iv runs at t, of a history that is looked at when it
// ends.
func runsAt(iv signal.Interval, t signal.Nanos) bool {
	switch {
	case !iv.Cause.Provoked() || t < iv.Start:
		return false
	case iv.Running():
		return t <= horizon
	}
	return t < iv.End || t == iv.Start
}

// look counts what runs at each instant, which is what Sweep is short for.
func look(ivs []signal.Interval) (o signal.Overlap) {
	for t := signal.Nanos(1); t <= horizon+10; t++ {
		n := 0
		for _, iv := range ivs {
			if runsAt(iv, t) {
				n++
			}
		}
		if n > o.Peak {
			o.Peak, o.PeakAt = n, t
		}
		if n >= 2 && o.Onset == 0 {
			o.Onset = t
		}
	}
	return o
}

// groups splits provoked intervals into sets that overlap nothing outside.
func groups(ivs []signal.Interval) (out [][]signal.Interval) {
	meet := func(a, b signal.Interval) bool {
		for t := signal.Nanos(1); t <= horizon+10; t++ {
			if runsAt(a, t) && runsAt(b, t) {
				return true
			}
		}
		return false
	}
	for _, iv := range ivs {
		if !iv.Cause.Provoked() {
			continue
		}
		home := []signal.Interval{iv}
		out = slices.DeleteFunc(out, func(g []signal.Interval) bool {
			met := slices.ContainsFunc(g, func(o signal.Interval) bool { return meet(o, iv) })
			if met {
				home = append(home, g...)
			}
			return met
		})
		out = append(out, home)
	}
	return out
}

func length(iv signal.Interval) time.Duration {
	if iv.Running() {
		return (horizon - iv.Start).Sub(0)
	}
	return iv.End.Sub(iv.Start)
}

// needed returns the one interval of a burst whose work was not wasted.
func needed(g []signal.Interval) signal.Interval {
	slices.SortFunc(g, func(a, b signal.Interval) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) })
	best := g[0]
	for _, iv := range g {
		if iv.Outcome == signal.OutcomeOK && (best.Outcome != signal.OutcomeOK || iv.End < best.End) {
			best = iv
		}
	}
	return best
}

func TestSweepIsWhatCountingAtEveryInstantGives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ivs := history(t, 12)
		want := look(ivs)
		for _, g := range groups(ivs) {
			want.Bursts++
			want.Count += len(g)
			for _, iv := range g {
				want.Total += length(iv)
				want.Wasted += length(iv)
			}
			want.Wasted -= length(needed(g))
		}
		before := slices.Clone(ivs)
		if diff := gocmp.Diff(want, signal.Sweep(ivs, horizon)); diff != "" {
			t.Fatalf("overlap (-counted +swept):\n%s", diff)
		}
		if !slices.Equal(before, ivs) {
			t.Fatal("the intervals were changed")
		}
		if d := want.Duplicates(); d != uint64(want.Count-want.Bursts) {
			t.Fatalf("%d duplicates", d)
		}
	})
}

// many returns n intervals with distinct random IDs.
func many(rng *rand.Rand, n int) []signal.Interval {
	ivs := make([]signal.Interval, n)
	for i := range ivs {
		start := epoch + signal.Nanos(rng.Int64N(1000))
		ivs[i] = ok(rng.Uint64(), start, start+1+signal.Nanos(rng.Int64N(1000)))
	}
	return ivs
}

func TestSampleOfAUnionIsTheSampleOfSamples(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		most := rapid.IntRange(1, 60).Draw(t, "most")
		a, b := many(rng, rapid.IntRange(0, 80).Draw(t, "a")), many(rng, rapid.IntRange(0, 80).Draw(t, "b"))
		whole := signal.SampleIntervals(slices.Concat(a, b), most)
		parts := signal.SampleIntervals(slices.Concat(
			signal.SampleIntervals(slices.Clone(a), most), signal.SampleIntervals(slices.Clone(b), most)), most)
		if diff := gocmp.Diff(whole, parts, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("sample (-of the union +of the samples):\n%s", diff)
		}
		if want := min(most, len(a)+len(b)); len(whole) != want {
			t.Fatalf("%d intervals, want %d", len(whole), want)
		}
		inOrder := func(a, b signal.Interval) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
		}
		if !slices.IsSortedFunc(whole, inOrder) {
			t.Fatal("the sample is not in order")
		}
	})
}

func TestSampleIsFairToConsecutiveIDs(t *testing.T) {
	t.Parallel()
	ivs := make([]signal.Interval, 10_000) // as a source that counts up would make them
	for i := range ivs {
		ivs[i] = ok(uint64(i), epoch+signal.Nanos(i), epoch+signal.Nanos(i)+1)
	}
	early := 0
	for _, iv := range signal.SampleIntervals(ivs, 1000) {
		if iv.ID < 5000 {
			early++
		}
	}
	if early < 400 || early > 600 { // 500 expected, standard deviation 15
		t.Errorf("%d of 1000 are from the first half", early)
	}
}

func BenchmarkSweep(b *testing.B) {
	ivs := many(rand.New(rand.NewPCG(1, 1)), signal.MaxFleetIntervals)
	b.ReportAllocs()
	for b.Loop() {
		signal.Sweep(ivs, epoch)
	}
}
