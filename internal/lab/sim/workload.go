package sim

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// workload is a stream of reads. It is its own action: the next arrival.
type workload struct {
	c      *cache
	w      *scenario.Workload
	mean   float64 // nanoseconds between arrivals
	factor float64 // of load
	pick   rig.Choice
}

func newWorkload(s *Sim, w *scenario.Workload) *workload {
	per := 1.0
	if w.Arrivals == scenario.ArrivalsBurst {
		per = float64(w.Size)
	}
	l := &workload{c: s.cache(w.Cache), w: w, mean: per / w.Rate * float64(time.Second), factor: 1, pick: rig.NewChoice(w)}
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
		e := w.c.entry(w.w.First + w.pick.Key(s.arrivals))
		if len(s.up) == 0 {
			s.account.Unserved(s.now)
			continue
		}
		s.read(s.up[luck%uint64(len(s.up))], e)
	}
}
