package detectors

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const massInvalidationID = "mass-invalidation"

var massInvalidationDoc = Doc{
	ID:    massInvalidationID,
	Title: "Cache lost its values",
	Meaning: "Many values vanished before their time, all at once: the cache was flushed or restarted, a node was lost, memory ran out and it evicts, or somebody deleted keys by the thousand. " +
		"Readers fall through to the origin, at many times the rate it usually sees.",
	Signal: "Misses a second of a cache against what is normal for it, and keys that are gone anywhere in the fleet by what became of their values: " +
		"gone before they were to expire (evicted, flushed, deleted), or not. What cache servers count as evicted, and that one was flushed or started anew, goes along as evidence.",
	Condition: "Pages when misses have jumped to five times what is normal, at least 100 different keys have been lost within 5 s, and they are at least half of the keys that are gone. " +
		"The page is of priority 1 if the origin is saturated. Clears when for 60 s fewer than 10 keys have been lost within 5 s, and misses have stayed below half of that jump; or no key has been lost for 10 minutes.",
	Why: "The jump is found by a cumulative sum of log-likelihoods (Page's CUSUM) for Poisson rates: at 13.3 = ln(600,000) and seconds as bins it alarms wrongly once a week at most, and takes a second or two to notice. " +
		"It is divided by the dispersion of what is normal, since misses come in clumps wherever expiries do. What is normal is a mean over ten minutes that does not learn while it suspects something; fewer than 20 misses a minute count as 20, " +
		"for five times nearly nothing is nothing. Half of the keys tells a loss from expiry, 100 keys a loss from somebody's edit.",
	Traps: "A deploy that renames keys makes them cold, not lost. A cache that is too small evicts all the time: that is normal, and not a jump. " +
		"A process says that a value was evicted only if it stored it; of those that others stored, the fleet knows when they were to expire. " +
		"Whether it was one node or all cannot be told from keys' hashes: the share of keys lost and the servers' own uptime can.",
	Advice: "Let readers back in stepwise: shed load or serve old values until the hit ratio recovers, and fill the most wanted keys by hand or job first. Turn retries off: a cache that is not filled because the origin times out stays empty. " +
		"Find out what emptied it (uptime and evicted_keys of the server, FLUSHALL in its log, a node that failed over, a deploy that deletes) before it happens again.",
	MayPage: true,
}

// MassInvalidationConfig holds the thresholds of the mass-invalidation detector.
// A zero field takes its default.
type MassInvalidationConfig struct {
	// Keys is how many different keys must have been lost within 5 s, 2 to
	// 1,000,000. Default 100.
	Keys int `yaml:"keys,omitempty"`
	// LostShare is the part of the keys gone that must have been lost, 0.1
	// to 1. Default 0.5.
	LostShare float64 `yaml:"lost_share,omitempty"`
	// Factor is what misses must have jumped by, 1.5 to 100. Default 5.
	Factor float64 `yaml:"factor,omitempty"`
	// Alarm is how sure that must be: the logarithm of the seconds between two
	// wrong alarms, 3 to 30. Default 13.3, a week.
	Alarm float64 `yaml:"alarm,omitempty"`
	// ClearAfter is how long it must be over before a finding clears, 1s to
	// 24h. Default 60s.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

func (c MassInvalidationConfig) withDefaults() MassInvalidationConfig {
	c.Keys = cmp.Or(c.Keys, 100)
	c.LostShare = cmp.Or(c.LostShare, 0.5)
	c.Factor = cmp.Or(c.Factor, 5)
	c.Alarm = cmp.Or(c.Alarm, 13.3)
	c.ClearAfter = cmp.Or(c.ClearAfter, time.Minute)
	return c
}

// validate checks a configuration that has its defaults.
func (c MassInvalidationConfig) validate() error {
	return cmp.Or(
		within("keys", c.Keys, 2, 1_000_000),
		within("lost_share", c.LostShare, 0.1, 1),
		within("factor", c.Factor, 1.5, 100),
		within("alarm", c.Alarm, 3, 30),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}

// massInvalidation finds caches that lost many values at once.
type massInvalidation struct {
	c       MassInvalidationConfig
	demand  demand
	losses  map[string]*loss // by cache
	servers rolling[serverLoss]
	alarms  *alarms
	limits  []Limit
}

// NewMassInvalidation returns the mass-invalidation detector. It is a [Limited].
func NewMassInvalidation(c MassInvalidationConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &massInvalidation{
		c:       c,
		losses:  map[string]*loss{},
		servers: rolling[serverLoss]{span: lossWindow + maxGap},
		alarms:  newAlarms(&massInvalidationDoc, c.ClearAfter, "hardly any value has been lost"),
	}, nil
}

// Doc implements [Detector].
func (*massInvalidation) Doc() Doc { return massInvalidationDoc }

// Limits implements [Limited].
func (d *massInvalidation) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector]. An urgent tick tells of too few keys to judge a
// cache by.
func (d *massInvalidation) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	origins := d.demand.observe(t)
	d.count(t)
	for i := range origins {
		o := &origins[i]
		for j, c := range o.caches {
			l := d.loss(c.Cache)
			l.look(t.At, d.demand.took, o.demand[j], c, d.alarms.open[subject{cache: c.Cache}] != nil, &d.c)
			d.judge(t.At, o, c, l)
		}
	}
	maps.DeleteFunc(d.losses, func(_ string, l *loss) bool { return t.At.Sub(l.seen).Abs() > demandFor })
	out := d.alarms.tell(t, cachesOf(t))
	d.limits = d.alarms.limits(t, cachesOf(t), d.limitsOf)
	return out
}

// count adds up what the cache servers have lost. A probe reports under a name of
// its own, so which of them holds which cache is not known.
func (d *massInvalidation) count(t *signal.Tick) {
	var n serverLoss
	for i := range t.Caches {
		c := &t.Caches[i]
		n.add(serverLoss{c.Evicted, c.Flushed, c.Restarted})
	}
	d.servers.add(t.At, d.demand.took, n)
}

func (d *massInvalidation) loss(cache string) *loss {
	l := d.losses[cache]
	if l == nil {
		l = newLoss(&d.c)
		d.losses[cache] = l
	}
	return l
}

func (d *massInvalidation) judge(at signal.Nanos, o *originDemand, c *signal.CacheState, l *loss) {
	switch {
	case l.jump && l.lost() >= float64(d.c.Keys) && l.gone.share(fateLost) >= d.c.LostShare:
		d.alarms.raise(at, d.symptom(at, o, c, l))
	case !l.calm(at, &d.c):
		d.alarms.keep(at, subject{cache: c.Cache})
	}
}

func (d *massInvalidation) limitsOf(c *signal.CacheState) []Limit {
	l := d.losses[c.Cache]
	switch {
	case l == nil || !l.misses.ready():
		return []Limit{{c.Cache, true, "Not enough data: it has been watched for less than a minute, and how many misses are normal is not known."}}
	case l.gone.untold() > 1-d.c.LostShare:
		return []Limit{{c.Cache, false, "Nobody knows whether the values that are gone expired or were lost."}}
	}
	return nil
}
