package rig

import (
	"math"
	"math/rand/v2"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// Choice draws which of a workload's keys is read.
type Choice struct {
	keys  int
	alias alias // empty if all are read alike
}

// NewChoice returns what draws keys of w.
func NewChoice(w *scenario.Workload) Choice {
	c := Choice{keys: w.Keys}
	if w.Zipf > 0 && w.Keys > 1 {
		c.alias = newAlias(w.Keys, w.Zipf)
	}
	return c
}

// Key draws one, from 0.
func (c *Choice) Key(r *rand.Rand) int {
	switch {
	case c.keys == 1:
		return 0
	case c.alias.share == nil:
		return r.IntN(c.keys)
	default:
		return c.alias.draw(r.Float64())
	}
}

// Weight returns the share of reads that go to key i.
func (c *Choice) Weight(i int) float64 {
	switch {
	case i < 0 || i >= c.keys:
		return 0
	case c.alias.share == nil:
		return 1 / float64(c.keys)
	default:
		return math.Pow(float64(i+1), -c.alias.exponent) / c.alias.sum
	}
}

// alias draws from a finite distribution in constant time: Walker's method, as
// Vose set it up (A Linear Algorithm for Generating Random Numbers with a Given
// Distribution, 1991).
type alias struct {
	share    []float64 // of a column that is its own
	other    []int32   // whose the rest of it is
	exponent float64
	sum      float64 // of the weights
}

func newAlias(n int, exponent float64) alias {
	a := alias{share: make([]float64, n), other: make([]int32, n), exponent: exponent}
	for i := range n {
		a.share[i] = math.Pow(float64(i+1), -exponent)
		a.sum += a.share[i]
	}
	var small, large []int32
	for i := range n {
		a.share[i] *= float64(n) / a.sum
		a.other[i] = int32(i)
		if a.share[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		lo, hi := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		a.other[lo] = hi
		if a.share[hi] -= 1 - a.share[lo]; a.share[hi] < 1 {
			large = large[:len(large)-1]
			small = append(small, hi)
		}
	}
	for _, i := range append(small, large...) { // rounding is all that is left of them
		a.share[i] = 1
	}
	return a
}

// draw returns the number that u, uniform in [0, 1), stands for.
func (a *alias) draw(u float64) int {
	x := u * float64(len(a.share))
	i := int(x)
	if x-float64(i) < a.share[i] {
		return i
	}
	return int(a.other[i])
}
