package fleet

import (
	"cmp"
	"fmt"
	"maps"
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
}

// add counts what happened between two reports of one process. One that comes
// with less than the one before is from a process that was started anew.
func (d *delta) add(before, after *signal.Vitals) {
	if after.Uptime < before.Uptime || after.Lookups.Total() < before.Lookups.Total() {
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

// gathering is a cache's state in the making.
type gathering struct {
	signal.CacheState
	expiries map[signal.ExpiryBin]uint32
	claimed  signal.Nanos   // when the source was started whose claims are taken
	protect  map[string]int // how many instances that report claim it
}

func (s *sources) stateLocked(now signal.Nanos, whole bool) []signal.CacheState {
	byCache := map[string]*gathering{}
	for name, f := range s.feeds {
		c := byCache[name.cache]
		if c == nil {
			c = &gathering{CacheState: signal.CacheState{Cache: name.cache, Service: name.source.Service}, expiries: map[signal.ExpiryBin]uint32{}, protect: map[string]int{}}
			byCache[name.cache] = c
		}
		if c.Service != name.source.Service {
			c.Service = ""
		}
		f.fill(c, now)
		if whole {
			c.expect(f.last.Expiries, s.clocks[name.source].correction())
		}
	}
	out := make([]signal.CacheState, 0, len(byCache))
	for _, c := range byCache {
		c.Expiries = c.bins()
		c.Claims.Protection = c.protection()
		out = append(out, c.CacheState)
	}
	slices.SortFunc(out, func(a, b signal.CacheState) int { return cmp.Compare(a.Cache, b.Cache) })
	return out
}

// fill adds what f says to c. Instances that disagree on the origin's budget do
// so while a change rolls out; the larger one pages less.
func (f *feed) fill(c *gathering, now signal.Nanos) {
	if o := f.last.Origin; o.Budget > c.Origin.Budget || (o.Budget == c.Origin.Budget && o.Name > c.Origin.Name) {
		c.Origin = o
	}
	c.Lookups.Add(f.delta.lookups)
	c.Work.Add(&f.delta.work)
	c.Overflowed += f.delta.overflowed
	c.Expired += f.delta.expired
	c.Evicted += f.delta.evicted
	c.claim(f)
	if now.Sub(f.heard) > reportWithin {
		c.Silent++
		return
	}
	if c.Instances == 0 || f.last.Uptime < c.UptimeMin {
		c.UptimeMin = f.last.Uptime
	}
	c.UptimeMax = max(c.UptimeMax, f.last.Uptime)
	c.Running += f.last.Running
	c.Waiting += f.last.Waiting
	c.Instances++
	for _, p := range f.last.Claims.Protection {
		c.protect[p]++
	}
}

// claim takes the claims of the source that was started last: while a change
// rolls out, that is the one that will stay.
func (c *gathering) claim(f *feed) {
	began := f.last.At.Add(-f.last.Uptime)
	if f.last.Claims.IsZero() || c.claimed > began {
		return
	}
	if c.claimed == began && fmt.Sprint(c.Claims) >= fmt.Sprint(f.last.Claims) {
		return
	}
	c.claimed, c.Claims = began, f.last.Claims
}

// protection returns what every instance that reports claims. While a protection
// is rolled out, the instances that do not have it yet are not to be held to it.
func (c *gathering) protection() []string {
	var all []string
	for _, p := range slices.Sorted(maps.Keys(c.protect)) {
		if c.protect[p] >= c.Instances {
			all = append(all, p)
		}
	}
	return all
}

// expect adds one source's coming expiries, put right by its clock's offset.
func (c *gathering) expect(bins []signal.ExpiryBin, offset time.Duration) {
	for _, bin := range bins {
		n := bin.Keys
		bin.Keys = 0
		bin.At = bin.At.Add(offset)
		bin.At -= bin.At % signal.Nanos(max(bin.Width, time.Second))
		c.expiries[bin] += n
	}
}

func (c *gathering) bins() []signal.ExpiryBin {
	bins := make([]signal.ExpiryBin, 0, len(c.expiries))
	for bin, n := range c.expiries {
		bin.Keys = n
		bins = append(bins, bin)
	}
	if len(bins) == 0 {
		return nil
	}
	return signal.MergeExpiries(bins, nil)
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
