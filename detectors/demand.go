package detectors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// demandFor is how long an origin or a cache is remembered after it was last
// heard of.
const demandFor = time.Hour

// demand is what a detector learns, tick by tick, of origins and of the caches
// that spend them: what readers found gone, what is to expire, and how fast it
// can be made again. The zero demand is ready.
type demand struct {
	pulse
	took   time.Duration // that the latest regular tick is about; 0: not known
	paces  map[originName]*pace
	caches map[string]*cacheDemand
}

// cacheDemand is what is known of one cache.
type cacheDemand struct {
	name string
	gone missing
	dues deadlines
	readers
	ttl  time.Duration // the longest of the keys with an episode lately
	seen signal.Nanos
}

// originDemand is an origin at one tick, with what is known of its caches, which
// are in the order of those of spending.
type originDemand struct {
	spending
	speed  speed
	demand []*cacheDemand
}

// observe takes in a regular tick, and returns the origins whose caches report,
// in order of their names.
func (d *demand) observe(t *signal.Tick) []originDemand {
	if d.caches == nil {
		d.paces, d.caches = map[originName]*pace{}, map[string]*cacheDemand{}
	}
	d.took = d.beat(t.At)
	d.look(t)
	var out []originDemand
	for _, s := range spendings(t) {
		p := d.paces[s.name]
		if p == nil {
			p = &pace{}
			d.paces[s.name] = p
		}
		p.learn(t.At, d.took, &s)
		o := originDemand{spending: s, speed: p.speed(s.budget, s.takes)}
		for _, c := range s.caches {
			o.demand = append(o.demand, d.caches[c.Cache])
		}
		out = append(out, o)
	}
	maps.DeleteFunc(d.paces, func(_ originName, p *pace) bool { return t.At.Sub(p.seen).Abs() > demandFor })
	maps.DeleteFunc(d.caches, func(_ string, c *cacheDemand) bool { return t.At.Sub(c.seen).Abs() > demandFor })
	return out
}

// look takes in what a tick says of each of its caches: keys that are gone, and
// deadlines.
func (d *demand) look(t *signal.Tick) {
	for i := range t.Caches {
		name := t.Caches[i].Cache
		if d.caches[name] == nil {
			d.caches[name] = &cacheDemand{name: name}
		}
		d.caches[name].seen = t.At
	}
	for _, c := range d.caches {
		c.gone.begin(t.At)
	}
	d.episodes(t, true)
	d.episodes(t, false)
	for i := range t.Caches {
		s := &t.Caches[i]
		c := d.caches[s.Cache]
		// Where nobody reports misses, that none follow a deadline says nothing.
		c.dues.look(t.At, s, c.gone.expired, hears(s))
		c.readers.look(t.At, d.took, s.Lookups)
		c.ttl = cmp.Or(c.gone.ttl, c.ttl)
	}
}

// episodes shows the episodes of a tick to their caches: those that are final, or
// the others.
func (d *demand) episodes(t *signal.Tick, final bool) {
	var c *cacheDemand
	for i := range t.Episodes {
		e := &t.Episodes[i]
		if e.Final != final {
			continue
		}
		if c == nil || c.name != e.Window.Cache { // those of a cache mostly follow each other
			c = d.caches[e.Window.Cache]
		}
		switch {
		case c == nil:
		case final:
			c.gone.close(t.At, e)
		default:
			c.gone.look(e)
		}
	}
}

// gone returns the keys of all the origin's caches that were gone at some time
// after from.
func (o *originDemand) gone(from signal.Nanos) fates {
	var f fates
	for _, c := range o.demand {
		g := c.gone.since(from)
		f.add(&g)
	}
	return f
}

// coming returns what is to fall due at the origin, second by second, as far as
// that can be told.
func (o *originDemand) coming() []load {
	all := make([][]load, 0, len(o.demand))
	for i, c := range o.demand {
		if !c.refreshes(o.caches[i]) {
			all = append(all, c.dues.loads(o.speed.cost(1, o.budget).Seconds()))
		}
	}
	return mergeLoads(all...)
}

// wanted returns when readers are to ask for what is coming.
func (o *originDemand) wanted() []load {
	all := make([][]load, 0, len(o.demand))
	for i, c := range o.demand {
		if c.refreshes(o.caches[i]) {
			continue
		}
		ls, keys := mergeLoads(c.dues.loads(o.speed.cost(1, o.budget).Seconds())), 0.0
		for _, l := range ls {
			keys += l.keys
		}
		all = append(all, whenRead(ls, c.perKey(c.seen, keys)))
	}
	return mergeLoads(all...)
}

// fell returns what fell due at the origin lately, second by second, and whether
// all its caches report deadlines.
func (o *originDemand) fell() (ls []load, told bool) {
	all, told := make([][]load, 0, len(o.demand)), true
	for _, c := range o.demand {
		all = append(all, c.dues.fell(o.speed.cost(1, o.budget).Seconds()))
		told = told && c.dues.told
	}
	return mergeLoads(all...), told
}

// ttl returns the longest time to live lately seen of a key of its caches.
func (o *originDemand) ttl() time.Duration {
	var ttl time.Duration
	for _, c := range o.demand {
		ttl = max(ttl, c.ttl)
	}
	return ttl
}

// heaviest returns the index of the cache with most of what weight counts; of
// several the first.
func (o *originDemand) heaviest(weight func(*cacheDemand) float64) int {
	most := slices.MaxFunc(o.demand, func(a, b *cacheDemand) int { return cmp.Compare(weight(a), weight(b)) })
	return slices.Index(o.demand, most)
}

// targetUse is how busy jitter should leave an origin at most: at 1 the wait
// for the last key has no bound, at 0.8 it is below a second for 1,000 keys of
// 0.4 s at 8 at once.
const targetUse = 0.8

// spreadFor returns how far apart the deadlines of so many keys should be.
func (o *originDemand) spreadFor(keys float64) time.Duration {
	return time.Duration(float64(o.speed.cost(keys, o.budget)) / targetUse)
}

// originLimits returns a function that says what keeps an origin, and so the
// caches that spend it, from being judged.
func originLimits(origins []originDemand) func(*signal.CacheState) []Limit {
	blind := map[string]string{}
	for i := range origins {
		o := &origins[i]
		reason := ""
		switch {
		case o.budget == 0:
			reason = o.name.undeclared()
		case !o.speed.known():
			reason = fmt.Sprintf("Not enough data: how long %s takes for a recompute shows after %d of them while it is free, or in some seconds while it is saturated; until then it can be declared%s.", o.name, paceSamples, o.name.recompute())
		}
		for _, c := range o.caches {
			blind[c.Cache] = reason
		}
	}
	return func(c *signal.CacheState) []Limit {
		if r := blind[c.Cache]; r != "" {
			return []Limit{{c.Cache, true, r}}
		}
		return nil
	}
}

// yieldNote says if it has not been learned what a deadline means, or that it
// means less than a recompute.
func (o *originDemand) yieldNote() string {
	least, learned := 1.0, true
	for _, c := range o.demand {
		y, ok := c.dues.yield()
		least, learned = min(least, y), learned && ok
	}
	switch {
	case !learned:
		return "; that all are still read is not known yet, and assumed"
	case least < 1:
		return fmt.Sprintf("; %.0f %% of deadlines have meant a recompute", 100*least)
	}
	return ""
}

// refreshes reports whether c claims to refresh values before they expire, and
// it has not been learned how many still do.
func (k *cacheDemand) refreshes(c *signal.CacheState) bool {
	_, learned := k.dues.yield()
	return !learned && (c.Claims.Says(signal.ProtectXFetch) || c.Claims.Says(signal.ProtectRefreshAhead))
}

func refreshLimit(c *signal.CacheState) Limit {
	return Limit{c.Cache, true, "Not enough data: it claims to refresh values early, and whether any reach their deadlines is not known yet."}
}

// tooSmall says so if the origin takes as long for so many keys as they live.
func tooSmall(o *originDemand, keys float64, ttl time.Duration) string {
	if ttl <= 0 || o.speed.cost(keys, o.budget) < ttl {
		return ""
	}
	return fmt.Sprintf(" They live for %.0f s: the origin is too small for them, and no jitter helps.", ttl.Seconds())
}
