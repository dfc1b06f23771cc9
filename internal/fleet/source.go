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
	last    signal.Vitals
	heard   signal.Nanos
	lookups signal.Lookups // since the previous regular tick
}

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
		f.lookups.Add(since(f.last.Lookups, v.Lookups))
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

// since returns what was read between two reports; all that the later one says
// if the process restarted in between.
func since(before, after signal.Lookups) signal.Lookups {
	if after.Hits < before.Hits || after.Misses < before.Misses || after.Stale < before.Stale || after.Errors < before.Errors {
		return after
	}
	return signal.Lookups{
		Hits:   after.Hits - before.Hits,
		Misses: after.Misses - before.Misses,
		Stale:  after.Stale - before.Stale,
		Errors: after.Errors - before.Errors,
	}
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
	out := s.stateLocked(now)
	for _, f := range s.feeds {
		f.lookups = signal.Lookups{}
	}
	return out
}

// peek is states without moving time on.
func (s *sources) peek(now signal.Nanos) []signal.CacheState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.stateLocked(now)
}

func (s *sources) stateLocked(now signal.Nanos) []signal.CacheState {
	byCache := map[string]*signal.CacheState{}
	for name, f := range s.feeds {
		c := byCache[name.cache]
		if c == nil {
			c = &signal.CacheState{Cache: name.cache, Service: name.source.Service}
			byCache[name.cache] = c
		}
		if c.Service != name.source.Service {
			c.Service = ""
		}
		f.fill(c, now)
	}
	out := make([]signal.CacheState, 0, len(byCache))
	for _, c := range byCache {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b signal.CacheState) int { return cmp.Compare(a.Cache, b.Cache) })
	return out
}

// fill adds what f says to c. Instances that disagree on the origin's budget do
// so while a change rolls out; the larger one pages less.
func (f *feed) fill(c *signal.CacheState, now signal.Nanos) {
	if o := f.last.Origin; o.Budget > c.Origin.Budget || (o.Budget == c.Origin.Budget && o.Name > c.Origin.Name) {
		c.Origin = o
	}
	c.Lookups.Add(f.lookups)
	if now.Sub(f.heard) > reportWithin {
		c.Silent++
		return
	}
	if c.Instances == 0 || f.last.Uptime < c.UptimeMin {
		c.UptimeMin = f.last.Uptime
	}
	c.UptimeMax = max(c.UptimeMax, f.last.Uptime)
	c.Instances++
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
