package detectors

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// maxOrigins bounds how many origins are watched.
	maxOrigins = 1000
	// usualEvery is how often what is usual is worked out again.
	usualEvery = 10 * time.Second
	// silentFor is how long an origin is remembered that nobody reports on: no
	// baseline is of use for longer.
	silentFor = baselineWeek
)

// origin is what is known of one origin: what goes through its caches lately,
// what is usual, and what from outside might explain a difference.
type origin struct {
	name    originName
	at      signal.Nanos // when it was last reported on
	live    bool         // at this tick
	clock   pulse
	budget  int
	running float64       // at the latest tick
	uptime  time.Duration // of the youngest instance
	caches  []string      // that spend it, by name
	claims  signal.Claims // the longest timeout and the most attempts of any

	flows                 rolling[flow]
	last5, last10, last60 flow
	demand                map[string]float64 // misses by cache, older ones fading
	service               map[string]string  // by cache

	pace    pace          // how fast it is, also while what is usual is not known
	takes   time.Duration // for a recompute, as declared; 0 if it is not
	base    baseline
	usual   usual
	known   bool // usual is
	usualAt signal.Nanos
	minute  signal.Nanos // when the minute that is watched now began
	trigger trigger
}

// watched is an origin with what one detector thinks of it.
type watched[S any] struct {
	origin
	own S
}

// watch keeps one detector's origins. The zero value is empty.
type watch[S any] struct {
	all     map[originName]*watched[S]
	refused []string // caches of origins there was no room for at the last tick
}

// look takes in a regular tick and returns all origins, also those nobody
// reports on, in the order of their names. keep says which must not be
// forgotten, and learns nothing: the detector has a finding on it.
func (w *watch[S]) look(t *signal.Tick, keep func(*watched[S]) bool) iter.Seq[*watched[S]] {
	w.refused = nil
	if w.all == nil {
		w.all = map[originName]*watched[S]{}
	}
	maps.DeleteFunc(w.all, func(_ originName, o *watched[S]) bool {
		o.live = false
		return t.At.Sub(o.at) > silentFor && !keep(o)
	})
	for _, s := range spendings(t) {
		o := w.origin(t.At, s.name, keep)
		if o == nil {
			for _, c := range s.caches {
				w.refused = append(w.refused, c.Cache)
			}
			continue
		}
		o.look(t.At, &s, keep(o))
	}
	return func(yield func(*watched[S]) bool) {
		for _, n := range slices.SortedFunc(maps.Keys(w.all), compareOrigins) {
			if o := w.all[n]; !yield(o) {
				return
			}
		}
	}
}

// origin returns the origin of that name, in the place of the one longest silent
// if it must be; nil if there is no room.
func (w *watch[S]) origin(at signal.Nanos, n originName, keep func(*watched[S]) bool) *watched[S] {
	if o := w.all[n]; o != nil {
		return o
	}
	if len(w.all) >= maxOrigins && !w.forget(at, keep) {
		return nil
	}
	o := &watched[S]{}
	o.name = n
	w.all[n] = o
	return o
}

// forget makes room for one origin.
func (w *watch[S]) forget(at signal.Nanos, keep func(*watched[S]) bool) bool {
	var idle *watched[S]
	for _, o := range w.all {
		if o.at >= at || keep(o) {
			continue
		}
		if idle == nil || cmp.Or(cmp.Compare(o.at, idle.at), compareOrigins(o.name, idle.name)) < 0 {
			idle = o
		}
	}
	if idle == nil {
		return false
	}
	delete(w.all, idle.name)
	return true
}

// look takes in what a tick says of the origin. Nothing is learnt while frozen.
func (o *origin) look(at signal.Nanos, s *spending, frozen bool) {
	span := o.clock.beat(at)
	o.at, o.live = at, true
	o.describe(s)
	o.pace.learn(at, span, s)
	if span == 0 {
		o.minute = at
		return
	}
	if o.flows.span == 0 {
		o.flows.span = time.Minute
	}
	o.flows.add(at, span, flowOf(s, span))
	o.last5, o.last10, o.last60 = o.sum(at, 5*time.Second), o.sum(at, 10*time.Second), o.sum(at, time.Minute)
	if at >= o.usualAt || o.usualAt.Sub(at) > usualEvery {
		o.recall(at)
	}
	o.trigger.look(at, o)
	o.learn(at, frozen)
}

// describe takes over what is so at a tick, and what is claimed.
func (o *origin) describe(s *spending) {
	o.budget, o.takes = s.budget, s.takes
	o.running = float64(s.running())
	o.caches = o.caches[:0]
	o.claims = signal.Claims{}
	o.uptime = 0
	if o.demand == nil {
		o.demand, o.service = map[string]float64{}, map[string]string{}
	}
	clear(o.service)
	for _, c := range s.caches {
		o.caches = append(o.caches, c.Cache)
		o.claims.Timeout = max(o.claims.Timeout, c.Claims.Timeout)
		o.claims.Attempts = max(o.claims.Attempts, c.Claims.Attempts)
		if o.uptime == 0 || c.UptimeMin < o.uptime {
			o.uptime = c.UptimeMin
		}
		o.service[c.Cache] = c.Service
		const fade = 0.98 // half of it is gone in 34 ticks
		o.demand[c.Cache] = fade*o.demand[c.Cache] + float64(c.Lookups.Misses)
	}
	maps.DeleteFunc(o.demand, func(cache string, _ float64) bool { return !slices.Contains(o.caches, cache) })
}

// neediest returns the cache with the most demand on the origin, and its
// service.
func (o *origin) neediest() (cache, service string) {
	for _, c := range o.caches {
		if cache == "" || o.demand[c] > o.demand[cache] {
			cache = c
		}
	}
	return cache, o.service[cache]
}

func (o *origin) sum(at signal.Nanos, span time.Duration) flow {
	var f flow
	samples, _ := o.flows.since(at.Add(-span))
	for i := range samples {
		f.add(&samples[i].v)
	}
	return f
}

// recall works out what is usual.
func (o *origin) recall(at signal.Nanos) {
	o.usual, o.known = o.base.usual(at)
	o.known = o.known && o.usual.delta > 0
	o.usualAt = at.Add(usualEvery)
}

// learn learns each minute in which nothing was amiss. It begins anew with each
// ailment, so that a short one costs no more than itself.
func (o *origin) learn(at signal.Nanos, frozen bool) {
	if frozen || o.ails() {
		o.minute = at
	}
	if at.Sub(o.minute) < time.Minute {
		return
	}
	f := &o.last60
	if f.span > time.Minute/2 && f.lookups >= enoughReads {
		o.base.learn(minute{At: at, Load: f.load(), Hits: f.hitRatio(), Delta: f.delta(), Good: f.goodput()})
		o.recall(at)
	}
	o.minute = at
}

// ails reports whether the origin is not itself: readers get nothing from it, try
// again, or wait for it, or something just happened. More load than usual is no
// ailment, or a service that grows would never be known.
func (o *origin) ails() bool {
	f := &o.last10
	calm := o.trigger.kind == triggerLoad || o.trigger.kind == triggerDemand
	return o.trigger.open && !calm ||
		f.use(o.budget) >= fullAt ||
		f.requests >= enoughReads/2 && f.amplification() > 1.1 ||
		max(f.ended, f.misses-f.coalesced) >= enoughReads/2 && f.fillSuccess() < 0.9
}

// counterfactual returns the share of the origin that f would take up with a
// cache as warm as usual and no retries: Bronson et al., HotOS 2021. It takes a
// budget and what is usual.
func (o *origin) counterfactual(f *flow) float64 {
	if o.budget <= 0 {
		return 0
	}
	warm := max(o.usual.hits, f.hitRatio()) // a cache may be warmer than usual: more readers keep it so
	return f.load() * (1 - warm) * o.usual.delta / float64(o.budget)
}

// ceiling returns the recomputes per second the origin can do; 0 if not known.
func (o *origin) ceiling() float64 {
	delta := o.usual.delta
	if !o.known {
		delta = o.pace.speed(o.budget, o.takes).mean.Seconds()
	}
	if delta <= 0 || o.budget <= 0 {
		return 0
	}
	return float64(o.budget) / delta
}

// goodBelow reports whether fewer of the reads in f than share of what is usual
// got an answer, of enough of them to tell.
func (o *origin) goodBelow(f *flow, share float64) bool {
	usual := 1.0
	if o.known {
		usual = o.usual.good
	}
	return f.firsts() >= enoughReads && f.goodput() <= share*usual
}

// limits returns what keeps any detector of origins from judging a cache fully.
// Without what is usual it is blind, and without a budget if it needs one.
func (w *watch[S]) limits(c *signal.CacheState, needsBudget bool) []Limit {
	if slices.Contains(w.refused, c.Cache) {
		return []Limit{{c.Cache, true, fmt.Sprintf("Its origin is not watched: there are more than %d.", maxOrigins)}}
	}
	if c.Unknown.Has(signal.UnknownHits) {
		return []Limit{{c.Cache, true, "Not enough data: misses are seen, and hits are not. Probe the server's own counts too (INFO, stats), or instrument the application."}}
	}
	o := w.all[originOf(c)]
	switch {
	case o == nil:
		return nil
	case o.budget == 0 && needsBudget:
		return []Limit{{c.Cache, true, o.name.undeclared()}}
	case !o.known:
		return []Limit{{c.Cache, true, fmt.Sprintf("Not enough data: what is usual for %s is learnt from %d healthy minutes, with %d reads each and recomputes that end well.", o.name, youngAfter, enoughReads)}}
	}
	var out []Limit
	if o.budget == 0 {
		out = append(out, Limit{c.Cache, false, o.name.undeclared()})
	}
	if o.usual.young() {
		out = append(out, Limit{c.Cache, false, fmt.Sprintf("What is usual for %s was learnt in %s only: less than an hour may not be like the next.", o.name, count(o.usual.minutes, "healthy minute"))})
	}
	return out
}
