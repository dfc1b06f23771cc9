package sim

import (
	"fmt"
	"math"
	"time"

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
	typical time.Duration
	sigma   float64 // of the lognormal recompute time; 0: fixed
	loads   []*workload
	missing int   // entries a reader found gone and nobody has filled since
	since   int64 // when missing last became positive
}

// entry is one key.
type entry struct {
	c    *cache
	n    int
	text string

	value    bool // there is one, though it may have expired
	known    bool // there has been one
	expiry   int64
	storedAt int64
	born     int64 // when the recompute that made it began
	written  int64 // the expiry as its writer's clock had it
	delta    int64 // how long it took to make: the envelope of XFetch
	gone     int64 // when it was last invalidated
	missed   bool  // counted in missing

	flights []*flight // at most one per process
	lock    lock

	story
}

func newCache(s *Sim, index int, name string, cfg scenario.Cache, o *origin) *cache {
	if s.o.Calm {
		cfg.Client.Attempts, cfg.Client.FillLate, cfg.Client.DeleteOnError = 1, true, false
	}
	c := &cache{s: s, index: index, name: name, cfg: cfg, origin: o, typical: cfg.Recompute.Fixed}
	if r := cfg.Recompute; r.Fixed == 0 {
		c.typical = r.P50
		// The 99th percentile of a standard normal is 2.3263.
		c.sigma = math.Log(float64(r.P99)/float64(r.P50)) / 2.3263478740408408
	}
	return c
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
		r += w.w.Rate * w.weight(n-w.w.First)
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

// mean returns the expected recompute time at an origin that is well.
func (c *cache) mean() time.Duration {
	return time.Duration(float64(c.typical) * math.Exp(c.sigma*c.sigma/2))
}

// takes draws a recompute time.
func (c *cache) takes() time.Duration {
	d := float64(c.typical) * c.origin.slow
	if c.sigma > 0 {
		d *= math.Exp(c.sigma * c.s.services.NormFloat64())
	}
	return max(1, time.Duration(d))
}

// life draws how long a value stored now lives; ttl replaces the cache's unless
// it is zero.
func (c *cache) life(ttl time.Duration) time.Duration {
	if ttl == 0 {
		ttl = c.cfg.TTL
	}
	j := c.cfg.Jitter
	if j.Spread == 0 {
		return ttl
	}
	u := c.s.choices.Float64()
	if j.Shape == scenario.JitterSymmetric {
		u = 2*u - 1
	}
	return max(time.Millisecond, ttl+time.Duration(u*float64(j.Spread)))
}

// fresh reports whether e has a value that has not expired.
func (e *entry) fresh(now int64) bool { return e.value && now < e.expiry }

// usable reports whether e has a value that may be served, at least as stale.
func (e *entry) usable(now int64) bool { return e.value && now < e.expiry+int64(e.c.cfg.StaleGrace) }

// absent reports whether the origin has no such thing as e, decided by a hash
// so that it is the same throughout.
func (e *entry) absent() bool {
	share := e.c.cfg.Negative
	return share > 0 && float64(scramble(uint64(e.n)^e.c.s.o.Seed<<32)>>11)/(1<<53) < share
}

// scramble is the finalizer of SplitMix64.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// put stores a value that p made in delta, from born on.
func (e *entry) put(p *process, born int64, delta, ttl time.Duration) {
	s := e.c.s
	life := e.c.life(ttl)
	s.account.store(e, born)
	e.value, e.known = true, true
	e.storedAt, e.expiry = s.now, s.now+int64(life)
	e.born, e.delta = born, int64(delta)
	e.written = e.expiry
	if p != nil {
		e.written += int64(p.skew)
		p.monitors[e.c.index].Store(e.text, expiry(life))
	}
	if e.missed {
		e.missed = false
		if e.c.missing--; e.c.missing == 0 {
			s.account.refilled(s.now - e.c.since)
		}
	}
}

// drop loses the value without anybody being told.
func (e *entry) drop() { e.value = false }

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
