package sim

import (
	"math"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// workload is a stream of reads. It is its own action: the next arrival.
type workload struct {
	c      *cache
	w      *scenario.Workload
	mean   float64 // nanoseconds between arrivals
	factor float64 // of load
	pick   alias
}

func newWorkload(s *Sim, w *scenario.Workload) *workload {
	per := 1.0
	if w.Arrivals == scenario.ArrivalsBurst {
		per = float64(w.Size)
	}
	l := &workload{c: s.cache(w.Cache), w: w, mean: per / w.Rate * float64(time.Second), factor: 1}
	if w.Zipf > 0 && w.Keys > 1 {
		l.pick = newAlias(w.Keys, w.Zipf)
	}
	l.c.grow(w.First + w.Keys)
	l.c.expectReads(l)
	return l
}

// gap draws the time to the next arrival.
func (w *workload) gap(s *Sim) int64 {
	d := w.mean / w.factor
	if w.w.Arrivals != scenario.ArrivalsEven {
		d *= s.arrivals.ExpFloat64()
	}
	return max(1, int64(d))
}

// run is one arrival: a read, or a burst of them at one instance.
func (w *workload) run(s *Sim) {
	s.agenda.push(s.now+w.gap(s), w)
	n := 1
	if w.w.Arrivals == scenario.ArrivalsBurst {
		n = w.w.Size
	}
	// Chance is drawn even if nobody is up: the arrivals must not depend on
	// what happens to the fleet.
	luck := s.arrivals.Uint64()
	for range n {
		e := w.c.entry(w.w.First + w.key(s))
		if len(s.up) == 0 {
			s.account.unserved()
			continue
		}
		s.read(s.up[luck%uint64(len(s.up))], e)
	}
}

func (w *workload) key(s *Sim) int {
	switch {
	case w.w.Keys == 1:
		return 0
	case w.pick.share == nil:
		return s.arrivals.IntN(w.w.Keys)
	default:
		return w.pick.draw(s.arrivals.Float64())
	}
}

// weight returns the share of w's reads that go to its key i.
func (w *workload) weight(i int) float64 {
	switch {
	case i < 0 || i >= w.w.Keys:
		return 0
	case w.pick.share == nil:
		return 1 / float64(w.w.Keys)
	default:
		return math.Pow(float64(i+1), -w.w.Zipf) / w.pick.sum
	}
}

// alias draws from a finite distribution in constant time: Walker's method, as
// Vose set it up (A Linear Algorithm for Generating Random Numbers with a Given
// Distribution, 1991).
type alias struct {
	share []float64 // of a column that is its own
	other []int32   // whose the rest of it is
	sum   float64   // of the weights
}

func newAlias(n int, exponent float64) alias {
	a := alias{share: make([]float64, n), other: make([]int32, n)}
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
