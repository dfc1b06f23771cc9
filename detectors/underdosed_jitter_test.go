package detectors_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

func newUnderdosedJitter(t testing.TB, c detectors.UnderdosedJitterConfig) detectors.Detector {
	t.Helper()
	d, err := detectors.NewUnderdosedJitter(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// scattered are so many keys whose deadlines lie at random over a span.
func scattered(seed uint64, in, keys int, over time.Duration) []due {
	rng := rand.New(rand.NewPCG(seed, 0))
	var ds []due
	for range keys {
		ds = append(ds, due{in + int(rng.Int64N(int64(over))/int64(second)), 1})
	}
	return ds
}

// 1,000 keys of 0.4 s at 8 at once take 50 s, and should be spread over 62.5 s.
func TestUnderdosedJitterOf1000Keys(t *testing.T) {
	tests := []struct {
		spread time.Duration
		want   []string
	}{
		{second, []string{"2s ticket"}},
		{6 * second, []string{"2s ticket"}},
		{12 * second, []string{"2s ticket"}},
		{50 * second, []string{"2s ticket"}},
		{62500 * ms, nil},
		{75 * second, nil},
	}
	for _, tc := range tests {
		t.Run(tc.spread.String(), func(t *testing.T) {
			for seed := range uint64(20) {
				got := watchCache(newUnderdosedJitter(t, detectors.UnderdosedJitterConfig{}), forecast(1, 2, scattered(seed, 60, 1000, tc.spread)...))
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("seed %d: findings (-want +got):\n%s", seed, diff)
				}
			}
		})
	}
}

func TestUnderdosedJitter(t *testing.T) {
	tests := []struct {
		name  string
		ticks ticks
		want  []string
	}{
		{"less than two seconds of work is not worth a word", forecast(1, 5, due{60, 40}), nil},
		{"a bit more is, if it is at once", forecast(1, 5, due{60, 60}), []string{"2s ticket"}},
		{"a cache that is busy throughout is no cohort", forecast(1, 5, evenly(1, 280, 19)...), nil},
		{"two cohorts of different lives are judged apart", forecast(1, 5, append(evenly(60, 30, 15), evenly(200, 30, 15)...)...), nil},
		{"one of them is enough", forecast(1, 5, append(evenly(60, 30, 15), due{200, 200})...), []string{"2s ticket"}},
		{"it clears ten minutes after the cohort has come", append(forecast(1, 60, due{50, 500}), forecast(61, 700)...), []string{"2s ticket", "10m50s cleared"}},
		{"silence does not clear it", append(forecast(1, 60, due{50, 500}), secondsOf(61, 700, silent)...), []string{"2s ticket"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, watchCache(newUnderdosedJitter(t, detectors.UnderdosedJitterConfig{}), tc.ticks)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// A healthy cache has hundreds of seconds in which chance could look like a
// cohort.
func TestUnderdosedJitterDoesNotMistakeChance(t *testing.T) {
	for seed := range uint64(200) {
		got := watchCache(newUnderdosedJitter(t, detectors.UnderdosedJitterConfig{}), forecast(1, 2, scattered(seed, 1, 14*280, 280*second)...))
		if got != nil {
			t.Errorf("seed %d: it says %v", seed, got)
		}
	}
}

func TestUnderdosedJitterSaysWhatItKnows(t *testing.T) {
	f, _ := found(newUnderdosedJitter(t, detectors.UnderdosedJitterConfig{}), forecast(1, 2, evenly(60, 12, 80)...))
	for name, want := range map[string][2]float64{
		"spread.observed": {11.9, 12.1}, "spread.required": {58, 60.1}, "keys": {960, 960}, "refill": {47, 48}, "ahead": {59, 59},
		"deadlines.peak": {80, 80}, "recompute.p50": {0.39, 0.4}, "recompute.p99": {0.39, 0.4},
	} {
		if got := evidence(&f, name); got < want[0] || got > want[1] {
			t.Errorf("%s is %v, want %v to %v", name, got, want[0], want[1])
		}
	}
	if f.Evidence[0].Name != "spread.observed" || f.Key.ID != 0 || f.Onset != after(2*second) {
		t.Errorf("first evidence %q, key %v, onset %v", f.Evidence[0].Name, f.Key, f.Onset)
	}
	if want := "Cache feed: 960 keys stored together expire within 12.0 s; origin db needs them spread over 59.2 s."; f.Summary != want {
		t.Errorf("summary %q, want %q", f.Summary, want)
	}
}
