package detectors

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// maxSamples bounds a rolling window, however often ticks come.
	maxSamples = 1024
	// maxGap is the longest pause between two regular ticks over which a rate
	// still says something: what happened in a longer one is a sum without a
	// shape.
	maxGap = 10 * time.Second
)

// rolling keeps what regular ticks said over the last span of time. Make it
// with that span.
type rolling[T any] struct {
	span    time.Duration
	samples []sample[T] // oldest first
}

// sample is what one regular tick said of the time since the one before.
type sample[T any] struct {
	at   signal.Nanos
	took time.Duration
	v    T
}

// add takes the next sample, of the took before at. A gap, or a clock that was
// set back, empties the window first.
func (r *rolling[T]) add(at signal.Nanos, took time.Duration, v T) {
	if n := len(r.samples); n > 0 && r.samples[n-1].at != at.Add(-took) {
		r.samples = r.samples[:0]
	}
	drop := 0
	for drop < len(r.samples) && (at.Sub(r.samples[drop].at) >= r.span || len(r.samples)-drop >= maxSamples) {
		drop++
	}
	r.samples = append(r.samples[:0], r.samples[drop:]...)
	r.samples = append(r.samples, sample[T]{at, took, v})
}

// since returns the samples taken after from, oldest first, and how long they
// span. They are only lent.
func (r *rolling[T]) since(from signal.Nanos) ([]sample[T], time.Duration) {
	first := len(r.samples)
	var took time.Duration
	for first > 0 && r.samples[first-1].at > from {
		first--
		took += r.samples[first].took
	}
	return r.samples[first:], took
}

// pulse is the time of the last regular tick.
type pulse struct{ at signal.Nanos }

// beat takes the time of the next one, and returns how long after the last it
// comes: zero if that is not known, or not of use.
func (p *pulse) beat(at signal.Nanos) time.Duration {
	took := at.Sub(p.at)
	if p.at == 0 || took < 0 || took > maxGap {
		took = 0
	}
	p.at = at
	return took
}
