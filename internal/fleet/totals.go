package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// CacheTotals is what the fleet has done about one cache since the exporter
// started. Counts never fall.
type CacheTotals struct {
	Cache      string
	Recomputes uint64        // provoked by a miss
	Duplicates uint64        // of them, that served nobody
	Early      uint64        // ahead of expiry
	Busy       time.Duration // of all recomputes
	Wasted     time.Duration // of duplicates; counted when an episode is final

	// Of the worst key, in the last 20 to 30 s.
	InFlightPeak uint32 // proven
	MissPeak     uint32 // sum of each process's worst
}

// totals is one shard's part of a cache's totals.
type totals struct {
	CacheTotals
	runs, misses signal.Peak
	active       signal.Nanos
}

// maxCaches bounds how many caches have totals; names come from outside.
// totalsFor is how long those of a cache that fell silent are kept.
const (
	maxCaches = 1000
	totalsFor = 24 * time.Hour
)

// total returns the totals of a cache; if there is no room for another, ones
// that nobody will read.
func (s *shard) total(cache string) *totals {
	t := s.totals[cache]
	switch {
	case t != nil:
	case len(s.totals) < maxCaches:
		t = &totals{}
		s.totals[cache] = t
	default:
		t = &totals{}
	}
	return t
}

// forget drops the totals of caches that fell silent long ago.
func (s *shard) forget(now signal.Nanos) {
	for cache, t := range s.totals {
		if now.Sub(t.active) > totalsFor {
			delete(s.totals, cache)
		}
	}
}

// count adds a window as it arrives.
func (t *totals) count(now signal.Nanos, w *signal.Window) {
	t.active = now
	t.Early += w.Recomputes.Started[signal.CauseEarly]
	t.Recomputes += w.Recomputes.Provoked()
	t.Busy += w.Busy
}

// look adds what a look at a burst showed that had not been counted.
func (t *totals) look(now signal.Nanos, b *burst, e *signal.Episode) {
	if e.Duplicates > b.duplicates {
		t.Duplicates += e.Duplicates - b.duplicates
		b.duplicates = e.Duplicates
	}
	if e.Final {
		t.Wasted += e.Wasted
	}
	_, misses := e.Window.MissPeakBounds()
	t.runs.Observe(now, uint32(e.PeakLow))
	t.misses.Observe(now, uint32(misses))
}

// Totals returns the totals of every cache, by name.
func (f *Fleet) Totals(now signal.Nanos) []CacheTotals {
	sum := map[string]*CacheTotals{}
	for i := range f.shards {
		s := &f.shards[i]
		s.mu.Lock()
		for cache, t := range s.totals {
			c := sum[cache]
			if c == nil {
				c = &CacheTotals{Cache: cache}
				sum[cache] = c
			}
			c.Recomputes += t.Recomputes
			c.Duplicates += t.Duplicates
			c.Early += t.Early
			c.Busy += t.Busy
			c.Wasted += t.Wasted
			c.InFlightPeak = max(c.InFlightPeak, t.runs.Value(now))
			c.MissPeak = max(c.MissPeak, t.misses.Value(now))
		}
		s.mu.Unlock()
	}
	out := make([]CacheTotals, 0, len(sum))
	for _, c := range sum {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b CacheTotals) int { return cmp.Compare(a.Cache, b.Cache) })
	return out
}
