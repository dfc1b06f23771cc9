package detectors

import (
	"maps"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const synchronizedExpiryID = "synchronized-expiry"

var synchronizedExpiryDoc = Doc{
	ID:    synchronizedExpiryID,
	Title: "Synchronized expiry",
	Meaning: "Many different keys expired within a short time, and the origin cannot recompute them as fast as readers ask for them. " +
		"They queue, and the last one is filled K d / c seconds after the first, for K keys that take d seconds each at an origin that runs c at once. Each key alone would have been no trouble.",
	Signal: "Keys that are gone anywhere in the fleet, each counted once an episode, and what became of their values; misses, and those of the most missed key; " +
		"recomputes running against the origin's budget, and how long they take now against how long they take when the origin is free.",
	Condition: "Pages when in two windows on end, each of 5 s or ten recompute times, the keys gone are at least 1.2 times what the origin can recompute in a window, " +
		"at least 70 % of them expired, at least half of all misses are of a key of its own or no key has more than 20 % of them, at least half of the keys were known to fall due in one wave (where deadlines are reported), and the origin is saturated throughout while its queue grows, " +
		"recomputes take twice as long as they should, or keys have not had their turn, and needs 2 s or more for what waits. The page is of priority 1 if the refill takes longer than the declared timeout of clients. " +
		"Clears when for 60 s demand has been at most 0.8 of what the origin can do and readers have queued for no more than one recompute.",
	Why: "At a demand below what the origin can do a queue empties by itself; 1.2 leaves room for what is not measured exactly (recompute times come from buckets of 19 %), and the window for chance: " +
		"at a demand of 0.9 and 100 keys a window, 1.2 is 3 standard deviations away. Fixed times to live turn any common beginning (a deploy, a flush, a nightly job) into a common end, and again each time to live later. " +
		"But what waits at the beginning of a window counts in its demand: of an origin that is just busy with what expires, a queue of a second makes 1.2 out of 1.0. Hence the 2 s, from which a queue is trouble. " +
		"Simulated, 1,000 keys at 8 x 0.4 s refill in 50 s if each is computed once; without deduplication they keep the origin busy for twenty minutes. " +
		"The ratio of keys to misses collapses there, as duplicates queue, so that the share of the top key is what tells many keys from one.",
	Traps: "A flush or an eviction looks the same but for its cause (mass-invalidation), and so do look-ups of what does not exist (penetration) and readers of keys that nobody had (a cold start, a surge on the long tail): the share of keys that expired tells. " +
		"A job that fills the cache provokes nothing and is not counted. A batch read of many keys ends before a second window does. " +
		"More load on keys that expire all the time, or on some that expired long ago, is no wave: deadlines tell. " +
		"A key that one process stored and another finds expired is called cold by the second: the fleet's word on the key counts, not the process's. " +
		"Without a declared budget nothing can be judged, nor before the origin's recompute time is known.",
	Advice: "Let the wave drain: serve old values or shed load if users suffer, and do not flush or restart anything, which begins it anew. " +
		"Then spread the expiries: add to each time to live a random part of at least K d / (0.8 c), which the evidence gives as spread.required. " +
		"If that is more than readers tolerate as staleness, or the refill takes as long as the time to live, the origin is too small for these keys and no jitter helps: make recomputes cheaper, run more at once, or keep values for longer.",
	MayPage: true,
}

// synchronizedExpiry finds origins that many keys wait for because they expired
// together.
type synchronizedExpiry struct {
	c      SynchronizedExpiryConfig
	demand demand
	storms map[originName]*storm
	alarms *alarms
	limits []Limit
}

// NewSynchronizedExpiry returns the synchronized-expiry detector. It is a
// [Limited].
func NewSynchronizedExpiry(c SynchronizedExpiryConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &synchronizedExpiry{
		c:      c,
		storms: map[originName]*storm{},
		alarms: newAlarms(&synchronizedExpiryDoc, c.ClearAfter, "the origin has kept up with what expires"),
	}, nil
}

// Doc implements [Detector].
func (*synchronizedExpiry) Doc() Doc { return synchronizedExpiryDoc }

// Limits implements [Limited].
func (d *synchronizedExpiry) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector]. An urgent tick tells of too few keys to judge
// an origin by.
func (d *synchronizedExpiry) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	caches := cachesOf(t)
	untold := map[string]bool{}
	origins := d.demand.observe(t)
	for i := range origins {
		o := &origins[i]
		s := d.storms[o.name]
		if s == nil {
			s = newStorm()
			d.storms[o.name] = s
		}
		s.look(t, o, d.demand.took, &d.c)
		d.judge(t, o, s)
		for _, c := range o.caches {
			untold[c.Cache] = s.now.gone.untold() > 1-d.c.ExpiredShare
		}
	}
	maps.DeleteFunc(d.storms, func(_ originName, s *storm) bool { return t.At.Sub(s.seen).Abs() > demandFor })
	out := d.alarms.tell(t, caches)
	of := originLimits(origins)
	d.limits = d.alarms.limits(t, caches, func(c *signal.CacheState) []Limit {
		ls := of(c)
		if len(ls) == 0 && untold[c.Cache] {
			ls = append(ls, Limit{c.Cache, false, "Nobody knows whether the values that are gone expired or were lost."})
		}
		return ls
	})
	return out
}

// judge raises a finding, or keeps one open.
func (d *synchronizedExpiry) judge(t *signal.Tick, o *originDemand, s *storm) {
	c := d.subject(t, o, s)
	switch {
	case s.lasted(&d.c):
		s.measure(t, o, c)
		d.alarms.raise(t.At, s.symptom(o, c, &d.c))
	case !s.now.calm(o, &d.c):
		d.alarms.keep(t.At, subject{cache: c.Cache})
	}
}

// subject returns the cache that stands for an origin: that of the open finding
// if there is one, or the one with most keys gone.
func (d *synchronizedExpiry) subject(t *signal.Tick, o *originDemand, s *storm) *signal.CacheState {
	for _, c := range o.caches {
		if d.alarms.open[subject{cache: c.Cache}] != nil {
			return c
		}
	}
	from := t.At.Add(-s.now.window)
	return o.caches[o.heaviest(func(c *cacheDemand) float64 {
		f := c.gone.since(from)
		return f.total()
	})]
}
