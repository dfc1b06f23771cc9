package sim

import (
	"fmt"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// cache is a key-value store with expiry, on the true clock, as its server has.
type cache struct {
	s       *Sim
	index   int
	name    string
	cfg     scenario.Cache
	origin  *origin
	entries []*entry // by number of the key; nil until it is first read
	effort  rig.Effort
	loads   []*workload
	missing int   // entries a reader found gone and nobody has filled since
	since   int64 // when missing last became positive
	// lost is how many reads a second go to values that events took away and
	// nobody has made again; lostMost is what it came to with the last event.
	lost, lostMost float64
}

// entry is one key.
type entry struct {
	c    *cache
	n    int
	text string

	value    bool // there is one, though it may have expired
	failure  bool // it is a failure that was stored in place of one
	known    bool // there has been one
	expiry   int64
	storedAt int64
	born     int64 // when the recompute that made it began
	written  int64 // the expiry as its writer's clock had it
	delta    int64 // how long it took to make: the envelope of XFetch
	gone     int64 // when it was last invalidated
	missed   bool  // counted in missing
	lost     bool  // counted in the cache's lost

	flights []*flight // at most one per process
	lock    lock

	active []*attempt // recomputes that run, of any cause
	story  rig.Story
}

func newCache(s *Sim, index int, name string, cfg scenario.Cache, o *origin) *cache {
	if s.o.Calm {
		cfg.Client.Attempts, cfg.Client.FillLate, cfg.Client.DeleteOnError, cfg.Client.Hedge = 1, true, false, 0
	}
	return &cache{s: s, index: index, name: name, cfg: cfg, origin: o, effort: rig.NewEffort(cfg.Recompute)}
}

// grow makes room for n keys.
func (c *cache) grow(n int) {
	if n > len(c.entries) {
		c.entries = append(c.entries, make([]*entry, n-len(c.entries))...)
	}
}

// expectReads notes a workload of c.
func (c *cache) expectReads(w *workload) { c.loads = append(c.loads, w) }

// rate returns how many reads per second key n gets, undisturbed.
func (c *cache) rate(n int) float64 {
	r := 0.0
	for _, w := range c.loads {
		r += w.w.Rate * w.pick.Weight(n-w.w.First)
	}
	return r
}

func (c *cache) entry(n int) *entry {
	e := c.entries[n]
	if e == nil {
		e = &entry{c: c, n: n, text: fmt.Sprintf("%s:%d", c.name, n)}
		c.entries[n] = e
	}
	return e
}

// untilSwept returns how long a value stored now really lives that is to live
// for so long: up to the next sweep after that, if there are any.
func (c *cache) untilSwept(life time.Duration) time.Duration {
	every, phase := int64(c.cfg.Sweep.Every), int64(c.cfg.Sweep.Phase)
	if every == 0 {
		return life
	}
	sweeps := max(0, (c.s.now+int64(life)-phase+every-1)/every)
	return time.Duration(phase + sweeps*every - c.s.now)
}

// fresh reports whether e has a value, or a failure, that has not expired.
func (e *entry) fresh(now int64) bool { return e.value && now < e.expiry }

// usable reports whether e has a value that may be served, at least as stale.
func (e *entry) usable(now int64) bool {
	return e.value && !e.failure && now < e.expiry+int64(e.c.cfg.StaleGrace)
}

// absent reports whether the origin has no such thing as e.
func (e *entry) absent() bool { return rig.Absent(&e.c.cfg, e.n, e.c.s.o.Seed) }

// put stores a value that p made in delta, from born on.
func (e *entry) put(p *process, born int64, delta, ttl time.Duration) {
	s := e.c.s
	life := e.c.untilSwept(rig.Life(&e.c.cfg, ttl, s.choices))
	s.account.store(e, born)
	e.value, e.known, e.failure = true, true, false
	e.storedAt, e.expiry = s.now, s.now+int64(life)
	e.written = e.expiry
	e.born, e.delta = born, int64(delta)
	if p != nil {
		e.written += int64(p.skew)
		p.monitors[e.c.index].Store(e.text, expiry(life))
		if e.c.cfg.Versioned {
			p.monitors[e.c.index].Version(e.text, uint64(born)+1)
		}
	}
	e.restore()
	if e.missed {
		e.missed = false
		if e.c.missing--; e.c.missing == 0 {
			s.account.Refilled(time.Duration(s.now - e.c.since))
		}
	}
}

// putFailure stores in p that e could not be had, in place of what was there.
func (e *entry) putFailure(p *process) {
	s, life := e.c.s, e.c.untilSwept(e.c.cfg.Client.CacheErrors)
	e.value, e.failure = true, true
	e.storedAt, e.expiry = s.now, s.now+int64(life)
	e.written = e.expiry + int64(p.skew)
	p.monitors[e.c.index].Store(e.text, expiry(life))
}

// drop loses the value without anybody being told.
func (e *entry) drop() { e.value = false }

// restore notes that a value that may have been lost has been made again.
func (e *entry) restore() {
	if !e.lost {
		return
	}
	e.lost = false
	c := e.c
	if c.lost -= c.rate(e.n); c.lost <= rig.RestoredAt*c.lostMost {
		c.s.account.Restored(c.s.now, c.name)
	}
}

// miss notes that a reader found nothing.
func (e *entry) miss() {
	if e.missed || !e.known || e.absent() {
		return
	}
	e.missed = true
	if e.c.missing++; e.c.missing == 1 {
		e.c.since = e.c.s.now
	}
}
