package verify_test

import (
	"fmt"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/verify"
)

// Of 400 intervals that hold the truth with a chance of 0.95, 358 to 397 do but
// once in 10,000 times. `stampede-exporter lab verify` runs many more.
func TestIntervalsHoldTheTruthAsOftenAsTheySay(t *testing.T) {
	t.Parallel()
	for _, e := range []verify.Experiment{
		{Ratio: 0.1, Traffic: 2, CV: 1, Cycles: 40, Keys: 1},
		{Ratio: 0.5, Traffic: 0.5, CV: 0.5, Cycles: 40, Keys: 4},
		{Ratio: 1, Traffic: 1, CV: 0.3, Cycles: 100, Keys: 10},
		{Ratio: 1.3, Traffic: 2, CV: 1, Cycles: 100, Keys: 1},
		{Ratio: 0.1, Traffic: 1, CV: 0.5, Cycles: 60, Keys: 4, Control: true},
	} {
		t.Run(fmt.Sprintf("%+v", e), func(t *testing.T) {
			t.Parallel()
			o, err := e.Run(400, 400, 11)
			if err != nil {
				t.Fatal(err)
			}
			if o.Covered < 358 || o.Covered > 397 {
				t.Errorf("%d of %d intervals hold the ratio", o.Covered, o.Runs)
			}
			if n := o.Verdicts[verify.Verified]; e.Ratio >= 0.5 && n > 400/20 {
				t.Errorf("%d of %d are verified, and a ratio of %g is none to verify", n, o.Runs, e.Ratio)
			}
			if n := o.Verdicts[verify.Verified]; e.Ratio <= 0.1 && n < 400*8/10 {
				t.Errorf("%d of %d are verified, at a true ratio of %g", n, o.Runs, e.Ratio)
			}
		})
	}
}
