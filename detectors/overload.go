package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const overloadID = "overload"

var overloadDoc = Doc{
	ID:      overloadID,
	Title:   "Plain overload",
	Meaning: "Readers want more than the origin can give, even with the cache as warm as usual and without a retry. There is no loop to break: it passes as soon as the load falls or the origin gets room, and not before.",
	Signal:  "Reads of users per second times the usual miss ratio and recompute time, against what the origin can run at once; recomputes that run or wait; and the share of reads that get an answer.",
	Condition: "Opens a ticket when for 30 s the load would have used more than 0.9 of the origin with a warm cache and no retries, and it showed: recomputes took up 0.9 of it or more, and either the origin needed 2 s or more for those that ran or waited, or readers were harmed; " +
		"or when that use was less, but the origin was full and readers were harmed with hardly a retry (1.1) and 0.9 of the usual hit ratio, so that it must have lost speed or room. " +
		"Pages when during that goodput was at most 0.9 of usual over 10 s and over 60 s, for 15 s: of priority 1 if it was at most half. Clears when that use has been at most 0.8 for 2 minutes, or readers were served as usual by an origin that was not full.",
	Why: "In a fluid model of an origin that does 1,000 a second, 1,200 for two minutes and then 600 came back by itself without retries, and with one or two did not: what the load would cost without amplification tells the two apart (Bronson et al., HotOS 2021). " +
		"A cache whose values live for a fixed time has a higher hit ratio the more it is read, so that the usual one would overstate what many readers ask for: the present one counts if it is better. And a full origin that nobody waits for is well used; who only looks for room will find it in budget-exceeded. " +
		"On a real one without retries the queue was gone a second after the load fell. 0.9 and not 1, because the time one recompute takes is known to 9 % from its histogram.",
	Traps: "An origin that is slow for a reason of its own looks as if its readers had become more. A retry storm or a loop that goes on is told apart by what the load would cost without it, and is the business of those detectors. " +
		"What is usual for the cache may have changed for good, with a deploy that reads other keys.",
	Advice: "Lower the load or raise the ceiling: shed the least important readers, serve stale values, lengthen the time to live of what is recomputed most, add capacity to the origin. " +
		"Find out who the new readers are. Do not let clients retry while it lasts: that can make a loop of it.",
	MayPage: true,
}

// OverloadConfig holds the thresholds of the overload detector. A zero field
// takes its default.
type OverloadConfig struct {
	// Use is the share of the origin that the load would take up with a warm
	// cache and no retries, beyond which it is overloaded, 0.1 to 10. Default
	// 0.9.
	Use float64 `yaml:"use,omitempty"`
	// Backlog is how long the origin must need for the recomputes that run or
	// wait, if readers are not harmed: 100ms to 1h. Default 2s.
	Backlog time.Duration `yaml:"backlog,omitempty"`
	// Goodput is the share of the usual goodput at or below which readers are
	// harmed, 0.1 to 0.99. Default 0.9.
	Goodput float64 `yaml:"goodput,omitempty"`
	// TicketAfter is how long it must last, 1s to 1h, default 30s; PageAfter
	// how long readers must be harmed meanwhile, 1s to 1h, default 15s.
	TicketAfter time.Duration `yaml:"ticket_after,omitempty"`
	PageAfter   time.Duration `yaml:"page_after,omitempty"`
	// ClearAfter is how long it must be over before a finding clears, 1s to
	// 24h. Default 2m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

func (c OverloadConfig) withDefaults() OverloadConfig {
	c.Use = cmp.Or(c.Use, 0.9)
	c.Backlog = cmp.Or(c.Backlog, 2*time.Second)
	c.Goodput = cmp.Or(c.Goodput, 0.9)
	c.TicketAfter = cmp.Or(c.TicketAfter, 30*time.Second)
	c.PageAfter = cmp.Or(c.PageAfter, 15*time.Second)
	c.ClearAfter = cmp.Or(c.ClearAfter, 2*time.Minute)
	return c
}

func (c OverloadConfig) validate() error {
	return cmp.Or(
		within("use", c.Use, 0.1, 10),
		within("backlog", c.Backlog, 100*time.Millisecond, time.Hour),
		within("goodput", c.Goodput, 0.1, 0.99),
		within("ticket_after", c.TicketAfter, time.Second, time.Hour),
		within("page_after", c.PageAfter, time.Second, time.Hour),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}

// overload finds origins of which more is wanted than they can do.
type overload struct {
	watch[overloadState]
	c       OverloadConfig
	alarms  *alarms
	reasons []Limit

	measures []Measure
}

// overloadState is what the detector thinks of one origin.
type overloadState struct {
	subject     subject // of the open finding
	over, harms lasting
}

// NewOverload returns the overload detector. It is a [Limited], a
// [Stateful] and a [Measured].
func NewOverload(c OverloadConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &overload{c: c, alarms: newAlarms(&overloadDoc, c.ClearAfter, "its readers wanted no more than the origin can do")}, nil
}

// Doc implements [Detector].
func (*overload) Doc() Doc { return overloadDoc }

// Limits implements [Limited].
func (d *overload) Limits() []Limit { return slices.Clone(d.reasons) }

// Observe implements [Detector]. Urgent ticks hold no rates.
func (d *overload) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	caches := cachesOf(t)
	d.measures = nil
	for o := range d.look(t, d.isOpen) {
		if o.live {
			d.measures = append(d.measures, o.measures()...)
		}
		switch {
		case o.live && o.known && o.budget > 0:
			d.judge(t.At, o)
		case d.isOpen(o):
			d.alarms.keep(t.At, o.own.subject)
		}
	}
	out := d.alarms.tell(t, caches)
	d.reasons = d.alarms.limits(t, caches, func(c *signal.CacheState) []Limit { return d.limits(c, true) })
	return out
}

func (d *overload) isOpen(o *watched[overloadState]) bool { return d.alarms.open[o.own.subject] != nil }

func (d *overload) judge(at signal.Nanos, o *watched[overloadState]) {
	s := &o.own
	over := d.wanted(&o.origin) || d.degraded(at, &o.origin)
	lasted := s.over.look(at, over)
	harmed := s.harms.look(at, over && o.goodBelow(&o.last10, d.c.Goodput) && o.goodBelow(&o.last60, d.c.Goodput))
	switch {
	case over && (lasted >= d.c.TicketAfter || d.isOpen(o)):
		if !d.isOpen(o) {
			cache, _ := o.neediest()
			s.subject = subject{cache: cache}
		}
		d.raise(at, o, harmed >= d.c.PageAfter)
	case d.isOpen(o) && !d.calm(at, &o.origin):
		d.alarms.keep(at, s.subject)
	}
}

// wanted reports that the load is more than the origin can do, whatever the
// cache and retries are like, and that it shows.
func (d *overload) wanted(o *origin) bool {
	f := &o.last10
	if o.counterfactual(f) <= d.c.Use || f.use(o.budget) < fullAt {
		return false
	}
	return f.concurrency() >= d.c.Backlog.Seconds()*o.ceiling() || o.goodBelow(f, d.c.Goodput)
}

// degraded reports that the origin does less than it could before: it is full
// and serves too few, though nothing amplifies what they ask of it.
func (d *overload) degraded(at signal.Nanos, o *origin) bool {
	f := &o.last10
	return !o.drains(at) && f.use(o.budget) >= 1 && o.goodBelow(f, d.c.Goodput) &&
		f.amplification() <= 1.1 && f.hitRatio() >= 0.9*o.usual.hits
}

// drains reports that what piled up during a trigger may still be on its way
// out: it gets twice the time that takes.
func (o *origin) drains(at signal.Nanos) bool {
	return o.trigger.open || o.trigger.kind != noTrigger && seconds(at.Sub(o.trigger.until)) < 2*o.drain()
}

// calm reports that the load has fallen, or that it is borne after all.
func (d *overload) calm(at signal.Nanos, o *origin) bool {
	borne := !o.goodBelow(&o.last60, 0.95) && o.last60.use(o.budget) < fullAt
	return borne || o.counterfactual(&o.last60) <= d.c.Use*0.8/0.9 && !d.degraded(at, o)
}

func (d *overload) raise(at signal.Nanos, o *watched[overloadState], harm bool) {
	s, f := &o.own, &o.last60
	severity, priority := Ticket, 0
	if harm {
		severity, priority = Page, 2
		if o.goodBelow(f, 0.5) {
			priority = 1
		}
	}
	var l evidenceList
	l.add("use.counterfactual", o.counterfactual(&o.last10), "1", fmt.Sprintf("with a warm cache and no retries; too much beyond %.1f", d.c.Use))
	o.phase(&l)
	l.addPositive("load.bearable", o.bearableLoad(d.c.Use), "{read}/s", "of users, with a warm cache")
	o.background(&l)
	d.alarms.raise(at, symptom{
		subject: s.subject, service: o.service[s.subject.cache], severity: severity, priority: priority,
		onset: s.over.since, evidence: l, summary: d.summary(o),
	})
}

// bearableLoad returns the reads per second that take up that share of the
// origin; 0 if that is not known, or the cache answers all.
func (o *origin) bearableLoad(share float64) float64 {
	if o.usual.hits >= 1 {
		return 0
	}
	return share * o.ceiling() / (1 - o.usual.hits)
}

func (d *overload) summary(o *watched[overloadState]) string {
	f := &o.last10
	answered := fmt.Sprintf("%.0f %% of reads get an answer", 100*f.goodput())
	if d.wanted(&o.origin) {
		return fmt.Sprintf("Cache %s: %.0f reads a second would take %.0f %% of %s even with a warm cache and no retries; %s.",
			o.own.subject.cache, f.load(), 100*o.counterfactual(f), o.name, answered)
	}
	return fmt.Sprintf("Cache %s: %s is full though load, hit ratio and retries are as usual, so it is slower or smaller than it was; %s.",
		o.own.subject.cache, o.name, answered)
}
