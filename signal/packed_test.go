package signal_test

import (
	"cmp"
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const epoch = signal.Nanos(1_790_000_000_123_456_789)

func intervals(t *rapid.T) []signal.Interval {
	one := rapid.Custom(func(t *rapid.T) signal.Interval {
		iv := signal.Interval{
			ID:      rapid.Uint64().Draw(t, "id"),
			Start:   signal.Nanos(rapid.Int64Min(0).Draw(t, "start")),
			Cause:   signal.Cause(rapid.IntRange(0, int(signal.NumCauses)-1).Draw(t, "cause")),
			Outcome: signal.Outcome(rapid.IntRange(0, int(signal.NumOutcomes)-1).Draw(t, "outcome")),
		}
		if rapid.Bool().Draw(t, "ended") {
			iv.End = signal.Nanos(rapid.Int64Range(max(1, int64(iv.Start)), math.MaxInt64).Draw(t, "end"))
		}
		return iv
	})
	ivs := rapid.SliceOfN(one, 0, signal.MaxIntervals).Draw(t, "intervals")
	slices.SortFunc(ivs, func(a, b signal.Interval) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
	return ivs
}

func TestPackedIntervalsComeBackExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := intervals(t)
		base := signal.Nanos(rapid.Int64Min(0).Draw(t, "base"))
		got, err := signal.ParseIntervals(signal.AppendIntervals(nil, base, want), base, len(want))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatal(gocmp.Diff(want, got))
		}
	})
}

func TestPackedIntervals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		in   []signal.Interval
		want []signal.Interval
		size int // most bytes
	}{
		{"none take no bytes", nil, nil, 0},
		{
			"one that runs has no end",
			[]signal.Interval{{ID: 7, Start: epoch - 5, Cause: signal.CauseCold}},
			[]signal.Interval{{ID: 7, Start: epoch - 5, Cause: signal.CauseCold}},
			5,
		},
		{
			"one that took no time has ended",
			[]signal.Interval{{ID: 7, Start: epoch, End: epoch, Outcome: signal.OutcomeOK}},
			[]signal.Interval{{ID: 7, Start: epoch, End: epoch, Outcome: signal.OutcomeOK}},
			6,
		},
		{
			"an end before its start is taken as the start",
			[]signal.Interval{{ID: 7, Start: epoch, End: epoch - 1}},
			[]signal.Interval{{ID: 7, Start: epoch, End: epoch}},
			6,
		},
		{
			"order is restored",
			[]signal.Interval{{ID: 2, Start: epoch + 1}, {ID: 9, Start: epoch}, {ID: 1, Start: epoch}},
			[]signal.Interval{{ID: 1, Start: epoch}, {ID: 9, Start: epoch}, {ID: 2, Start: epoch + 1}},
			11,
		},
		{
			"a full window of one source costs under 12 bytes a recompute", burst(signal.MaxIntervals), burst(signal.MaxIntervals),
			12 * signal.MaxIntervals,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := signal.AppendIntervals(nil, epoch, tt.in)
			if len(b) > tt.size {
				t.Errorf("packed into %d bytes: want at most %d", len(b), tt.size)
			}
			got, err := signal.ParseIntervals(b, epoch, signal.MaxIntervals)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// burst is n recomputes of 400 ms that start within 400 ms, by one source.
func burst(n int) []signal.Interval {
	ivs := make([]signal.Interval, n)
	for i := range ivs {
		start := epoch + signal.Nanos(i)*6_250_123
		ivs[i] = signal.Interval{
			ID: 0xfeedface_00000000 + uint64(i), Start: start, End: start + 400_001_234 + signal.Nanos(i),
			Cause: signal.CauseExpired, Outcome: signal.OutcomeOK,
		}
	}
	return ivs
}

func TestAppendIntervalsExtends(t *testing.T) {
	t.Parallel()
	b := signal.AppendIntervals([]byte("head"), epoch, burst(3))
	if string(b[:4]) != "head" {
		t.Errorf("starts with %q", b[:4])
	}
	got, err := signal.ParseIntervals(b[4:], epoch, 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(burst(3), got); diff != "" {
		t.Error(diff)
	}
}

func TestParseIntervalsRefuses(t *testing.T) {
	t.Parallel()
	good := signal.AppendIntervals(nil, epoch, burst(3))
	count := func(n uint64, rest ...byte) []byte {
		return append(binary.AppendUvarint([]byte{1}, n), rest...)
	}
	for _, tt := range []struct {
		name string
		in   []byte
		want string
	}{
		{"another version", append([]byte{2}, good[1:]...), "parse intervals: version is 2: want 1"},
		{"no count", []byte{1}, "parse intervals: truncated"},
		{"more than the limit", signal.AppendIntervals(nil, epoch, burst(4)), "parse intervals: count is 4: want at most 3"},
		{"a count without intervals", count(3), "parse intervals: truncated"},
		{"a huge count", count(math.MaxUint64), "parse intervals: count is 18446744073709551615: want at most 3"},
		{"a cut interval", good[:len(good)-1], "parse interval 2: truncated"},
		{"bytes left over", append(slices.Clone(good), 0), "parse intervals: 1 bytes left over"},
		{"bytes after no intervals", count(0, 1), "parse intervals: 1 bytes left over"},
		{"an unknown cause", count(1, 0, 0, 0x0f), "parse interval 0: cause is 15: want less than 8"},
		{"an unknown outcome", count(1, 0, 0, 0x70), "parse interval 0: outcome is 7: want less than 5"},
		{"a start before 1970", append(binary.AppendVarint(count(1, 0), -int64(epoch)-1), 0, 0), "parse interval 0: start is before 1970"},
		{"an end that overflows", count(1, append([]byte{0, 0, 0x80}, binary.AppendUvarint(nil, math.MaxInt64)...)...), "parse interval 0: end is out of range"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := signal.ParseIntervals(tt.in, epoch, 3)
			if err == nil || err.Error() != tt.want {
				t.Errorf("error is %v: want %s", err, tt.want)
			}
			if got != nil {
				t.Errorf("got %v besides an error", got)
			}
		})
	}
}

func TestParseIntervalsBelievesNoCount(t *testing.T) {
	b := binary.AppendUvarint([]byte{1}, 1<<40)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := signal.ParseIntervals(b, epoch, 1<<41); err == nil {
		t.Error("a count beyond the input was taken")
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4096 {
		t.Errorf("%d bytes allocated for a lie: want an error's worth", n)
	}
}

func FuzzParseIntervals(f *testing.F) {
	f.Add([]byte{}, int64(epoch))
	f.Add(signal.AppendIntervals(nil, epoch, burst(3)), int64(epoch))
	f.Add(signal.AppendIntervals(nil, 0, []signal.Interval{{ID: math.MaxUint64, Start: math.MaxInt64}}), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, base int64) {
		ivs, err := signal.ParseIntervals(b, signal.Nanos(base), signal.MaxFleetIntervals)
		if err != nil {
			return
		}
		again, err := signal.ParseIntervals(signal.AppendIntervals(nil, signal.Nanos(base), ivs), signal.Nanos(base), len(ivs))
		if err != nil {
			t.Fatalf("what was parsed does not pack: %v", err)
		}
		if !slices.Equal(again, ivs) {
			t.Fatal(gocmp.Diff(ivs, again))
		}
	})
}
