package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const retryStormID = "retry-storm"

var retryStormDoc = Doc{
	ID:    retryStormID,
	Title: "Retry storm",
	Meaning: "Recomputes fail, their callers try again at once, and the origin gets half as much work again or more, most of it in vain. " +
		"It may pass; if it does not within about a minute it has become a metastable loop.",
	Signal: "Attempts on the origin for each first attempt, as applications report them, the share of first attempts that come to a good end, and the share of users' reads that get an answer.",
	Condition: "Pages (priority 2) when for 15 s there were 1.5 attempts or more for each first one, at least 20 first ones in 10 s, at most 0.9 of first ones came to a good end, and goodput was at most 0.9 of usual; of priority 1 once that has lasted for 60 s, by when a spike is over. " +
		"Opens a ticket when all but the last held for a minute: the cache still hides it from readers. Clears when for 5 minutes there were at most 1.1 attempts for each first one and 0.95 of reads, against what is usual, or of first attempts ended well.",
	Why: "Clients with a retry budget of 10 % (Google's SRE book, chapter 21; gRPC's retry throttling) stay at or below 1.1 to 1.2 attempts even when everything fails; 1.5 says that there is none. " +
		"Three tries each turn 10,000 failing misses into 30,000 attempts. It is told apart from hedged requests, which also amplify, by the harm: hedges succeed.",
	Traps: "An origin that is down is not helped by stopping retries, though they will delay its return: look at why the first attempts fail. Retries that a client does not report are not seen, and count as load. " +
		"A deploy with wrong timeouts or addresses fails and retries too.",
	Advice: "Turn retries off, or give each client a budget for them of a tenth of its requests, with backoff and jitter; make refusals say that they must not be retried. " +
		"Then see why first attempts fail. If it has lasted for a minute, treat it as a metastable loop and shed load.",
	MayPage: true,
}

// RetryStormConfig holds the thresholds of the retry-storm detector. A zero field
// takes its default.
type RetryStormConfig struct {
	// Amplification is how many attempts on the origin for each first one are
	// a storm, 1.1 to 100. Default 1.5.
	Amplification float64 `yaml:"amplification,omitempty"`
	// Goodput is the share of first attempts that end well at or below which
	// retries are in vain, and the share of the usual goodput at or below
	// which readers are harmed, 0.1 to 0.99. Default 0.9.
	Goodput float64 `yaml:"goodput,omitempty"`
	// MinRequests is how many first attempts in 10 s make it worth the name,
	// 1 to 1,000,000. Default 20.
	MinRequests int `yaml:"min_requests,omitempty"`
	// PageAfter is how long it must last while readers are harmed, 1s to 10m,
	// default 15s; TicketAfter how long it must last at all, 1s to 1h,
	// default 60s.
	PageAfter   time.Duration `yaml:"page_after,omitempty"`
	TicketAfter time.Duration `yaml:"ticket_after,omitempty"`
	// WorseAfter is how long readers must be harmed for the page to be of
	// priority 1, PageAfter to 1h. Default 60s, or PageAfter if that is more.
	WorseAfter time.Duration `yaml:"worse_after,omitempty"`
	// ClearAfter is how long it must be over before a finding clears, 1s to
	// 24h. Default 5m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

func (c RetryStormConfig) withDefaults() RetryStormConfig {
	c.Amplification = cmp.Or(c.Amplification, 1.5)
	c.Goodput = cmp.Or(c.Goodput, 0.9)
	c.MinRequests = cmp.Or(c.MinRequests, 20)
	c.PageAfter = cmp.Or(c.PageAfter, 15*time.Second)
	c.TicketAfter = cmp.Or(c.TicketAfter, time.Minute)
	c.WorseAfter = cmp.Or(c.WorseAfter, max(time.Minute, c.PageAfter))
	c.ClearAfter = cmp.Or(c.ClearAfter, 5*time.Minute)
	return c
}

func (c RetryStormConfig) validate() error {
	return cmp.Or(
		within("amplification", c.Amplification, 1.1, 100),
		within("goodput", c.Goodput, 0.1, 0.99),
		within("min_requests", c.MinRequests, 1, 1_000_000),
		within("page_after", c.PageAfter, time.Second, 10*time.Minute),
		within("ticket_after", c.TicketAfter, time.Second, time.Hour),
		within("worse_after", c.WorseAfter, c.PageAfter, time.Hour),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}

// retryStorm finds origins that get more retries than they can bear.
type retryStorm struct {
	watch[stormState]
	c       RetryStormConfig
	alarms  *alarms
	reasons []Limit
}

// stormState is what the detector thinks of one origin.
type stormState struct {
	subject       subject // of the open finding
	storms, harms lasting
}

// NewRetryStorm returns the retry-storm detector. It is a [Limited] and a
// [Stateful].
func NewRetryStorm(c RetryStormConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &retryStorm{c: c, alarms: newAlarms(&retryStormDoc, c.ClearAfter, "there were hardly any retries")}, nil
}

// Doc implements [Detector].
func (*retryStorm) Doc() Doc { return retryStormDoc }

// Observe implements [Detector]. Urgent ticks hold no rates.
func (d *retryStorm) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	for o := range d.look(t, d.isOpen) {
		if o.live {
			d.judge(t.At, o)
		}
	}
	caches := cachesOf(t)
	out := d.alarms.tell(t, caches)
	d.reasons = d.alarms.limits(t, caches, d.limitsOf)
	return out
}

// Limits implements [Limited].
func (d *retryStorm) Limits() []Limit { return slices.Clone(d.reasons) }

// limitsOf tells of a cache whose readers' retries are not reported, if they are
// said to try again.
func (d *retryStorm) limitsOf(c *signal.CacheState) []Limit {
	o := d.all[originOf(c)]
	if o == nil || o.last60.requests > 0 || o.last60.started == 0 || c.Claims.Attempts == 1 {
		return nil
	}
	return []Limit{{c.Cache, true, "Attempts on its origin are not reported: retries cannot be told from first attempts."}}
}

func (d *retryStorm) isOpen(o *watched[stormState]) bool { return d.alarms.open[o.own.subject] != nil }

func (d *retryStorm) judge(at signal.Nanos, o *watched[stormState]) {
	f, s := &o.last10, &o.own
	storms := f.requests >= float64(d.c.MinRequests) && f.amplification() >= d.c.Amplification && f.originGoodput() <= d.c.Goodput
	stormed := s.storms.look(at, storms)
	harmed := s.harms.look(at, storms && o.goodBelow(f, d.c.Goodput))
	severity, priority := Info, 0
	switch {
	case storms && harmed >= d.c.WorseAfter:
		severity, priority = Page, 1
	case storms && harmed >= d.c.PageAfter:
		severity, priority = Page, 2
	case storms && stormed >= d.c.TicketAfter:
		severity = Ticket
	}
	switch {
	case severity > Info:
		if !d.isOpen(o) {
			cache, _ := o.neediest()
			s.subject = subject{cache: cache}
		}
		d.raise(at, o, severity, priority)
	case d.isOpen(o) && !d.calm(&o.origin):
		d.alarms.keep(at, s.subject)
	}
}

// calm reports that retries are few, and that most of what is asked for is had.
func (d *retryStorm) calm(o *origin) bool {
	f := &o.last60
	return f.amplification() <= 1.1 && (!o.goodBelow(f, 0.95) || f.originGoodput() >= 0.95)
}

func (d *retryStorm) raise(at signal.Nanos, o *watched[stormState], severity Severity, priority int) {
	f, s := &o.last10, &o.own
	var l evidenceList
	l.add("amplification", f.amplification(), "1", fmt.Sprintf("attempts for each first one; a storm from %.1f", d.c.Amplification))
	l.add("origin.goodput", f.originGoodput(), "1", "of first attempts, in 10 s")
	l.add("attempts", f.perSecond(f.attempts), "{attempt}/s", "on the origin")
	l.add("requests", f.perSecond(f.requests), "{request}/s", "first attempts")
	l.add("goodput", f.goodput(), "1", against(o.known, "usual %.2f", o.usual.good)+"; of users' reads")
	l.addPositive("use", f.use(o.budget), "1", "recomputes that run or wait, over what the origin can run at once")
	l.addPositive("claimed.attempts", float64(o.claims.Attempts), "{attempt}", "at most, for one request, as declared")
	harm := "The cache hides it from readers so far."
	if severity == Page {
		harm = fmt.Sprintf("%.0f %% of reads get an answer.", 100*f.goodput())
	}
	d.alarms.raise(at, symptom{
		subject: s.subject, service: o.service[s.subject.cache], severity: severity, priority: priority,
		onset: s.storms.since, evidence: l,
		summary: fmt.Sprintf("Cache %s: %.1f attempts on %s for each first one, %.0f a second, and %.0f %% of first ones come to a good end. %s",
			s.subject.cache, f.amplification(), o.name, f.perSecond(f.attempts), 100*f.originGoodput(), harm),
	})
}
