package detectors_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

func TestBinomialTail(t *testing.T) {
	tests := []struct {
		n, x int
		p    float64
		want float64
	}{
		{20, 11, 0.2, 0.000563414}, {20, 10, 0.2, 0.00259483}, {20, 11, math.Exp(-3), 5.14232e-10},
		{1, 1, 0.5, 0.5}, {5, 0, 0.1, 1}, {5, 6, 0.9, 0}, {5, 3, 0, 0}, {5, 5, 1, 1}, {64, 1, 0.2, 1 - math.Pow(0.8, 64)},
	}
	for _, tc := range tests {
		if got := detectors.BinomialTail(tc.n, tc.x, tc.p); math.Abs(got-tc.want) > 1e-5*max(tc.want, 1e-9) {
			t.Errorf("at least %d of %d at %v: %v, want %v", tc.x, tc.n, tc.p, got, tc.want)
		}
	}
}

func TestStudentTailIsGoodEnough(t *testing.T) {
	// From tables of Student's t: the value exceeded once in a thousand.
	for df, at := range map[float64]float64{3: 10.215, 4: 7.173, 5: 5.893, 8: 4.501, 10: 4.144, 20: 3.552, 60: 3.232} {
		if got := detectors.StudentTail(at, df); got < 0.0009 || got > 0.0013 {
			t.Errorf("%v at %v degrees of freedom is exceeded with chance %v, want 0.001", at, df, got)
		}
	}
	if got := detectors.StudentTail(318.3, 1); got < 0.001 {
		t.Errorf("at one degree of freedom: %v, want no less than 0.001", got)
	}
}

func TestRatiosAreComparedByCluster(t *testing.T) {
	type pairs = [][2]float64
	alike := pairs{{80, 100}, {82, 100}, {79, 100}, {81, 100}}
	tests := []struct {
		name      string
		b, a      pairs
		low, high float64
	}{
		{"far below, all alike", pairs{{5, 100}, {4, 100}, {6, 100}, {5, 100}}, alike, 0, 1e-5},
		{"the same", alike, alike, 1, 1},
		{"above", alike, pairs{{5, 100}, {4, 100}}, 1, 1},
		{"one cluster says nothing", pairs{{0, 1000}}, alike, 1, 1},
		{"clusters that differ among themselves say little", pairs{{90, 100}, {0, 100}, {0, 100}}, alike, 0.05, 0.3},
		{"none at all in all of few is not certain", pairs{{0, 3}, {0, 3}}, pairs{{2, 3}, {2, 3}}, 0.001, 0.1},
		{"nothing", nil, alike, 1, 1},
	}
	for _, tc := range tests {
		if got := detectors.Below(tc.b, tc.a); !(got >= tc.low && got <= tc.high) {
			t.Errorf("%s: %v, want %v to %v", tc.name, got, tc.low, tc.high)
		}
	}
}

// TestComparisonsAreWrongAsSeldomAsTheySay compares two builds that are alike,
// whose instances are not.
func TestComparisonsAreWrongAsSeldomAsTheySay(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	arm := func() (ps [][2]float64) {
		for range 5 {
			p, n := 0.5+0.4*rng.Float64(), 20+rng.IntN(40)
			hits := 0
			for range n {
				if rng.Float64() < p {
					hits++
				}
			}
			ps = append(ps, [2]float64{float64(hits), float64(n)})
		}
		return ps
	}
	const runs = 20_000
	wrong := map[float64]int{}
	for range runs {
		got := detectors.Below(arm(), arm())
		for _, level := range []float64{0.05, 0.001} {
			if got < level {
				wrong[level]++
			}
		}
	}
	if n := wrong[0.05]; n > runs*0.07 || n < runs*0.02 {
		t.Errorf("wrong at 5 %% in %d of %d", n, runs)
	}
	if n := wrong[0.001]; n > 60 {
		t.Errorf("wrong at 0.1 %% in %d of %d, want about 20", n, runs)
	}
}
