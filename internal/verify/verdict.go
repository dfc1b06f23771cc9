package verify

import (
	"fmt"
	"math"
)

// Verdict is the answer.
type Verdict string

// Verdicts.
const (
	// Verified: S is at most half of what it was, with 95 % confidence, and
	// no guardrail failed.
	Verified Verdict = "verified"
	// Harmful: S is more than it was, with 95 % confidence, or a guardrail
	// failed.
	Harmful Verdict = "harmful"
	// NoEffect: S is within a fourth of what it was, with 95 % confidence.
	NoEffect Verdict = "no effect"
	// Inconclusive: too few cycles, or too different ones, to tell.
	Inconclusive Verdict = "inconclusive"
)

const (
	verifiedBelow         = 0.5
	sameLow, sameHigh     = 0.8, 1.25
	minCycles             = 20 // of each arm, and clusters of equal exposure; fewer prove nothing
	detectable            = 0.84162
	maxCyclesNeeded       = 1_000_000
	smallestReduction     = 0.05 // of the logarithm, below which no number of cycles is worth naming
	guardrailRelativeSlop = 1e-9
)

// Guardrail is a quantity that the change must not have made worse: more is
// worse.
type Guardrail struct {
	Name   string  `json:"name"` // "p99", "lock wait", "stale age"
	Unit   string  `json:"unit"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Most is what After may be at most.
	Most float64 `json:"most"`
}

// Failed reports whether the guardrail was broken. A number that is none breaks
// it.
func (g *Guardrail) Failed() bool {
	return math.IsNaN(g.After) || g.After > g.Most*(1+guardrailRelativeSlop)
}

// judge sets the verdict and its reason.
func (r *Result) judge(sides []side) {
	for i := range r.Guardrails {
		if g := &r.Guardrails[i]; g.Failed() {
			r.Verdict = Harmful
			r.Reason = fmt.Sprintf("%s is %g %s, and may be %g at most; it was %g.", g.Name, g.After, g.Unit, g.Most, g.Before)
			return
		}
	}
	if fewest := r.fewest(); fewest < minCycles {
		r.inconclusive(sides, fmt.Sprintf("A period has cycles worth %.1f of equal weight only: fewer than %d prove nothing.", fewest, minCycles))
		return
	}
	switch i := r.Interval; {
	case i.High <= verifiedBelow:
		r.Verdict = Verified
		r.Reason = fmt.Sprintf("Duplicate recomputes fell to %s of what they were; with 95 %% confidence to at most %s.", percent(r.Ratio), percent(i.High))
	case i.Low > 1:
		r.Verdict = Harmful
		r.Reason = fmt.Sprintf("Duplicate recomputes rose to %s of what they were; with 95 %% confidence to at least %s.", percent(r.Ratio), percent(i.Low))
	case i.Low >= sameLow && i.High <= sameHigh:
		r.Verdict = NoEffect
		r.Reason = fmt.Sprintf("Duplicate recomputes are what they were: %s of it, with 95 %% confidence between %s and %s.", percent(r.Ratio), percent(i.Low), percent(i.High))
	default:
		r.inconclusive(sides, fmt.Sprintf("Duplicate recomputes are %s of what they were, with 95 %% confidence between %s and %s: too wide to tell.", percent(r.Ratio), percent(i.Low), percent(i.High)))
	}
}

func percent(n Number) string {
	x := float64(n)
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return "any multiple"
	}
	return fmt.Sprintf("%.3g %%", 100*x)
}

// fewest returns the cycles of the smallest arm, or what they are worth if some
// weigh much more than others.
func (r *Result) fewest() float64 {
	least := math.Inf(1)
	for _, s := range []*Summary{&r.Before, &r.After, r.ControlBefore, r.ControlAfter} {
		if s != nil {
			least = min(least, float64(s.Cycles), s.Effective)
		}
	}
	return least
}

func (r *Result) inconclusive(sides []side, why string) {
	r.Verdict = Inconclusive
	r.CyclesNeeded = max(minCycles, r.needed(sides))
	r.Reason = fmt.Sprintf("%s About %d cycles in each period would tell.", why, r.CyclesNeeded)
}

// needed returns the cycles each arm needs for its interval to leave out 1, or
// if the ratio is below a half, that: with a power of 80 %, by the spread that
// was seen (Cohen, 1988, for a two-sided test of normal estimates).
func (r *Result) needed(sides []side) int {
	var variance float64 // of the logarithm of the ratio, if each arm had one cycle
	for _, s := range sides {
		e := spread(s.clusters)
		variance += e * e * float64(sums(s.clusters).cycles)
	}
	distance := math.Abs(math.Log(float64(r.Ratio)))
	if r.Ratio < verifiedBelow {
		distance = math.Log(verifiedBelow / float64(r.Ratio))
	}
	if math.IsInf(distance, 0) || math.IsNaN(distance) || variance == 0 {
		return minCycles
	}
	distance = max(distance, smallestReduction)
	z := normal975 + detectable
	return int(min(maxCyclesNeeded, math.Ceil(z*z*variance/(distance*distance))))
}
