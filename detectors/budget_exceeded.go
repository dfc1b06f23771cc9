package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const budgetExceededID = "budget-exceeded"

var budgetExceededDoc = Doc{
	ID:      budgetExceededID,
	Title:   "Demand over budget",
	Meaning: "Misses ask for nearly all the origin can do, or more. Nearly all: there is no room for an expiry that comes at a bad time. More: the queue grows until readers give up.",
	Signal:  "Recomputes asked for per second, retries and coalesced readers left out, times what one takes when nobody is in the way, over what the origin can run at once; and how many run or wait.",
	Condition: "Opens a ticket when that demand was 0.8 or more for 10 minutes. Pages (priority 2) when it was 1 or more for a minute, and for as long at least as many recomputes as the origin can run were running or waiting on average, and did not become fewer; while it is not known yet what is usual, only if at most 0.9 of reads got an answer meanwhile. " +
		"Clears when demand has been below 0.7 for 5 minutes and no more run or wait than the origin can run, on average.",
	Why: "A queue has no stable length from a demand of 1 on, and grows without bound as it comes near: at 0.8 of one server the mean wait is four times the recompute time (Little; Pollaczek and Khinchine), hence the ticket. " +
		"A refill after a flush has a demand above 1 too and drains, so the page wants a minute of a queue that does not shrink; as readers give up after their timeout, it need not grow either.",
	Traps: "Until five healthy minutes have been seen nobody knows how warm the cache should be: then a cache that is filled for the first time looks the same, and harms its readers as much. In a metastable loop demand is high because the cache is cold and stays so: the evidence holds what it would be with a warm one, and the loop is the finding to act on. A flush or a node that is lost does the same for a while. " +
		"Misses that are not followed by a recompute (a lock that is polled, a negative entry) count if attempts on the origin are not reported.",
	Advice: "Make fewer or cheaper misses: a longer time to live for what is recomputed most, coalescing, one cached negative for what does not exist. If the hit ratio is as it should be, the origin is too small for its readers: give it room. " +
		"While it pages, shed the least important readers.",
	MayPage: true,
}

// BudgetExceededConfig holds the thresholds of the budget-exceeded detector. A
// zero field takes its default. Demand is a share of what the origin can do.
type BudgetExceededConfig struct {
	// TicketDemand, for TicketAfter, makes a ticket: 0.1 to 10, default 0.8;
	// and 1s to 24h, default 10m.
	TicketDemand float64       `yaml:"ticket_demand,omitempty"`
	TicketAfter  time.Duration `yaml:"ticket_after,omitempty"`
	// PageDemand, for PageAfter while the queue does not shrink, pages:
	// TicketDemand to 10, default 1, or TicketDemand if that is more; and 1s
	// to 1h, default 60s.
	PageDemand float64       `yaml:"page_demand,omitempty"`
	PageAfter  time.Duration `yaml:"page_after,omitempty"`
	// ClearAfter is how long it must be over before a finding clears, 1s to
	// 24h. Default 5m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

func (c BudgetExceededConfig) withDefaults() BudgetExceededConfig {
	c.TicketDemand = cmp.Or(c.TicketDemand, 0.8)
	c.TicketAfter = cmp.Or(c.TicketAfter, 10*time.Minute)
	c.PageDemand = cmp.Or(c.PageDemand, max(1, c.TicketDemand))
	c.PageAfter = cmp.Or(c.PageAfter, time.Minute)
	c.ClearAfter = cmp.Or(c.ClearAfter, 5*time.Minute)
	return c
}

func (c BudgetExceededConfig) validate() error {
	return cmp.Or(
		within("ticket_demand", c.TicketDemand, 0.1, 10),
		within("ticket_after", c.TicketAfter, time.Second, maxHold),
		within("page_demand", c.PageDemand, c.TicketDemand, 10),
		within("page_after", c.PageAfter, time.Second, time.Hour),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}

// budgetExceeded finds origins of which misses ask too much.
type budgetExceeded struct {
	watch[budgetState]
	c       BudgetExceededConfig
	alarms  *alarms
	reasons []Limit
}

// budgetState is what the detector thinks of one origin.
type budgetState struct {
	subject    subject // of the open finding
	high, over lasting
}

// NewBudgetExceeded returns the budget-exceeded detector. It is a [Limited] and
// a [Stateful].
func NewBudgetExceeded(c BudgetExceededConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &budgetExceeded{c: c, alarms: newAlarms(&budgetExceededDoc, c.ClearAfter, "misses asked no more than the origin can do with ease")}, nil
}

// Doc implements [Detector].
func (*budgetExceeded) Doc() Doc { return budgetExceededDoc }

// Limits implements [Limited].
func (d *budgetExceeded) Limits() []Limit { return slices.Clone(d.reasons) }

// Observe implements [Detector]. Urgent ticks hold no rates.
func (d *budgetExceeded) Observe(t *signal.Tick) []Finding {
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

func (d *budgetExceeded) isOpen(o *watched[budgetState]) bool {
	return d.alarms.open[o.own.subject] != nil
}

// asked returns the share of the origin that misses ask for; 0 if it is not
// known.
func (o *origin) asked() float64 {
	if o.ceiling() == 0 {
		return 0
	}
	return o.last60.wanted() / o.ceiling()
}

// harmBelow is the goodput below which readers are harmed, whatever is usual.
const harmBelow = 0.9

// limitsOf says what keeps a cache from being judged. While what is usual is not
// known the time that recomputes take may be, and that is enough.
func (d *budgetExceeded) limitsOf(c *signal.CacheState) []Limit {
	out := d.limits(c, true)
	if o := d.all[originOf(c)]; o != nil && o.ceiling() > 0 {
		for i := range out {
			out[i].Blind = false
		}
	}
	return out
}

func (d *budgetExceeded) judge(at signal.Nanos, o *watched[budgetState]) {
	s, asked := &o.own, o.asked()
	enough := asked > 0 && o.last60.started >= enoughReads
	high := s.high.look(at, enough && asked >= d.c.TicketDemand)
	over := s.over.look(at, enough && asked >= d.c.PageDemand && o.queues(at))
	severity := Info
	switch {
	case over >= d.c.PageAfter && (o.known || o.goodBelow(&o.last60, harmBelow)):
		severity = Page
	case high >= d.c.TicketAfter:
		severity = Ticket
	}
	switch {
	case severity > Info:
		if !d.isOpen(o) {
			cache, _ := o.neediest()
			s.subject = subject{cache: cache}
		}
		d.raise(at, o, severity)
	case d.isOpen(o) && (asked == 0 || asked >= d.c.TicketDemand*0.7/0.8 || o.last60.use(o.budget) > 1):
		d.alarms.keep(at, s.subject)
	}
}

// queues reports that the origin is full, and that what runs or waits has not
// become less in the last minute. Averages, as a count of one instant is mostly
// chance.
func (o *origin) queues(at signal.Nanos) bool {
	late := o.sum(at, 30*time.Second)
	early := o.last60
	early.running -= late.running
	early.span -= late.span
	now := late.perSecond(late.running)
	return now >= float64(o.budget) && now >= 0.95*early.perSecond(early.running)
}

func (d *budgetExceeded) raise(at signal.Nanos, o *watched[budgetState], severity Severity) {
	s, f := &o.own, &o.last60
	var l evidenceList
	l.add("demand", o.asked(), "1", fmt.Sprintf("of what the origin can do, in 60 s; too much from %.1f", d.c.PageDemand))
	l.add("wanted", f.wanted(), "{recompute}/s", "retries and coalesced readers left out")
	l.add("ceiling", o.ceiling(), "{recompute}/s", "that the origin can do")
	l.add("running", o.running, "{recompute}", "that run or wait")
	if o.known {
		l.add("use.counterfactual", o.counterfactual(f), "1", "with a warm cache and no retries")
	}
	l.add("hit_ratio", f.hitRatio(), "1", against(o.known, "usual %.2f", o.usual.hits))
	l.add("amplification", f.amplification(), "1", "attempts on the origin for each first one; not in demand")
	o.background(&l)
	priority, onset := 0, s.high.since
	if severity == Page {
		priority, onset = 2, s.over.since
	}
	d.alarms.raise(at, symptom{
		subject: s.subject, service: o.service[s.subject.cache], severity: severity, priority: priority, onset: onset, evidence: l,
		summary: fmt.Sprintf("Cache %s: misses ask for %.0f recomputes a second, %.0f %% of the %.0f %s can do; %.0f run or wait, of %d it can run at once.",
			s.subject.cache, f.wanted(), 100*o.asked(), o.ceiling(), o.name, o.running, o.budget),
	})
}
