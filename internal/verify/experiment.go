package verify

import (
	"math"
	"math/rand/v2"
	"time"
)

// Experiment is a comparison whose true answer is known, to find out how often
// [Compare] is right.
type Experiment struct {
	Ratio   float64 `json:"ratio"`   // true S after over S before
	Traffic float64 `json:"traffic"` // reads after over reads before
	CV      float64 `json:"cv"`      // of what cycles make of the same load: standard deviation over mean
	Cycles  int     `json:"cycles"`  // of each period
	Keys    int     `json:"keys"`    // they are spread over
	// Control adds keys that were not changed, and makes S of all keys double
	// by itself in the second period.
	Control bool `json:"control"`
}

// Outcome is what came of many runs of an [Experiment].
type Outcome struct {
	Experiment
	Runs     int
	Covered  int // intervals that held the true ratio
	Verdicts map[Verdict]int
}

// Run compares simulated cycles so many times, each run with a seed of its own
// made from seed.
func (e Experiment) Run(runs, resamples int, seed uint64) (Outcome, error) {
	out := Outcome{Experiment: e, Runs: runs, Verdicts: map[Verdict]int{}}
	for i := range runs {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		r, err := Compare(e.draw(rng), Options{Resamples: resamples, Seed: rng.Uint64()})
		if err != nil {
			return out, err
		}
		out.Verdicts[r.Verdict]++
		if truth := Number(e.Ratio); r.Interval.Low <= truth && truth <= r.Interval.High {
			out.Covered++
		}
	}
	return out, nil
}

// A key is read 30 to 900 times a second and takes 0.4 s to recompute.
const (
	experimentDelta              = 0.4
	experimentSlow, experimentTo = 30, 900
	controlDrift                 = 2
)

func (e Experiment) draw(rng *rand.Rand) Input {
	in := Input{Delta: func(uint64) float64 { return experimentDelta }}
	rates := make([]float64, e.Keys)
	for i := range rates {
		rates[i] = experimentSlow * math.Pow(float64(experimentTo)/experimentSlow, rng.Float64())
	}
	drift := 1.0
	if e.Control {
		drift = controlDrift
		in.ControlBefore = e.arm(rng, rates, 1, 1, 0)
		in.ControlAfter = e.arm(rng, rates, drift, e.Traffic, 1)
	}
	in.Before = e.arm(rng, rates, 1, 1, 0)
	in.After = e.arm(rng, rates, e.Ratio*drift, e.Traffic, 1)
	return in
}

// arm draws the cycles of one period. Each key's are a minute apart.
func (e Experiment) arm(rng *rand.Rand, rates []float64, s, traffic float64, period int) Arm {
	a := make(Arm, e.Cycles)
	for i := range a {
		rate := rates[i%e.Keys] * traffic
		a[i] = Cycle{
			Key: uint64(i % e.Keys), At: time.Unix(int64(period)*7*24*3600+int64(i/e.Keys)*60, 0),
			Rate: rate, Starts: 1 + poisson(rng, s*rate*experimentDelta*gamma(rng, e.CV)),
		}
	}
	return a
}

// gamma draws from a gamma distribution with mean 1 and that coefficient of
// variation (Marsaglia and Tsang, 2000).
func gamma(rng *rand.Rand, cv float64) float64 {
	if cv == 0 {
		return 1
	}
	shape := 1 / (cv * cv)
	boost := 1.0
	k := shape
	if k < 1 {
		boost, k = math.Pow(rng.Float64(), 1/k), k+1
	}
	d := k - 1.0/3
	for {
		x := rng.NormFloat64()
		v := 1 + x/math.Sqrt(9*d)
		if v <= 0 {
			continue
		}
		v *= v * v
		if math.Log(1-rng.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v * boost / shape
		}
	}
}

// poisson draws from a Poisson distribution, by counting arrivals; in parts, as
// e^-mean must not vanish.
func poisson(rng *rand.Rand, mean float64) uint64 {
	var n uint64
	for mean > 0 {
		part := min(mean, 500)
		mean -= part
		for limit, p := math.Exp(-part), rng.Float64(); p > limit; p *= rng.Float64() {
			n++
		}
	}
	return n
}
