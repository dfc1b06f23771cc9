package fleet

import (
	"fmt"
	"time"
)

// Options configure a [Fleet]. The zero value works.
type Options struct {
	// Lateness is how long an episode waits for stragglers after its last
	// activity before it is final, 100 ms to 1 min. Default 2 s.
	Lateness time.Duration
	// MaxKeys bounds how many keys are remembered, at least 64. A key in an
	// episode costs about 2 KiB and its intervals. Default 100,000.
	MaxKeys int
	// MaxSources bounds how many instances times caches are remembered, at
	// least 1. Default 20,000.
	MaxSources int
}

const (
	// Tolerance is the largest clock offset that is left alone.
	Tolerance = 100 * time.Millisecond

	// slack is how far apart two bouts of activity on one key may be and
	// still be one episode. It covers clocks that are off by less than
	// Tolerance. What happens within is told apart by the sweep.
	slack = Tolerance
	// maxEpisode cuts a key that never comes to rest into episodes.
	maxEpisode = time.Minute

	// A window from further ahead or behind is not believed.
	maxFuture = 5 * time.Second
	maxPast   = time.Minute
	// An episode that was over for so long when it was first heard of is
	// final at once: it is history, and wakes nobody.
	overdue = 10 * time.Second

	// reportWithin is how recently an instance that reports must have done
	// so; a silent one is remembered for silentFor.
	reportWithin = 5 * time.Second
	silentFor    = 10 * time.Minute

	// A key without an episode is remembered for keepKey, or twice its TTL,
	// so that its next miss is known not to be its first.
	keepKey    = 10 * time.Minute
	keepKeyMax = 24 * time.Hour
)

func (o Options) withDefaults() Options {
	if o.Lateness == 0 {
		o.Lateness = 2 * time.Second
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = 100_000
	}
	if o.MaxSources == 0 {
		o.MaxSources = 20_000
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.Lateness < 100*time.Millisecond || o.Lateness > time.Minute:
		return fmt.Errorf("Lateness is %v: want 100ms to 1m", o.Lateness)
	case o.MaxKeys < 64:
		return fmt.Errorf("MaxKeys is %d: want at least 64", o.MaxKeys)
	case o.MaxSources < 1:
		return fmt.Errorf("MaxSources is %d: want at least 1", o.MaxSources)
	}
	return nil
}
