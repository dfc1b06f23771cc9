package detectors

import (
	"cmp"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// hotEpisode is what is remembered of one episode.
type hotEpisode struct {
	started, onset signal.Nanos
	peak, peakHigh int
	coalescing
	sampled bool
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
func (h *hotEpisode) update(e *signal.Episode, c *signal.CacheState) {
	w := e.Window
	low, high := w.MissPeakBounds()
	*h = hotEpisode{
		started: h.started, onset: cmp.Or(e.Onset, e.Started),
		peak: e.PeakLow, peakHigh: e.PeakHigh, coalescing: coalescingOf(e, c), sampled: w.Sampled,
		tally:      tally{1, w.Recomputes.Provoked(), e.Duplicates, e.Wasted},
		whileFresh: w.WhileFresh, instances: w.Instances(), readersLow: low, readersHigh: high,
		recompute: meanRecompute(w), ttl: e.TTL, offset: e.Offset,
		live: h.live || !e.Final, final: h.final || e.Final,
	}
}

// dogpile returns the peak of an episode of k as far as it counts: readers that
// coalesce in each process did not fail to, there are just many processes.
func (k *hotKey) dogpile(h *hotEpisode) int {
	if h.alone && k.coalesced(h) {
		return 0
	}
	return h.peak
}

// coalesced reports whether readers coalesced in h, by what the episodes
// remembered say of each other.
func (k *hotKey) coalesced(h *hotEpisode) bool {
	latest, at := []coalescing{h.coalescing}, 0 // h itself may be forgotten
	for i := range k.episodes {
		switch x := &k.episodes[i]; {
		case x.started == h.started:
		case x.started < h.started:
			latest = slices.Insert(latest, at, x.coalescing)
			at++
		default:
			latest = append(latest, x.coalescing)
		}
	}
	return proven(latest, at)
}

// dogpileOf is [hotKey.dogpile] of an episode of a key that is not remembered.
func dogpileOf(e *signal.Episode, c *signal.CacheState) int {
	if proven([]coalescing{coalescingOf(e, c)}, 0) {
		return 0
	}
	return e.PeakLow
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
