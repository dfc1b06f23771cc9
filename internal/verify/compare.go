package verify

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Input is what is compared.
type Input struct {
	Before, After Arm
	// ControlBefore and ControlAfter are cycles of keys that were not
	// changed, in the same two periods. What happened to them as well is not
	// the doing of the change (difference in differences). Both or neither.
	ControlBefore, ControlAfter Arm
	// Delta returns the seconds a recompute of a key took before the change.
	Delta func(key uint64) float64
	// Guardrails are what the change must not have made worse.
	Guardrails []Guardrail
}

// Options configure [Compare]. The zero value is what the documentation
// describes.
type Options struct {
	// Resamples is how often the clusters are drawn anew, 100 to 1,000,000.
	// Default 10,000.
	Resamples int
	// Seed sets the draws off: the same cycles and seed give the same result.
	Seed uint64
}

const defaultResamples = 10_000

func (o Options) withDefaults() (Options, error) {
	if o.Resamples == 0 {
		o.Resamples = defaultResamples
	}
	if o.Resamples < 100 || o.Resamples > 1_000_000 {
		return o, fmt.Errorf("Resamples is %d: want 100 to 1,000,000", o.Resamples)
	}
	return o, nil
}

// Interval is a two-sided 95 % confidence interval.
type Interval struct {
	Low  Number `json:"low"`
	High Number `json:"high"`
}

// Number is a number that may be infinite, or none; JSON has null for those.
type Number float64

// MarshalJSON implements [json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsInf(f, 0) && !math.IsNaN(f) {
		return json.Marshal(f)
	}
	return []byte("null"), nil
}

// Summary is one arm in numbers.
type Summary struct {
	Cycles      int     `json:"cycles"`
	Clusters    int     `json:"clusters"`    // what is resampled
	Effective   float64 `json:"effective"`   // clusters of equal exposure that would be worth as much
	Excess      float64 `json:"excess"`      // recomputes beyond the first
	Exposure    float64 `json:"exposure"`    // those a naive cache would have had
	Coefficient float64 `json:"coefficient"` // S
	Dispersion  float64 `json:"dispersion"`  // variance over mean of the excess, 1 for a Poisson process
}

// Result is the outcome of a comparison.
type Result struct {
	Before        Summary  `json:"before"`
	After         Summary  `json:"after"`
	ControlBefore *Summary `json:"control_before,omitempty"`
	ControlAfter  *Summary `json:"control_after,omitempty"`
	// Ratio is S after over S before, with controls over the same of the
	// controls; Interval is its bootstrap interval.
	Ratio    Number   `json:"ratio"`
	Interval Interval `json:"interval"`
	// QuasiPoisson is the interval of another method, as a check: if the two
	// disagree, trust neither.
	QuasiPoisson Interval `json:"quasi_poisson"`
	// ByCycle is set if there were too few (key, day) clusters, and single
	// cycles were resampled as if they were independent.
	ByCycle    bool        `json:"by_cycle,omitempty"`
	Guardrails []Guardrail `json:"guardrails,omitempty"`
	Verdict    Verdict     `json:"verdict"`
	// Reason says in a sentence why.
	Reason string `json:"reason"`
	// CyclesNeeded is how many cycles each period would need, by what was
	// seen so far, for four of five such comparisons to tell; 0 if the verdict
	// is not inconclusive.
	CyclesNeeded int `json:"cycles_needed,omitempty"`
}

// side is one arm that is compared: its clusters, and the sign with which the
// logarithm of its coefficient counts.
type side struct {
	clusters []cluster
	sign     float64
	name     string
}

// Compare says what the change did. It returns an error wrapping
// [ErrNoExposure] if an arm is empty.
func Compare(in Input, o Options) (*Result, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	sides, byCycle, err := in.sides()
	if err != nil {
		return nil, err
	}
	r := &Result{ByCycle: byCycle, Guardrails: slices.Clone(in.Guardrails)}
	r.summarise(sides)
	r.Ratio = Number(math.Exp(logRatio(sides)))
	r.QuasiPoisson = quasiPoisson(sides)
	r.Interval = bootstrap(sides, rand.New(rand.NewPCG(o.Seed, 1)), o.Resamples)
	r.judge(sides)
	return r, nil
}

// sides returns the arms to compare, after first.
func (in *Input) sides() (out []side, byCycle bool, err error) {
	arms := []struct {
		arm  Arm
		sign float64
		name string
	}{{in.After, 1, "after"}, {in.Before, -1, "before"}}
	if controls := len(in.ControlBefore) > 0; controls != (len(in.ControlAfter) > 0) {
		return nil, false, fmt.Errorf("controls are there in one period only: %w in the other", ErrNoExposure)
	} else if controls {
		arms = append(arms, []struct {
			arm  Arm
			sign float64
			name string
		}{{in.ControlAfter, -1, "control after"}, {in.ControlBefore, 1, "control before"}}...)
	}
	for _, a := range arms {
		byCycle = byCycle || a.arm.days() < minClusters
	}
	for _, a := range arms {
		cs, err := a.arm.clusters(in.Delta, byCycle)
		if err != nil {
			return nil, false, fmt.Errorf("cycles %s: %w", a.name, err)
		}
		out = append(out, side{cs, a.sign, a.name})
	}
	return out, byCycle, nil
}

func (r *Result) summarise(sides []side) {
	r.After, r.Before = summary(sides[0].clusters), summary(sides[1].clusters)
	if len(sides) > 2 {
		after, before := summary(sides[2].clusters), summary(sides[3].clusters)
		r.ControlAfter, r.ControlBefore = &after, &before
	}
}

func summary(cs []cluster) Summary {
	s := sums(cs)
	return Summary{
		Cycles: s.cycles, Clusters: len(cs), Effective: effective(cs), Excess: s.excess, Exposure: s.exposure,
		Coefficient: s.coefficient(), Dispersion: dispersion(cs),
	}
}

// logRatio returns the logarithm of the ratio; minus infinity if there was
// nothing to see after, plus infinity if there was nothing before.
func logRatio(sides []side) float64 {
	var sum float64
	for _, s := range sides {
		sum += s.sign * math.Log(sums(s.clusters).coefficient())
	}
	return sum
}
