package live

import (
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// downFor is how long a process that died stays away, unless the scenario says.
const downFor = 2 * time.Second

// happen lets an event of the scenario happen.
func (r *Rig) happen(e *scenario.Event) {
	c, o := r.cache(e.Cache), r.origin(e.Origin)
	r.tell(func(now int64, a *rig.Account) { a.Fault(now, e) })
	switch e.Do {
	case scenario.DoFlush:
		r.lose(c, func(*entry) bool { return true })
	case scenario.DoEvict:
		r.lose(c, func(*entry) bool { return r.choices.Float64() < e.Share })
	case scenario.DoNodeLoss:
		r.lose(c, func(k *entry) bool { return rig.InSlice(k.n, e.Share) })
	case scenario.DoInvalidate:
		r.invalidate(r.named(c, e))
	case scenario.DoWarm:
		r.warm(c, e)
	case scenario.DoKillHolder:
		r.killHolder(r.named(c, e), e.Down)
	case scenario.DoLoad:
		r.load(e, e.Factor)
		r.later(e.For, func() { r.load(e, 1/e.Factor) })
	default:
		r.trouble(o, e)
	}
}

// trouble is what happens to an origin.
func (r *Rig) trouble(o *origin, e *scenario.Event) {
	var begin, end func()
	switch e.Do {
	case scenario.DoSlow:
		begin, end = func() { o.slow *= e.Factor }, func() { o.slow /= e.Factor }
	case scenario.DoFail:
		begin, end = func() { o.fail = e.Share }, func() { o.fail = 0 }
	case scenario.DoShed:
		begin, end = func() { o.shedding++ }, func() { o.shedding-- }
	}
	r.tell(func(int64, *rig.Account) { begin() })
	r.later(e.For, func() { r.tell(func(int64, *rig.Account) { end() }) })
}

// later does something in d from now, unless the run is over by then.
func (r *Rig) later(d time.Duration, f func()) {
	r.work.Go(func() {
		if pause(r.ctx, d) {
			f()
		}
	})
}

// cache returns the cache of that name, or nil.
func (r *Rig) cache(name string) *cache {
	if i := slices.IndexFunc(r.caches, func(c *cache) bool { return c.name == name }); i >= 0 {
		return r.caches[i]
	}
	return nil
}

// origin returns the origin of that name, or nil.
func (r *Rig) origin(name string) *origin {
	if i := slices.IndexFunc(r.origins, func(o *origin) bool { return o.name == name }); i >= 0 {
		return r.origins[i]
	}
	return nil
}

// named returns the key an event is about; the first of the cache by default.
func (r *Rig) named(c *cache, e *scenario.Event) *entry {
	n, _ := r.sc.KeyNumber(c.name, e.Key)
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.entry(n)
}

// lose drops values of c. No process is told.
func (r *Rig) lose(c *cache, which func(*entry) bool) {
	keys := r.keys(func(e *entry) bool {
		if e.c != c || !e.known || !which(e) {
			return false
		}
		if !e.lost {
			e.lost = true
			c.lost += c.rate(e.n)
		}
		return true
	}, false)
	r.tell(func(now int64, a *rig.Account) {
		if c.lostMost = c.lost; c.lost == 0 {
			a.Restored(now, c.name)
		}
	})
	r.fail(r.ctx, "lose values", r.unlink(r.ctx, keys))
}

// invalidate lets a process delete e.
func (r *Rig) invalidate(e *entry) {
	p := r.anyone(0)
	if p == nil {
		return
	}
	if e.c.cfg.Protect.Has(scenario.ProtectLease) {
		// A delete makes the lease's token void, so that a value computed
		// from what was there before is not written.
		r.tell(func(int64, *rig.Account) { e.holds.holder = nil })
		r.fail(r.ctx, "void a lease", r.unlink(r.ctx, []string{e.lock}))
	}
	p.invalidate(e)
}

// anyone returns the i-th process that takes requests, or nil if none does.
func (r *Rig) anyone(i int) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.up) == 0 {
		return nil
	}
	return r.up[i%len(r.up)]
}

// warm fills a cache: at once, as from a copy, or through the origin.
func (r *Rig) warm(c *cache, e *scenario.Event) {
	n := len(c.entries)
	if e.Keys > 0 {
		n = min(n, e.Keys)
	}
	copies := map[*process][]*entry{}
	for i := range n {
		r.mu.Lock()
		k := c.entry(i)
		r.mu.Unlock()
		p := r.anyone(i)
		switch {
		case p == nil || k.absent():
		case e.Over == 0:
			copies[p] = append(copies[p], k)
		default:
			r.later(e.Over*time.Duration(i)/time.Duration(n), func() {
				if p.ctx.Err() == nil {
					p.background(&request{e: k, cause: signal.CauseWarmup})
				}
			})
		}
	}
	for p, entries := range copies {
		for part := range slices.Chunk(entries, batch) {
			p.fill(c, part, e.TTL)
		}
	}
}

// fill stores values of entries of c at p, as from a copy.
func (p *process) fill(c *cache, entries []*entry, ttl time.Duration) {
	rdb := p.hooked[c.index]
	if c.soft() {
		rdb = p.plain
	}
	pipe := rdb.Pipeline()
	values, lives := make([]envelope, len(entries)), make([]time.Duration, len(entries))
	for i, e := range entries {
		lives[i] = p.r.stores(e, p.r.now(), ttl)
		var keep time.Duration
		values[i], keep = c.value(lives[i], c.effort.Typical)
		pipe.Set(p.ctx, e.key, values[i].String(), keep)
	}
	if _, err := pipe.Exec(p.ctx); err != nil {
		p.r.fail(p.ctx, "warm the cache", err)
		return
	}
	for i, e := range entries {
		if c.soft() {
			p.monitors[c.index].Store(e.key, instrument.Expiry{TTL: lives[i]})
		}
		p.r.stored()
		p.r.tell(func(_ int64, a *rig.Account) { a.Warmed(time.Duration(values[i].expiry)) })
	}
}

// load changes how much is read.
func (r *Rig) load(e *scenario.Event, factor float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.workloads {
		if e.Cache == "" || w.c.name == e.Cache {
			w.factor *= factor
		}
	}
}

// killHolder kills the process that holds e's lock, or the next that does.
func (r *Rig) killHolder(e *entry, down time.Duration) {
	if down == 0 {
		down = downFor
	}
	r.mu.Lock()
	h := e.holds.holder
	if h == nil {
		e.holds.doomed, e.holds.down = true, down
		r.mu.Unlock()
		return
	}
	r.account.Orphaned(r.now(), e.c.name, e.text)
	r.mu.Unlock()
	h.q.p.kill(down)
}
