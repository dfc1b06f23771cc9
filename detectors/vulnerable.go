package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const vulnerableID = "vulnerable"

var vulnerableDoc = Doc{
	ID:    vulnerableID,
	Title: "Vulnerable to a metastable loop",
	Meaning: "All is well, and it rests on the cache: if the cache were lost for a moment, readers with their retries would ask more of the origin than it can do, and might keep it from coming back. " +
		"Many services live like that; what matters is to know, and to have rehearsed the way back.",
	Signal: "Reads of users per second, how long a recompute takes when nobody is in the way, how many attempts the application says it makes, and what the origin can run at once.",
	Condition: "Informs when for an hour load x recompute time x attempts, over what the origin can run at once, was 1 or more. As a ticket if the configuration asks for it. " +
		"Clears when it has been below 0.9 for an hour.",
	Why: "An origin that does 300 queries a second serves 3,000 reads with a hit ratio of 90 %, and above 300 can fail to come back once the cache is lost (Bronson et al., HotOS 2021). " +
		"With A attempts the bound falls to the origin's ceiling over A: in a fluid model of a ceiling of 1,000 a second and 3 attempts, a load of 400 did not recover and 250 did, with the bound at 333. " +
		"An hour, because this is a property of how the service is built and not an event.",
	Traps: "Without attempts declared one is taken, and the bound is too high. Requests that fail fast, a retry budget, coalescing, or serving stale values make a service sturdier than this says: popular keys fill the cache again with one recompute each. " +
		"Its load at night may be below the bound.",
	Advice: "Decide how the service gets back when the cache is lost, and try it: a retry budget of a tenth, refusals that are not retried, a limit on what is let in while the cache fills, a warm-up of the keys that are read most. " +
		"Or give the origin more room, or the readers fewer attempts.",
}

// VulnerableConfig holds the thresholds of the vulnerable detector. A zero field
// takes its default.
type VulnerableConfig struct {
	// Demand is the share of the origin that all readers with all their
	// attempts would take up without a cache, from which on it is told, 0.1
	// to 100. Default 1.
	Demand float64 `yaml:"demand,omitempty"`
	// Hold is how long that must last, and how long it must be over before
	// the finding clears, 1m to 24h. Default 1h.
	Hold time.Duration `yaml:"hold,omitempty"`
	// Ticket makes it a ticket. Default: it informs.
	Ticket bool `yaml:"ticket,omitempty"`
}

func (c VulnerableConfig) withDefaults() VulnerableConfig {
	c.Demand = cmp.Or(c.Demand, 1)
	c.Hold = cmp.Or(c.Hold, time.Hour)
	return c
}

func (c VulnerableConfig) validate() error {
	return cmp.Or(
		within("demand", c.Demand, 0.1, 100),
		within("hold", c.Hold, time.Minute, maxHold),
	)
}

// vulnerable finds origins that could not bear the loss of their cache.
type vulnerable struct {
	watch[vulnerableState]
	c       VulnerableConfig
	alarms  *alarms
	reasons []Limit
}

// vulnerableState is what the detector thinks of one origin.
type vulnerableState struct {
	subject subject // of the open finding
	exposed lasting
}

// NewVulnerable returns the vulnerable detector. It is a [Limited] and a
// [Stateful].
func NewVulnerable(c VulnerableConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &vulnerable{c: c, alarms: newAlarms(&vulnerableDoc, c.Hold, "the origin could have borne all readers by itself")}, nil
}

// Doc implements [Detector].
func (*vulnerable) Doc() Doc { return vulnerableDoc }

// Limits implements [Limited].
func (d *vulnerable) Limits() []Limit { return slices.Clone(d.reasons) }

// Observe implements [Detector]. This is a matter of hours; urgent ticks say
// nothing of it.
func (d *vulnerable) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	caches := cachesOf(t)
	for o := range d.look(t, d.isOpen) {
		if o.live {
			d.judge(t.At, o)
		}
	}
	out := d.alarms.tell(t, caches)
	d.reasons = d.alarms.limits(t, caches, d.limitsOf)
	return out
}

func (d *vulnerable) isOpen(o *watched[vulnerableState]) bool {
	return d.alarms.open[o.own.subject] != nil
}

func (d *vulnerable) limitsOf(c *signal.CacheState) []Limit {
	out := d.limits(c, true)
	if o := d.all[originOf(c)]; len(out) == 0 && o != nil && o.claims.Attempts == 0 {
		out = append(out, Limit{c.Cache, false, "How often its readers try is not declared: one attempt is taken, which is the least."})
	}
	return out
}

// uncached returns the share of the origin that all readers with all their
// attempts would take up if nothing were cached.
func (o *origin) uncached() float64 {
	if o.ceiling() == 0 {
		return 0
	}
	return o.last60.load() * float64(max(1, o.claims.Attempts)) / o.ceiling()
}

func (d *vulnerable) judge(at signal.Nanos, o *watched[vulnerableState]) {
	s := &o.own
	held := s.exposed.look(at, o.uncached() >= d.c.Demand)
	switch {
	case d.isOpen(o) && held > 0, held >= d.c.Hold:
		if !d.isOpen(o) {
			cache, _ := o.neediest()
			s.subject = subject{cache: cache}
		}
		d.raise(at, o)
	case d.isOpen(o) && (!o.known || o.uncached() >= 0.9*d.c.Demand):
		d.alarms.keep(at, s.subject)
	}
}

func (d *vulnerable) raise(at signal.Nanos, o *watched[vulnerableState]) {
	s, attempts := &o.own, max(1, o.claims.Attempts)
	severity := Info
	if d.c.Ticket {
		severity = Ticket
	}
	note := "at most, for one request, as declared"
	if o.claims.Attempts == 0 {
		note = "not declared; one is the least"
	}
	var l evidenceList
	l.add("use.uncached", o.uncached(), "1", fmt.Sprintf("of the origin, by all readers with all attempts and no cache; told from %.1f", d.c.Demand))
	l.add("load", o.last60.load(), "{read}/s", "of users")
	l.add("load.bound", d.c.Demand*o.ceiling()/float64(attempts), "{read}/s", "below which it would come back by itself")
	l.add("claimed.attempts", float64(attempts), "{attempt}", note)
	l.add("use.counterfactual", o.counterfactual(&o.last60), "1", "with the cache as it usually is")
	o.background(&l)
	d.alarms.raise(at, symptom{
		subject: s.subject, service: o.service[s.subject.cache], severity: severity, onset: s.exposed.since, evidence: l,
		summary: fmt.Sprintf("Cache %s: without it, %.0f reads a second of up to %s each would ask %.1f times what %s can do.",
			s.subject.cache, o.last60.load(), count(attempts, "attempt"), o.uncached(), o.name),
	})
}
