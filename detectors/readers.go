package detectors

import (
	"math"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// readers is how often a cache is read, lately. The zero readers is ready.
type readers struct{ ticks rolling[float64] }

// The rate of reads is the higher of those over readersShort and readersLong, so
// that it is not below what it has risen to.
const (
	readersShort = 10 * time.Second
	readersLong  = time.Minute
)

// look takes in the reads of one tick.
func (r *readers) look(at signal.Nanos, took time.Duration, l signal.Lookups) {
	r.ticks.span = readersLong
	if took <= 0 {
		r.ticks.samples = nil // what came before a gap says nothing
		return
	}
	r.ticks.add(at, took, float64(l.Hits)+float64(l.Misses)+float64(l.Stale)+float64(l.Errors))
}

// perKey returns the reads per second of each of so many keys, were they all
// read alike, as of a tick; 0 if that is not known.
func (r *readers) perKey(at signal.Nanos, keys float64) float64 {
	if keys <= 0 {
		return 0
	}
	rate := 0.0
	for _, span := range []time.Duration{readersShort, readersLong} {
		samples, took := r.ticks.since(at.Add(-span))
		reads := 0.0
		for i := range samples {
			reads += samples[i].v
		}
		if took > 0 {
			rate = max(rate, reads/took.Seconds())
		}
	}
	return rate / keys
}

// soon is the rate of reads from which a key is as good as read at once, and
// littleLeft how many keys that nobody has read yet are not worth waiting for.
const (
	soon       = 10
	littleLeft = 0.5
)

// whenRead returns when readers ask for what ls says falls due, second by
// second: each key is read rate times a second, and so 1/rate seconds after it
// is due, on average. Keys that are read less than others are asked for later
// than that; so it leaves more of a wave than will be, never less. A rate of zero
// is one that is not known. There must be one load a second at most, in order.
func whenRead(ls []load, rate float64) []load {
	if len(ls) == 0 || rate <= 0 || rate >= soon {
		return ls
	}
	unread := math.Exp(-rate) // part of them that a second leaves
	// What nobody reads for an hour is of no more interest.
	last := ls[len(ls)-1].at.Add(signal.ExpiryFar)
	out := make([]load, 0, 2*len(ls))
	var waiting load
	for at := ls[0].at; at <= last; at = at.Add(time.Second) {
		for len(ls) > 0 && ls[0].at <= at {
			waiting.keys += ls[0].keys
			waiting.work += ls[0].work
			ls = ls[1:]
		}
		if waiting.keys < littleLeft {
			if len(ls) == 0 {
				break
			}
			continue
		}
		out = append(out, load{at, waiting.keys * (1 - unread), waiting.work * (1 - unread)})
		waiting.keys *= unread
		waiting.work *= unread
	}
	return out
}
