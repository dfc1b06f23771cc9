package score_test

import (
	"math"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/score"
)

func near(got, want float64) bool { return math.Abs(got-want) <= 5e-5*math.Max(1, math.Abs(want)) }

// The upper bounds are halves of quantiles of the chi-square distribution with
// 2n+2 degrees of freedom, which tables have.
func TestPoissonUpperIsWhatTablesSay(t *testing.T) {
	for n, want := range map[int]float64{-1: 2.99573, 0: 2.99573, 1: 4.74386, 2: 6.29579, 3: 7.75366, 5: 10.51303, 10: 16.96222, 100: 118.07928} {
		if got := score.PoissonUpper(n); !near(got, want) {
			t.Errorf("%d events: the bound is %.5f, want %.5f", n, got, want)
		}
	}
	if got := score.PoissonUpper(0); math.Abs(got+math.Log(0.05)) > 1e-12 {
		t.Errorf("no events: %v, want -ln(0.05)", got)
	}
}

func TestPoissonUpperGrowsAndIsNeverFarAboveTheCount(t *testing.T) {
	last := 0.0
	for n := range 300 {
		got := score.PoissonUpper(n)
		if got <= last || got <= float64(n) || got > float64(n)+4*math.Sqrt(float64(n))+4 {
			t.Fatalf("%d events: the bound is %v, after %v", n, got, last)
		}
		last = got
	}
}

func TestShareLowerIsWhatTablesSay(t *testing.T) {
	for _, c := range []struct {
		hits, n int
		want    float64
	}{
		{0, 0, 0}, {0, 10, 0}, {10, 10, math.Pow(0.05, 0.1)}, {1, 1, 0.05}, {9, 10, 0.60584}, {5, 10, 0.22244}, {95, 100, 0.89776},
		// 59 of 59 is what it takes to claim 95 %.
		{59, 59, 0.95049}, {58, 58, 0.94966},
	} {
		if got := score.ShareLower(c.hits, c.n); !near(got, c.want) {
			t.Errorf("%d of %d: the bound is %.5f, want %.5f", c.hits, c.n, got, c.want)
		}
	}
}
