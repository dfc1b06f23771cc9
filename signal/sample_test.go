package signal_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestTheMarginFollowsTheWeight(t *testing.T) {
	tests := []struct {
		name         string
		weight, keys float64
		want         float64
	}{
		{"all values are known", 0, 1000, 0},
		{"all values were looked at", 1, 1000, 0},
		{"one in five", 5, 400, 1.96 * 40},
		{"none were seen, which may be three by chance", 5, 0, 12},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := (signal.Sample{Weight: tc.weight}).Margin(tc.keys); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSamplesAndHotKeysMergeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sample := rapid.Custom(func(t *rapid.T) signal.Sample {
			return signal.Sample{Keys: rapid.Uint64Range(0, 1000).Draw(t, "keys"), Population: rapid.Uint64Range(0, 1000).Draw(t, "population"), Weight: rapid.Float64Range(0, 100).Draw(t, "weight")}
		})
		a, b := sample.Draw(rt, "a"), sample.Draw(rt, "b")
		ab, ba := a, b
		ab.Add(b)
		ba.Add(a)
		if ab != ba {
			rt.Errorf("%+v and %+v", ab, ba)
		}
		hot := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) signal.HotKey {
			return signal.HotKey{ID: signal.KeyID(rapid.IntRange(1, 30).Draw(t, "id")), Share: rapid.Float64Range(0, 1).Draw(t, "share"), Expiry: signal.Nanos(rapid.IntRange(0, 3).Draw(t, "expiry"))}
		}), 0, 30)
		x, y, z := hot.Draw(rt, "x"), hot.Draw(rt, "y"), hot.Draw(rt, "z")
		one := signal.MergeHotKeys(signal.MergeHotKeys(x, y), z)
		other := signal.MergeHotKeys(z, signal.MergeHotKeys(y, x))
		if diff := cmp.Diff(one, other); diff != "" {
			rt.Errorf("hot keys (-one +other):\n%s", diff)
		}
		if len(one) > signal.MaxHotKeys || !slices.IsSortedFunc(one, func(a, b signal.HotKey) int { return int(math.Copysign(1, b.Share-a.Share)) }) {
			rt.Errorf("%d hot keys: %+v", len(one), one)
		}
	})
}
