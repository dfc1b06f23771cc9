package fleet

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// sources is everybody who reports.
type sources struct {
	mu     sync.RWMutex
	most   int
	clocks map[signal.Source]*clock // by instance; Build is left out
	feeds  map[feedName]*feed
}

type feedName struct {
	source signal.Source
	cache  string
}

// feed is what one instance says of one cache.
type feed struct {
	last  signal.Vitals
	heard signal.Nanos
	delta delta // since the previous regular tick
}

// delta is what was counted between two looks.
type delta struct {
	lookups                      signal.Lookups
	work                         signal.Work
	overflowed, expired, evicted uint64
	flushed, restarted           uint64
}

// add counts what happened between two reports of one process. One that comes
// with less than the one before is from a process that was started anew.
func (d *delta) add(before, after *signal.Vitals) {
	anew := after.Uptime < before.Uptime
	if anew && after.Probe {
		d.restarted++
	}
	if anew || after.Lookups.Total() < before.Lookups.Total() {
		before = &signal.Vitals{}
	}
	d.lookups.Add(signal.Lookups{
		Hits:   less(after.Lookups.Hits, before.Lookups.Hits),
		Misses: less(after.Lookups.Misses, before.Lookups.Misses),
		Stale:  less(after.Lookups.Stale, before.Lookups.Stale),
		Errors: less(after.Lookups.Errors, before.Lookups.Errors),
	})
	work := workSince(&before.Work, &after.Work)
	d.work.Add(&work)
	d.overflowed += less(after.Overflowed, before.Overflowed)
	d.expired += less(after.Expired, before.Expired)
	d.evicted += less(after.Evicted, before.Evicted)
	d.flushed += less(after.Server.Flushes, before.Server.Flushes)
}

func workSince(before, after *signal.Work) signal.Work {
	w := signal.Work{
		Busy:       max(0, after.Busy-before.Busy),
		Durations:  after.Durations.Since(&before.Durations),
		Duplicates: less(after.Duplicates, before.Duplicates),
		WhileFresh: less(after.WhileFresh, before.WhileFresh),
		Coalesced:  less(after.Coalesced, before.Coalesced),
		Stores:     less(after.Stores, before.Stores),
		Early:      less(after.Early, before.Early),
	}
	w.Retries.Requests = less(after.Retries.Requests, before.Retries.Requests)
	w.Retries.Attempts = less(after.Retries.Attempts, before.Retries.Attempts)
	for c := range w.Recomputes.Started {
		w.Recomputes.Started[c] = less(after.Recomputes.Started[c], before.Recomputes.Started[c])
		for o := range w.Recomputes.Ended[c] {
			w.Recomputes.Ended[c][o] = less(after.Recomputes.Ended[c][o], before.Recomputes.Ended[c][o])
		}
	}
	return w
}

// less returns a - b, or zero if b is more: a counter never falls.
func less(a, b uint64) uint64 { return a - min(a, b) }

func (s *sources) init(most int) {
	s.most, s.clocks, s.feeds = most, map[signal.Source]*clock{}, map[feedName]*feed{}
}

// instance is src without what may differ between reports of one process.
func instance(src signal.Source) signal.Source {
	src.Build = ""
	return src
}

// add takes vitals that arrived at now, and reports whether there was room.
func (s *sources) add(now signal.Nanos, v *signal.Vitals) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	src := instance(v.Source)
	name := feedName{src, v.Cache}
	f := s.feeds[name]
	if f == nil {
		if len(s.feeds) >= s.most {
			return false
		}
		f = &feed{}
		s.feeds[name] = f
	} else {
		f.delta.add(&f.last, v)
	}
	c := s.clocks[src]
	if c == nil {
		c = &clock{}
		s.clocks[src] = c
	}
	c.observe(now.Sub(v.At))
	f.last, f.heard = *v, now
	if v.Closing {
		delete(s.feeds, name)
	}
	return true
}

// offset returns what to add to the instants of w, which arrived at now. Of a
// source that has not sent vitals yet only this is certain: a window from the
// future comes from a clock that is ahead.
func (s *sources) offset(now signal.Nanos, w *signal.Window) time.Duration {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if c := s.clocks[instance(w.Source)]; c != nil {
		return c.correction()
	}
	c := clock{}
	c.observe(min(0, now.Sub(w.End)))
	return c.correction()
}

// states returns the state of every cache since the previous call, by name, and
// forgets who has been silent for too long.
func (s *sources) states(now signal.Nanos) []signal.CacheState {
	s.mu.Lock()
	defer s.mu.Unlock()
	alive := map[signal.Source]bool{}
	for name, f := range s.feeds {
		if now.Sub(f.heard) > silentFor {
			delete(s.feeds, name)
			continue
		}
		alive[name.source] = true
	}
	for src := range s.clocks {
		if !alive[src] {
			delete(s.clocks, src)
		}
	}
	out := s.stateLocked(now, true)
	for _, f := range s.feeds {
		f.delta = delta{}
	}
	return out
}

// peek is states without moving time on.
func (s *sources) peek(now signal.Nanos) []signal.CacheState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.stateLocked(now, false)
}

func (s *sources) stateLocked(now signal.Nanos, whole bool) []signal.CacheState {
	byCache := map[string]*gathering{}
	for name, f := range s.feeds {
		c := byCache[name.cache]
		if c == nil {
			c = newGathering(name.cache)
			byCache[name.cache] = c
		}
		if f.last.Probe {
			c.servers.name(name.source.Service)
		} else {
			c.services.name(name.source.Service)
		}
		f.fill(c, now)
		// A probe that is silent does not know what its server holds now; an
		// instance that is gone has left behind what it stored.
		if whole && !(f.last.Probe && now.Sub(f.heard) > reportWithin) {
			c.expect(&f.last, s.clocks[name.source].correction())
		}
	}
	out := make([]signal.CacheState, 0, len(byCache))
	for _, c := range byCache {
		c.finish()
		out = append(out, c.CacheState)
	}
	slices.SortFunc(out, func(a, b signal.CacheState) int { return cmp.Compare(a.Cache, b.Cache) })
	return out
}

func (s *sources) stats() (n int, offset time.Duration) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.clocks {
		offset = max(offset, c.offset().Abs())
	}
	return len(s.feeds), offset
}

// clock estimates how far a source's clock is behind the fleet's. A record's
// age on arrival is that offset and the time it took to get here, which is never
// negative; so the youngest of the last few records comes closest. A clock that
// is stepped is followed once the old ones are gone.
type clock struct {
	ages [8]time.Duration
	n    int
}

func (c *clock) observe(age time.Duration) {
	c.ages[c.n%len(c.ages)] = age
	c.n++
}

func (c *clock) offset() time.Duration {
	if c.n == 0 {
		return 0
	}
	return slices.Min(c.ages[:min(c.n, len(c.ages))])
}

// correction is the offset, if it is too large to be the network's delay.
func (c *clock) correction() time.Duration {
	if o := c.offset(); o.Abs() > Tolerance {
		return o
	}
	return 0
}
