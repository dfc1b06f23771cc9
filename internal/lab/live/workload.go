package live

import (
	"math/rand/v2"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// workload is a stream of reads.
type workload struct {
	r      *Rig
	c      *cache
	w      *scenario.Workload
	mean   float64 // nanoseconds between arrivals
	factor float64 // of load; guarded by Rig.mu
	pick   rig.Choice
	chance *rand.Rand
}

func newWorkload(r *Rig, i int) *workload {
	w := &r.sc.Workloads[i]
	per := 1.0
	if w.Arrivals == scenario.ArrivalsBurst {
		per = float64(w.Size)
	}
	l := &workload{
		r: r, c: r.cache(w.Cache), w: w, mean: per / w.Rate * float64(time.Second), factor: 1, pick: rig.NewChoice(w),
		// A stream of its own, that does not depend on what others do.
		chance: rand.New(rand.NewPCG(r.o.Seed, 1000+uint64(i))),
	}
	if n := w.First + w.Keys; n > len(l.c.entries) {
		l.c.entries = append(l.c.entries, make([]*entry, n-len(l.c.entries))...)
	}
	l.c.loads = append(l.c.loads, l)
	return l
}

// gap draws the time to the next arrival.
func (w *workload) gap() int64 {
	w.r.mu.Lock()
	d := w.mean / w.factor
	w.r.mu.Unlock()
	if w.w.Arrivals != scenario.ArrivalsEven {
		d *= w.chance.ExpFloat64()
	}
	return max(1, int64(d))
}

// run lets readers arrive until the run is over. If the machine does not keep
// up, those that are due arrive at once: none is lost.
func (w *workload) run() {
	end := int64(w.r.sc.Duration)
	next := w.r.now() + w.gap()
	for next <= end && w.r.until(next) {
		for now := min(w.r.now(), end); next <= now; next += w.gap() {
			w.arrive()
		}
	}
}

// arrive is one arrival: a read, or a burst of them at one instance.
func (w *workload) arrive() {
	n := 1
	if w.w.Arrivals == scenario.ArrivalsBurst {
		n = w.w.Size
	}
	r, luck := w.r, w.chance.Uint64()
	r.mu.Lock()
	defer r.mu.Unlock()
	for range n {
		e := w.c.entry(w.w.First + w.pick.Key(w.chance))
		if len(r.up) == 0 {
			r.account.Unserved(r.now())
			continue
		}
		p := r.up[luck%uint64(len(r.up))]
		r.work.Go(func() { p.read(e) })
	}
}
