package verify_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/verify"
)

var monday = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// arm is n cycles of one key, a minute apart, with starts recomputes each, in
// turn.
func arm(n int, starts ...uint64) verify.Arm {
	a := make(verify.Arm, n)
	for i := range a {
		a[i] = verify.Cycle{Key: 1, At: monday.Add(time.Duration(i) * time.Minute), Rate: 300, Starts: starts[i%len(starts)]}
	}
	return a
}

func delta(uint64) float64 { return 0.4 }

func compare(t *testing.T, in verify.Input) *verify.Result {
	t.Helper()
	if in.Delta == nil {
		in.Delta = delta
	}
	r, err := verify.Compare(in, verify.Options{Resamples: 2000})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerdict(t *testing.T) {
	naive := arm(40, 121, 110, 132)
	slow := verify.Guardrail{Name: "p99", Unit: "s", Before: 0.4, After: 0.9, Most: 0.5}
	tests := []struct {
		name   string
		in     verify.Input
		want   verify.Verdict
		reason string
	}{
		{"a tenth is verified", verify.Input{Before: naive, After: arm(40, 12, 14, 13)}, verify.Verified, "fell to 9.98 % of what they were"},
		{"the same is no effect", verify.Input{Before: naive, After: arm(40, 120, 112, 131)}, verify.NoEffect, "are what they were"},
		{"half as much again is harmful", verify.Input{Before: naive, After: arm(40, 181, 165, 190)}, verify.Harmful, "rose to"},
		{"two thirds are neither", verify.Input{Before: naive, After: arm(40, 80, 75, 88)}, verify.Inconclusive, "too wide to tell"},
		{"a tenth at the cost of slow readers is harmful", verify.Input{Before: naive, After: arm(40, 12, 14, 13), Guardrails: []verify.Guardrail{slow}}, verify.Harmful, "p99 is 0.9 s, and may be 0.5 at most"},
		{"nineteen cycles prove nothing", verify.Input{Before: naive, After: arm(19, 12, 14, 13)}, verify.Inconclusive, "fewer than 20"},
		{"no duplicate at all is verified, once three would have shown", verify.Input{Before: naive, After: arm(40, 1)}, verify.Verified, "at most 0.0"},
		{"nothing to reduce is nothing reduced", verify.Input{Before: arm(40, 1), After: arm(40, 1)}, verify.Inconclusive, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := compare(t, tc.in)
			if r.Verdict != tc.want || !strings.Contains(r.Reason, tc.reason) {
				t.Errorf("%s: %s (interval %v): want %s: %s", r.Verdict, r.Reason, r.Interval, tc.want, tc.reason)
			}
			if (r.Verdict == verify.Inconclusive) != (r.CyclesNeeded > 0) {
				t.Errorf("%s and %d cycles needed", r.Verdict, r.CyclesNeeded)
			}
		})
	}
}

func TestCoefficientIsThatOfItsDefinition(t *testing.T) {
	r := compare(t, verify.Input{Before: arm(40, 121), After: arm(40, 13)})
	got := []float64{r.Before.Coefficient, r.After.Coefficient, float64(r.Ratio)}
	want := []float64{120.0 / (300 * 0.4), 12.0 / (300 * 0.4), 0.1}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-9 {
			t.Errorf("S before, after and their ratio are %v, want %v", got, want)
		}
	}
}

func TestTrafficIsNoEffect(t *testing.T) {
	after := arm(40, 241, 219, 263) // twice the reads of a naive cache
	for i := range after {
		after[i].Rate = 600
	}
	if r := compare(t, verify.Input{Before: arm(40, 121, 110, 132), After: after}); r.Verdict != verify.NoEffect {
		t.Errorf("%s: %s", r.Verdict, r.Reason)
	}
}

func TestWhatHappensToControlsTooIsNotTheDoingOfTheChange(t *testing.T) {
	in := verify.Input{Before: arm(40, 121, 110, 132), After: arm(40, 41, 37, 44)} // a third
	if r := compare(t, in); r.Verdict != verify.Verified {
		t.Fatalf("without controls: %s: %s", r.Verdict, r.Reason)
	}
	in.ControlBefore, in.ControlAfter = arm(40, 121, 115, 126), arm(40, 41, 38, 43)
	r := compare(t, in)
	if r.Verdict != verify.NoEffect || math.Abs(float64(r.Ratio)-1) > 0.03 {
		t.Errorf("controls fell as much: %s, ratio %.2f", r.Verdict, r.Ratio)
	}
}

func TestOneKeyWithAllTheReadsIsNotManyCycles(t *testing.T) {
	before, after := arm(40, 3, 2), arm(40, 2, 1)
	for _, a := range []verify.Arm{before, after} {
		for i := range a {
			a[i].Key = uint64(i)
		}
		a[0].Rate, a[0].Starts = 30_000, 12_000
	}
	r := compare(t, verify.Input{Before: before, After: after})
	if r.Verdict != verify.Inconclusive || r.After.Effective > 10 {
		t.Errorf("%s with %.1f effective cycles: %s", r.Verdict, r.After.Effective, r.Reason)
	}
}

func TestDaysAreResampledWhole(t *testing.T) {
	// All cycles of one day agree, and days do not: 25 days of 20 cycles are
	// 25 facts, not 500.
	days := func(scale uint64) (a verify.Arm) {
		rng := rand.New(rand.NewPCG(7, scale))
		for d := range 25 {
			starts := 1 + scale*uint64(rng.IntN(200))
			for i := range 20 {
				a = append(a, verify.Cycle{Key: 1, At: monday.AddDate(0, 0, d).Add(time.Duration(i) * time.Minute), Rate: 300, Starts: starts})
			}
		}
		return a
	}
	r := compare(t, verify.Input{Before: days(1), After: days(1)})
	if r.ByCycle || r.Before.Clusters != 25 || r.Before.Cycles != 500 {
		t.Errorf("%d clusters of %d cycles, by cycle: %v", r.Before.Clusters, r.Before.Cycles, r.ByCycle)
	}
	if width := r.Interval.High / r.Interval.Low; width < 1.5 {
		t.Errorf("interval %v is as narrow as if cycles of a day were independent", r.Interval)
	}
}

func TestOrderOfCyclesChangesNothing(t *testing.T) {
	in := verify.Input{Before: arm(60, 121, 110, 132, 90), After: arm(60, 12, 14, 13, 1)}
	want := compare(t, in)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, a := range []verify.Arm{in.Before, in.After} {
		rng.Shuffle(len(a), func(i, j int) { a[i], a[j] = a[j], a[i] })
	}
	if diff := cmp.Diff(want, compare(t, in)); diff != "" {
		t.Errorf("(-in order +shuffled):\n%s", diff)
	}
}

func TestCyclesNeededAreThoseOfTheFormula(t *testing.T) {
	// Two thirds, alternating between 40 and 200: CV of about 2/3 in each arm.
	in := verify.Input{Before: arm(40, 41, 201), After: arm(40, 28, 134)}
	r := compare(t, in)
	// (1.96 + 0.84)^2 (0.667^2 + 0.66^2) / ln(2/3)^2 = 42
	if r.Verdict != verify.Inconclusive || r.CyclesNeeded < 38 || r.CyclesNeeded > 48 {
		t.Errorf("%s, %d cycles needed: want about 42", r.Verdict, r.CyclesNeeded)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	good := arm(30, 10, 12)
	unread := slices.Clone(good)
	for i := range unread {
		unread[i].Rate = 0
	}
	strange := slices.Clone(good)
	strange[3].Rate = math.NaN()
	tests := []struct {
		name string
		in   verify.Input
		o    verify.Options
		want string
	}{
		{"no cycle after", verify.Input{Before: good}, verify.Options{}, "cycles after: no cycle of a key that was read"},
		{"keys nobody read", verify.Input{Before: unread, After: good}, verify.Options{}, "cycles before: no cycle of a key that was read"},
		{"a rate that is no number", verify.Input{Before: good, After: strange}, verify.Options{}, "cycle 3 of key 0000000000000001 has NaN reads"},
		{"controls of one period", verify.Input{Before: good, After: good, ControlAfter: good}, verify.Options{}, "controls are there in one period only"},
		{"too few resamples", verify.Input{Before: good, After: good}, verify.Options{Resamples: 10}, "Resamples is 10: want 100 to 1,000,000"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tc.in.Delta = delta
			if _, err := verify.Compare(tc.in, tc.o); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
	if _, err := verify.Compare(verify.Input{Before: good, Delta: delta}, verify.Options{}); !errors.Is(err, verify.ErrNoExposure) {
		t.Errorf("error is %v, want ErrNoExposure in it", err)
	}
}

func TestWhatIsNoNumberIsNullInJSON(t *testing.T) {
	r := compare(t, verify.Input{Before: arm(40, 1), After: arm(40, 1)})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"ratio":null,"interval":{"low":0,"high":null}`) {
		t.Errorf("got %s", text)
	}
}
