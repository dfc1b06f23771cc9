package detectors

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// timings are the durations of recomputes that ended well: a histogram, and,
// where it is known, their sum. A histogram's mean is up to 9 % off, the same way
// each time if recomputes take the same time; in an origin near its limit that
// makes a queue out of nothing, or hides one.
type timings struct {
	signal.Durations
	exact, sum float64 // of so many the sum is known, in seconds
}

// observe adds what ended.
func (t *timings) observe(w *signal.Work) {
	t.Add(&w.Durations)
	if n, sum := exactly(w); n > 0 {
		t.exact += n
		t.sum += sum
	}
}

// join adds others.
func (t *timings) join(o *timings) {
	t.Add(&o.Durations)
	t.exact += o.exact
	t.sum += o.sum
}

// mean returns the mean of at least one.
func (t *timings) mean() time.Duration {
	if t.exact >= paceSamples {
		return durationOf(t.sum / t.exact)
	}
	return meanOf(&t.Durations)
}

// exactly returns how many recomputes ended well and how many seconds they took,
// if that is known: the sum is of all that ended, so all of them must have.
func exactly(w *signal.Work) (n, sum float64) {
	all := 0.0
	for o := range signal.NumOutcomes {
		all += float64(w.Recomputes.Ends(o))
	}
	if n = float64(w.Recomputes.Ends(signal.OutcomeOK)); n < all || w.Busy <= 0 {
		return 0, 0
	}
	return n, w.Busy.Seconds()
}

// about returns the same as exactly, by the histogram if it must be.
func about(w *signal.Work) (n, sum float64) {
	if n, sum = exactly(w); n > 0 {
		return n, sum
	}
	if n = float64(w.Durations.Count()); n > 0 {
		sum = n * meanOf(&w.Durations).Seconds()
	}
	return n, sum
}
