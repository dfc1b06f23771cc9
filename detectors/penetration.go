package detectors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const penetrationID = "penetration"

var penetrationDoc = Doc{
	ID:    penetrationID,
	Title: "Look-ups of what does not exist",
	Meaning: "Readers ask for many different keys that the origin has nothing for. Nothing can be stored for them, so each look-up goes through the cache to the origin: " +
		"somebody walks through numbers, an attacker guesses, or a client builds its keys wrongly. This is no stampede: the keys are many, and none of them would ever be filled.",
	Signal: "Recomputes that ended with the origin having no such thing, against all that a reader set off; different keys against misses; and values stored, over the last minute.",
	Condition: "Opens a ticket when in 60 s at least 100 recomputes found nothing and they are at least half of all, at least 80 % of misses are of a key of its own, and nothing is stored for them: " +
		"stores exceed the recomputes that found something by at most a fifth of those that did not. " +
		"It never pages by itself: if the origin cannot cope, budget-exceeded does, and this says why. Clears when it has not held for 5 minutes.",
	Why: "Every cache is asked for a few things that do not exist; half of all is not that. Four misses in five of a key of its own tell a walk from one missing thing that everybody wants, which coalescing or a short negative entry would cure. " +
		"A hundred in a minute is the least that a share is worth computing of. As long as the origin copes, it can wait for the morning.",
	Traps: "A replica that lags behind its primary has nothing for keys that were just created: the ticket ends with the lag. " +
		"Recomputes count as having found nothing only if the application says so: what merely fails to be stored after a miss is told as a limit, not as a finding. " +
		"If marks for what does not exist are stored (a negative cache), but nobody asks for the same key twice, they do not help and hide it from this rule.",
	Advice: "See who asks: one client, one endpoint, one pattern of keys. Check keys before they reach the cache (a known format, a range, a Bloom filter of what exists) and limit the rate of whoever asks for what does not. " +
		"Where the same missing keys come again, store a mark for them with a short time to live.",
}

// PenetrationConfig holds the thresholds of the penetration detector. A zero
// field takes its default. All are over a minute.
type PenetrationConfig struct {
	// Negatives is how many recomputes must have found nothing, 10 to
	// 1,000,000. Default 100.
	Negatives int `yaml:"negatives,omitempty"`
	// NegativeShare is the part of recomputes they must be, 0.1 to 1. Default
	// 0.5.
	NegativeShare float64 `yaml:"negative_share,omitempty"`
	// DistinctShare is the part of misses that must be of a key of its own,
	// 0.1 to 1. Default 0.8.
	DistinctShare float64 `yaml:"distinct_share,omitempty"`
	// ClearAfter is how long that must not have been so before a finding
	// clears, 1s to 24h. Default 5m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

func (c PenetrationConfig) withDefaults() PenetrationConfig {
	c.Negatives = cmp.Or(c.Negatives, 100)
	c.NegativeShare = cmp.Or(c.NegativeShare, 0.5)
	c.DistinctShare = cmp.Or(c.DistinctShare, 0.8)
	c.ClearAfter = cmp.Or(c.ClearAfter, 5*time.Minute)
	return c
}

// validate checks a configuration that has its defaults.
func (c PenetrationConfig) validate() error {
	return cmp.Or(
		within("negatives", c.Negatives, 10, 1_000_000),
		within("negative_share", c.NegativeShare, 0.1, 1),
		within("distinct_share", c.DistinctShare, 0.1, 1),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}

const (
	// pierceWindow is the stretch of time that is judged.
	pierceWindow = time.Minute
	// storedAnyway is how many stores, for each recompute that found nothing,
	// may come from elsewhere.
	storedAnyway = 0.2
)

// penetration finds caches that are asked for what does not exist.
type penetration struct {
	c      PenetrationConfig
	pulse  pulse
	caches map[string]*pierced
	alarms *alarms
	limits []Limit
}

// NewPenetration returns the penetration detector. It is a [Limited].
func NewPenetration(c PenetrationConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &penetration{
		c:      c,
		caches: map[string]*pierced{},
		alarms: newAlarms(&penetrationDoc, c.ClearAfter, "readers have hardly asked for what does not exist"),
	}, nil
}

// Doc implements [Detector].
func (*penetration) Doc() Doc { return penetrationDoc }

// Limits implements [Limited].
func (d *penetration) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector]. An urgent tick is of too few keys to judge a
// cache by.
func (d *penetration) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	took := d.pulse.beat(t.At)
	for i := range t.Caches {
		c := &t.Caches[i]
		if !reporting(c) {
			continue
		}
		p := d.caches[c.Cache]
		if p == nil {
			p = &pierced{recent: rolling[pierceSample]{span: pierceWindow}}
			d.caches[c.Cache] = p
		}
		p.look(t.At, took, c)
		if p.sum.pierces(&d.c) {
			d.alarms.raise(t.At, d.symptom(t.At, c, p))
		}
	}
	maps.DeleteFunc(d.caches, func(_ string, p *pierced) bool { return t.At.Sub(p.seen).Abs() > demandFor })
	out := d.alarms.tell(t, cachesOf(t))
	d.limits = d.alarms.limits(t, cachesOf(t), d.limitsOf)
	return out
}

// limitsOf says if misses look like look-ups of what does not exist, and nobody
// says what they are.
func (d *penetration) limitsOf(c *signal.CacheState) []Limit {
	s := &d.caches[c.Cache].sum
	if s.nothing > 0 || s.misses < float64(d.c.Negatives) || s.distinct < d.c.DistinctShare*s.misses || s.stores > storedAnyway*s.misses {
		return nil
	}
	return []Limit{{c.Cache, false, "Misses of many keys are followed by no store, and no recompute says that there is no such thing: end those that find nothing with Negative."}}
}

// pierced is what is known of one cache.
type pierced struct {
	recent rolling[pierceSample]
	seen   signal.Nanos
	sum    pierceSample // over the latest minute
	span   time.Duration
}

// pierceSample is what is judged.
type pierceSample struct {
	misses, distinct, stores float64
	nothing, found, ended    float64 // recomputes that ended: with nothing there, with a value, at all
}

func (p *pierced) look(at signal.Nanos, took time.Duration, c *signal.CacheState) {
	p.seen = at
	p.recent.add(at, took, pierceSampleOf(c))
	p.sum = pierceSample{}
	samples, span := p.recent.since(at.Add(-pierceWindow))
	p.span = span
	for _, s := range samples {
		if s.took > 0 { // else it may be of any length of time
			p.sum.add(&s.v)
		}
	}
}

func pierceSampleOf(c *signal.CacheState) pierceSample {
	s := pierceSample{
		misses: float64(c.Misses), distinct: float64(max(0, c.MissedKeys)),
		stores: float64(c.Work.Stores), nothing: float64(negatives(&c.Work.Recomputes)),
	}
	s.ended = s.nothing
	for cause := range signal.NumCauses {
		if cause.Provoked() {
			for o, n := range c.Work.Recomputes.Ended[cause] {
				s.ended += float64(n)
				if signal.Outcome(o) == signal.OutcomeOK {
					s.found += float64(n)
				}
			}
		}
	}
	return s
}

func (s *pierceSample) add(o *pierceSample) {
	s.misses += o.misses
	s.distinct += o.distinct
	s.stores += o.stores
	s.nothing += o.nothing
	s.found += o.found
	s.ended += o.ended
}

// pierces reports whether that is what it looks like when readers ask for what
// does not exist.
func (s *pierceSample) pierces(c *PenetrationConfig) bool {
	return s.nothing >= float64(c.Negatives) && s.nothing >= c.NegativeShare*s.ended &&
		s.distinct >= c.DistinctShare*s.misses && s.stores-s.found <= storedAnyway*s.nothing
}

func (d *penetration) symptom(at signal.Nanos, c *signal.CacheState, p *pierced) symptom {
	s := &p.sum
	rate := s.nothing / p.span.Seconds()
	var l evidenceList
	l.add("negatives", s.nothing, "{recompute}", fmt.Sprintf("that found nothing, in the last %.0f s; a ticket from %d", p.span.Seconds(), d.c.Negatives))
	l.add("negative.share", ratio(s.nothing, s.ended, 0), "1", fmt.Sprintf("of all that readers set off; a ticket from %g", d.c.NegativeShare))
	if s.misses > 0 {
		l.add("distinct", ratio(s.distinct, s.misses, 0), "1", fmt.Sprintf("of misses were of a key of its own, second by second; a ticket from %g", d.c.DistinctShare))
	}
	l.add("stores", s.stores, "{store}", fmt.Sprintf("in the same time, and %.0f recomputes that found something", s.found))
	l.add("rate", rate, "{recompute}/s", "that found nothing")
	if b := budgetOf(c); b > 0 {
		l.add("running", float64(c.Running), "{recompute}", "now")
		l.add("budget", float64(b), "{recompute}", "as declared for "+originOf(c).String())
	}
	return symptom{
		subject: subject{cache: c.Cache}, service: c.Service, severity: Ticket, onset: at.Add(-p.span), evidence: l,
		summary: fmt.Sprintf("Cache %s: %.0f %% of recomputes find that there is no such thing, %.1f a second, nearly each for another key.",
			c.Cache, 100*ratio(s.nothing, s.ended, 0), rate),
	}
}
