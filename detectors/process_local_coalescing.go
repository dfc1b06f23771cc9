package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const processLocalCoalescingID = "process-local-coalescing"

var processLocalCoalescingDoc = Doc{
	ID:    processLocalCoalescingID,
	Title: "Coalescing ends where the process ends",
	Meaning: "Every process lets one recompute of a hot key serve all its readers, as it should, but there are many processes, and each runs its own. " +
		"The origin sees one recompute an instance at every expiry.",
	Signal: "Episodes in which no process ran two provoked recomputes of one key at a time, by how many ran at the same instant in the fleet.",
	Condition: "Looks at keys whose readers are known to coalesce: the application claims single-flight, readers were seen to wait for another's recompute, or in the key's last 5 episodes no process ran two at once although readers met there, " +
		"which would come about by chance less than once in 1,000 times. Information on a key when at least 5 ran at once in at least 5 instances. A ticket from half of what the origin can run at once, a page from all of it, of priority 1 from twice that. " +
		"While the oldest instance is younger than 60 s and nobody had a value before, it is a ticket at most. " +
		"Clears when no episode has come near it (half as many) for 10 minutes, or two of the key's times to live if that is longer.",
	Why: "With single-flight an instance that gets r reads a second takes part in an expiry with probability 1 - e^(-r d), so N instances start up to N recomputes of d seconds, and never more: " +
		"20 instances with 15 reads a second each and d = 0.4 s start 20 of them, against 121 without. That is what the fleet was built to do, and below half the budget it harms nobody: hence information. " +
		"Five, because with fewer processes there is little to gain. It takes no luck: five instances that do not want the same key at the same time overlap by chance no more often than their own recomputes are rare; at one recompute of 0.4 s a minute each, in one of 500 million instants. " +
		"Where nobody coalesces, few recomputes fall to as many instances now and then: 8 of 20 instances once in 5 times, 20 of 20 once in 40 million. " +
		"The budget is the only bound there is: without one nothing but information is given.",
	Traps: "A process that ran two at once is another trouble: hot-key-expiry or coalescing-bypass. Processes that report nothing of what they ran at once are taken for not coalescing, " +
		"and so are readers who wait for something else, such as a slot at the origin, as soon as two of one process have run at once. " +
		"A fleet that starts with an empty cache computes everything once an instance, and never again.",
	Advice: "Refresh ahead of the expiry (XFetch), so that it is rarely met at all. Or take a lease in the cache, so that one instance recomputes and the others are served the old value meanwhile. " +
		"More instances make it worse, and so does a smaller pool at the origin.",
	MayPage: true,
}

// ProcessLocalCoalescingConfig holds the thresholds of the
// process-local-coalescing detector. A zero field takes its default.
type ProcessLocalCoalescingConfig struct {
	// Peak is how many recomputes of one key must run at once, in as many
	// instances, to be told of, 2 to 1,000,000. Default 5.
	Peak int `yaml:"peak,omitempty"`
	// TicketShare is the part of the origin's budget that makes a ticket of
	// it, 0.01 to 1. Default 0.5.
	TicketShare float64 `yaml:"ticket_share,omitempty"`
	// ColdStart is how long the oldest instance must have been up before a
	// fleet no longer counts as starting cold, 1s to 1h. Default 60s.
	ColdStart time.Duration `yaml:"cold_start,omitempty"`
	// ClearAfter is how long it must not be seen before a finding clears, 1s
	// to 24h; two times to live of the key count instead if they are longer.
	// Default 10m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

func (c ProcessLocalCoalescingConfig) withDefaults() ProcessLocalCoalescingConfig {
	c.Peak = cmp.Or(c.Peak, 5)
	c.TicketShare = cmp.Or(c.TicketShare, 0.5)
	c.ColdStart = cmp.Or(c.ColdStart, time.Minute)
	c.ClearAfter = cmp.Or(c.ClearAfter, 10*time.Minute)
	return c
}

func (c ProcessLocalCoalescingConfig) validate() error {
	return cmp.Or(
		within("peak", c.Peak, 2, maxPeak),
		within("ticket_share", c.TicketShare, 0.01, 1),
		within("cold_start", c.ColdStart, time.Second, time.Hour),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}

// processLocalCoalescing finds fleets whose processes coalesce each for itself.
type processLocalCoalescing struct {
	c      ProcessLocalCoalescingConfig
	alarms *alarms
	notes  *notebook[flights]
	limits []Limit
}

// maxFlightKeys is how many keys are remembered whose readers meet.
const maxFlightKeys = 10_000

// NewProcessLocalCoalescing returns the process-local-coalescing detector. It is
// a [Limited].
func NewProcessLocalCoalescing(c ProcessLocalCoalescingConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &processLocalCoalescing{
		c: c, alarms: newAlarms(&processLocalCoalescingDoc, c.ClearAfter, "instances did not recompute it side by side"),
		notes: newNotebook[flights](maxFlightKeys, rememberFor),
	}, nil
}

// Doc implements [Detector].
func (*processLocalCoalescing) Doc() Doc { return processLocalCoalescingDoc }

// Limits implements [Limited].
func (d *processLocalCoalescing) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector].
func (d *processLocalCoalescing) Observe(t *signal.Tick) []Finding {
	caches := cachesOf(t)
	for _, e := range sortedEpisodes(t) {
		// An episode that comes nowhere near it says little of how readers meet.
		if 2*e.PeakLow < d.c.Peak || !isNews(t.At, e) || !d.coalesced(t.At, e, caches[e.Window.Cache]) {
			continue
		}
		switch n := e.Window.Instances(); {
		case e.PeakLow >= d.c.Peak && n >= d.c.Peak:
			d.alarms.raise(t.At, d.judge(t.At, e, n, caches[e.Window.Cache]))
		default:
			d.alarms.keep(t.At, subjectOf(e))
		}
	}
	out := d.alarms.tell(t, caches)
	if !t.Urgent {
		d.notes.sweep(t.At)
		d.limits = d.alarms.limits(t, caches, d.limitsOf)
	}
	return out
}

// coalesced reports whether readers of each process let one recompute serve them
// in e, as far as its key's latest episodes prove it.
func (d *processLocalCoalescing) coalesced(at signal.Nanos, e *signal.Episode, c *signal.CacheState) bool {
	return d.notes.open(at, subjectOf(e)).look(e, coalescingOf(e, c))
}

func (d *processLocalCoalescing) judge(at signal.Nanos, e *signal.Episode, instances int, c *signal.CacheState) symptom {
	w, budget := e.Window, budgetOf(c)
	y := symptom{
		subject: subjectOf(e), key: w.Key, service: serviceOf(c, w), onset: cmp.Or(e.Onset, e.Started), ttl: e.TTL,
		summary: fmt.Sprintf("%s: %s recomputed one key at once, one each.", placeOf(w.Key, w.Cache), count(e.PeakLow, "instance")),
	}
	switch {
	case budget == 0:
		y.summary += " What the origin can run at once is not declared."
	case e.PeakLow >= budget && !coldStart(at, e, c, d.c.ColdStart):
		y.severity, y.priority = Page, 2
		if e.PeakLow >= 2*budget {
			y.priority = 1
		}
	case float64(e.PeakLow) >= d.c.TicketShare*float64(budget):
		y.severity = Ticket
	}
	if budget > 0 {
		y.summary += fmt.Sprintf(" The origin can run %d.", budget)
	}
	var l evidenceList
	l.add("peak", float64(e.PeakLow), "{recompute}", "at one instant in the fleet")
	l.addPositive("budget", float64(budget), "{recompute}", "as declared")
	l.add("instances", float64(instances), "{instance}", "that recomputed it, never two at a time")
	l.addPositive("spared", float64(w.Coalesced), "{reader}", "waited for a recompute in their own process")
	l.add("duplicates", float64(e.Duplicates), "{recompute}", "served nobody but their own process")
	l.addPositive("recompute.mean", seconds(meanRecompute(w)), "s", "of those that ended")
	l.addPositive("ttl", seconds(e.TTL), "s", "the shortest lately")
	y.evidence = l
	return y
}

func (d *processLocalCoalescing) limitsOf(c *signal.CacheState) []Limit {
	if budgetOf(c) > 0 {
		return nil
	}
	return []Limit{{c.Cache, false, "What its origin can run at once is not declared: instances that recompute side by side are information only."}}
}
