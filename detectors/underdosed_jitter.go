package detectors

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const underdosedJitterID = "underdosed-jitter"

var underdosedJitterDoc = Doc{
	ID:    underdosedJitterID,
	Title: "Jitter too small",
	Meaning: "Values that were stored together expire less far apart than the origin needs to recompute them. " +
		"Their times to live have no random part, or one that is too small for so many keys: each time to live ends in a wave that keeps the origin at its limit.",
	Signal: "The deadlines of the values that instances have stored or that probes find on the servers, as in expiry-forecast, cache by cache: the cohort that exceeds what the origin serves by most, and how far apart its deadlines are.",
	Condition: "Opens a ticket on a cache when a cohort of at least two seconds of the origin's work, and half as dense again as the cache's deadlines are on average, is spread over less than nine tenths of K d / (0.8 c). " +
		"The spread is that between the 1st and the 99th percentile over 0.98. The excess must be more than four standard deviations of a Poisson count, or of what it is estimated from. Clears when none has been ahead for 10 minutes, or twice the time to live if that is longer.",
	Why: "K d / c, the formula often given, is the edge of stability: simulated, 1,000 keys of 0.4 s at 8 at once that are spread over exactly 50 s make the last wait 1.5 s, over 62.5 s 0.57 s. Hence 0.8. " +
		"Recompute times come from buckets of 19 % and so are off by up to 9 %: hence the tenth. The percentiles leave out stragglers, and dividing by 0.98 gives the width back for evenly spread deadlines. " +
		"Below two seconds of work no user notices, and the average of a cache that is only busy is no cohort.",
	Traps: "Values with several times to live make several cohorts, and each is judged by itself. Deadlines further than five minutes ahead are known to ten seconds only. " +
		"If the deadlines of a cache lie evenly and the origin is too small for them, that is no matter of jitter: see budget-exceeded. " +
		"Jitter of plus or minus 10 % of 60 s is a width of 12 s, of plus 0 to 10 % one of 6 s.",
	Advice: "Widen the random part of the times to live to spread.required, or to the part of it that readers tolerate as staleness. " +
		"Where that is as long as the time to live itself, jitter cannot help: make recomputes cheaper, run more of them at once, or refresh ahead of expiry.",
}

// UnderdosedJitterConfig holds the thresholds of the underdosed-jitter detector.
// A zero field takes its default.
type UnderdosedJitterConfig struct {
	// MinWork is how long the origin must take for a cohort to be worth a
	// word, 100ms to 1h. Default 2s.
	MinWork time.Duration `yaml:"min_work,omitempty"`
	// Tolerance is the part of the spread required below which a spread is
	// too small, 0.1 to 1. Default 0.9.
	Tolerance float64 `yaml:"tolerance,omitempty"`
	// ClearAfter is how long no such cohort must have been ahead before a
	// finding clears, 1s to 24h; twice the time to live counts instead if that
	// is longer. Default 10m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

func (c UnderdosedJitterConfig) withDefaults() UnderdosedJitterConfig {
	c.MinWork = cmp.Or(c.MinWork, 2*time.Second)
	c.Tolerance = cmp.Or(c.Tolerance, 0.9)
	c.ClearAfter = cmp.Or(c.ClearAfter, 10*time.Minute)
	return c
}

// validate checks a configuration that has its defaults.
func (c UnderdosedJitterConfig) validate() error {
	return cmp.Or(
		within("min_work", c.MinWork, 100*time.Millisecond, time.Hour),
		within("tolerance", c.Tolerance, 0.1, 1),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}

const (
	// denser is how much denser than a cache's deadlines on average a cohort
	// must be: below it the cache is busy throughout.
	denser = 1.5
	// chance is the standard deviations by which a cohort must exceed what
	// the origin serves. A busy but healthy cache has hundreds of seconds in
	// which chance could look like one.
	chance = 4
)

// underdosedJitter finds cohorts of deadlines that are too close to each other.
type underdosedJitter struct {
	c      UnderdosedJitterConfig
	demand demand
	alarms *alarms
	limits []Limit
}

// NewUnderdosedJitter returns the underdosed-jitter detector. It is a
// [Limited].
func NewUnderdosedJitter(c UnderdosedJitterConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &underdosedJitter{
		c:      c,
		alarms: newAlarms(&underdosedJitterDoc, c.ClearAfter, "no cohort of deadlines was too dense"),
	}, nil
}

// Doc implements [Detector].
func (*underdosedJitter) Doc() Doc { return underdosedJitterDoc }

// Limits implements [Limited].
func (d *underdosedJitter) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector]. An urgent tick has no new deadlines.
func (d *underdosedJitter) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	origins := d.demand.observe(t)
	for i := range origins {
		o := &origins[i]
		for j, c := range o.caches {
			if o.speed.known() && !o.demand[j].refreshes(c) {
				d.judge(t.At, o, c, o.demand[j])
			}
		}
	}
	out := d.alarms.tell(t, cachesOf(t))
	of := originLimits(origins)
	d.limits = d.alarms.limits(t, cachesOf(t), func(c *signal.CacheState) []Limit {
		if ls := of(c); len(ls) > 0 {
			return ls
		}
		if d.demand.caches[c.Cache].refreshes(c) {
			return []Limit{refreshLimit(c)}
		}
		return nil
	})
	return out
}

// judge raises a finding on a cache if its densest cohort asks for one.
func (d *underdosedJitter) judge(at signal.Nanos, o *originDemand, c *signal.CacheState, k *cacheDemand) {
	ls := mergeLoads(k.dues.loads(o.speed.cost(1, o.budget).Seconds()))
	w := highest(ls, targetUse)
	if w.keys == 0 {
		return
	}
	width, fullest := spread(w.loads)
	required := o.spreadFor(w.keys)
	serves := targetUse * o.speed.perSecond(o.budget) // keys a second
	switch {
	case o.speed.cost(w.keys, o.budget) < d.c.MinWork,
		width.Seconds() >= d.c.Tolerance*required.Seconds(),
		w.keys-serves*width.Seconds() < chance*math.Sqrt(w.keys*max(1, k.dues.sample.Weight)),
		w.keys/width.Seconds() < denser*density(at, ls):
		return
	}
	var l evidenceList
	l.add("spread.observed", width.Seconds(), "s", "of the cohort's deadlines, from the 1st to the 99th percentile, scaled to all")
	l.add("spread.required", required.Seconds(), "s", "to keep "+o.name.String()+" 80 % busy")
	l.add("keys", w.keys, "{key}", "in the cohort"+o.yieldNote())
	o.tellWave(&l, at, c, k, &w)
	l.add("refill", o.speed.cost(w.keys, o.budget).Seconds(), "s", "for all of them; less than that, as a spread, and the queue grows")
	l.add("deadlines.peak", fullest.keys, "{key}", "in the fullest second")
	l.add("ahead", max(0, w.from.Sub(at).Seconds()), "s", "until the first of them expires")
	l.add("budget", float64(o.budget), "{recompute}", "as declared for "+o.name.String())
	o.speed.tell(&l)
	l.addPositive("ttl", k.ttl.Seconds(), "s", "the longest lately")
	d.alarms.raise(at, symptom{
		subject: subject{cache: c.Cache}, service: c.Service, severity: Ticket, onset: at, ttl: k.ttl, evidence: l,
		summary: fmt.Sprintf("Cache %s: %.0f keys%s stored together expire within %.1f s; %s needs them spread over %.1f s.%s",
			c.Cache, w.keys, k.mostly(&w), width.Seconds(), o.name, required.Seconds(), tooSmall(o, w.keys, k.ttl)),
	})
}

// density returns the keys a second that fall due until the last that is known
// of does.
func density(at signal.Nanos, ls []load) float64 {
	total := 0.0
	for _, l := range ls {
		total += l.keys
	}
	return total / max(1, ls[len(ls)-1].at.Sub(at).Seconds()+1)
}
