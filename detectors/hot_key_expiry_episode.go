package detectors

import (
	"cmp"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// hotEpisode is what is remembered of one episode.
type hotEpisode struct {
	started, onset signal.Nanos
	peak, peakHigh int
	// coalesced: no process ran two at once. Then they did not fail to
	// coalesce, there are just many of them.
	coalesced bool
	sampled   bool
	tally
	whileFresh              uint64
	instances               int
	readersLow, readersHigh int
	recompute, ttl          time.Duration // recompute: the mean; 0 if none has ended
	offset                  time.Duration
	live                    bool // seen before it was final
	final                   bool
}

// tally is what episodes cost.
type tally struct {
	episodes, starts, duplicates uint64
	wasted                       time.Duration
}

func (t *tally) add(o tally) {
	t.episodes += o.episodes
	t.starts += o.starts
	t.duplicates += o.duplicates
	t.wasted += o.wasted
}

func (t *tally) remove(o tally) {
	t.episodes -= o.episodes
	t.starts -= o.starts
	t.duplicates -= o.duplicates
	t.wasted -= o.wasted
}

// update replaces what was known of h by what e says now: the latest word on an
// episode is the best informed.
func (h *hotEpisode) update(e *signal.Episode) {
	w := e.Window
	low, high := w.MissPeakBounds()
	*h = hotEpisode{
		started: h.started, onset: cmp.Or(e.Onset, e.Started),
		peak: e.PeakLow, peakHigh: e.PeakHigh, coalesced: coalesced(w), sampled: w.Sampled,
		tally:      tally{1, w.Recomputes.Provoked(), e.Duplicates, e.Wasted},
		whileFresh: w.WhileFresh, instances: w.Instances(), readersLow: low, readersHigh: high,
		recompute: meanRecompute(w), ttl: e.TTL, offset: e.Offset,
		live: h.live || !e.Final, final: h.final || e.Final,
	}
}

// dogpile returns the peak as far as it counts.
func (h *hotEpisode) dogpile() int {
	if h.coalesced {
		return 0
	}
	return h.peak
}

// dogpileOf is [hotEpisode.dogpile] of an episode that is not remembered.
func dogpileOf(e *signal.Episode) int {
	if coalesced(e.Window) {
		return 0
	}
	return e.PeakLow
}

// coalesced reports whether every process in w ran at most one recompute at a
// time. A window without Shares is its own only one. If nobody says what ran at
// once in their own process, it is not known, and taken for false.
func coalesced(w *signal.Window) bool {
	most := w.InFlightPeak
	for i := range w.Shares {
		most = max(most, w.Shares[i].InFlightPeak)
	}
	return most == 1
}

func meanRecompute(w *signal.Window) time.Duration {
	var ends uint64
	for o := range signal.NumOutcomes {
		ends += w.Recomputes.Ends(o)
	}
	if ends == 0 {
		return 0
	}
	return w.Busy / time.Duration(ends)
}
