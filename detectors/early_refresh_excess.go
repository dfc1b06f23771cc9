package detectors

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const earlyRefreshExcessID = "early-refresh-excess"

var earlyRefreshExcessDoc = Doc{
	ID:    earlyRefreshExcessID,
	Title: "XFetch refreshes too often, or far too early",
	Meaning: "Readers who refresh a key before it expires (XFetch) do so in greater numbers than chance explains, or so early that a good part of every value's life is thrown away. " +
		"The origin works for values that were still good.",
	Signal: "Early refreshes of each key on caches that say XFetch: how many started in each life of a value, and how long before its expiry; against the declared beta.",
	Condition: "Opens a ticket on a key whose values were refreshed early in at least 20 of its last 64 lives, by more than 2 e^(1/beta) recomputes a life on average; " +
		"or that had at least 20 early refreshes in at least 5 lives, with a mean lead over those lives of more than 25 % of the time to live. Beta is 1 unless declared. " +
		"Clears when it has not been so for 30 minutes, or two of the key's times to live if that is longer.",
	Why: "While the first volunteer of XFetch recomputes others join it, so that the number of starters follows a geometric law of mean e^(1/beta): 2.7 at beta 1, 1.9 at 1.5, 1.6 at 2 (Vattani, Chierichetti, Lowenstein, VLDB 2015). " +
		"That 20 lives show twice that by chance happens once in 94,000 at beta 1, in 13,000 at 0.5, and never more than once in 5,600, however small beta is. " +
		"The mean lead is beta d (ln(r beta d) + 0.58), for r reads a second and recomputes of d seconds: 2.2 s at r = 300, d = 0.4 and beta = 1. With beta = 10 it is 31 s: longer than a time to live of 20 s, and the key is refreshed all the time. " +
		"A quarter of the life thrown away is a third more work than needed; the lead of one life scatters by 1.3 beta d, the mean of 5 by 0.6 beta d.",
	Traps: "A warm-up or a refresh job counts its work as early. Instances that each have their own copy of the value volunteer each for themselves. " +
		"A time to live that is short against the recompute time leaves no room: then the lead is large at any beta. One recompute that took too long makes the next lead large (delta-poisoning), once.",
	Advice: "Too many starters: let one refresh per process serve (single-flight), or one in the fleet (a short lease), and look again whether the value is still due once it is your turn. " +
		"Too early: lower beta towards 1, and clamp the stored recompute time to a sane range. If the time to live is only a few recompute times long, make it longer.",
}

// EarlyRefreshExcessConfig holds the thresholds of the early-refresh-excess
// detector. A zero field takes its default.
type EarlyRefreshExcessConfig struct {
	// Starts is how many times the e^(1/beta) recomputes a life that theory
	// predicts a key must show, 1.2 to 100. Default 2.
	Starts float64 `yaml:"starts,omitempty"`
	// Cycles is how many lives that takes, 10 to 64. Default 20.
	Cycles int `yaml:"cycles,omitempty"`
	// Lead is the part of the time to live that the mean lead must exceed,
	// 0.05 to 1. Default 0.25.
	Lead float64 `yaml:"lead,omitempty"`
	// ClearAfter is how long it must not be so before a finding clears, 1s to
	// 24h; two times to live of the key count instead if they are longer.
	// Default 30m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
	// MaxKeys bounds how many keys are remembered, 100 to 1,000,000; each
	// takes up to 3 kB. Default 5,000.
	MaxKeys int `yaml:"max_keys,omitempty"`
}

func (c EarlyRefreshExcessConfig) withDefaults() EarlyRefreshExcessConfig {
	c.Starts = cmp.Or(c.Starts, 2)
	c.Cycles = cmp.Or(c.Cycles, 20)
	c.Lead = cmp.Or(c.Lead, 0.25)
	c.ClearAfter = cmp.Or(c.ClearAfter, 30*time.Minute)
	c.MaxKeys = cmp.Or(c.MaxKeys, 5000)
	return c
}

func (c EarlyRefreshExcessConfig) validate() error {
	return cmp.Or(
		within("starts", c.Starts, 1.2, 100),
		within("cycles", c.Cycles, 10, maxCycles),
		within("lead", c.Lead, 0.05, 1),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
		within("max_keys", c.MaxKeys, 100, 1_000_000),
	)
}

// A mean lead takes so many refreshes, in so many lives.
const (
	leadRefreshes = 20
	leadCycles    = 5
)

// earlyRefreshExcess finds keys that XFetch refreshes more than it should.
type earlyRefreshExcess struct {
	c      EarlyRefreshExcessConfig
	alarms *alarms
	book   refreshBook
	limits []Limit
}

// NewEarlyRefreshExcess returns the early-refresh-excess detector. It is a
// [Limited].
func NewEarlyRefreshExcess(c EarlyRefreshExcessConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &earlyRefreshExcess{
		c: c, book: newRefreshBook(c.MaxKeys),
		alarms: newAlarms(&earlyRefreshExcessDoc, c.ClearAfter, "values were not refreshed more than they should be"),
	}, nil
}

// Doc implements [Detector].
func (*earlyRefreshExcess) Doc() Doc { return earlyRefreshExcessDoc }

// Limits implements [Limited].
func (d *earlyRefreshExcess) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector]. Urgent ticks hold no early refreshes.
func (d *earlyRefreshExcess) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	caches := cachesOf(t)
	for _, s := range d.book.learn(t, caches) {
		d.judge(t.At, s, d.book.notes.find(s), caches[s.cache])
	}
	out := d.alarms.tell(t, caches)
	d.limits = d.alarms.limits(t, caches, undeclaredBeta)
	return out
}

// volunteers is how a key was refreshed early.
type volunteers struct {
	cycles int     // with an early refresh
	starts float64 // a cycle, on average
	leads  float64 // refreshes of which the lead is known
	led    int     // cycles with one
	lead   time.Duration
}

// volunteers adds up the key's cycles. The mean lead is that of the cycles', so
// that one with many refreshes counts no more than others.
func (r *refreshes) volunteers() volunteers {
	var v volunteers
	var starts, lead float64
	for i := range r.cycles {
		c := &r.cycles[i]
		if c.starts > 0 {
			v.cycles++
			starts += c.starts
		}
		if c.leads > 0 {
			v.led++
			v.leads += c.leads
			lead += c.lead / c.leads
		}
	}
	if v.cycles > 0 {
		v.starts = starts / float64(v.cycles)
	}
	if v.led > 0 {
		v.lead = durationOf(lead / float64(v.led))
	}
	return v
}

func (d *earlyRefreshExcess) judge(at signal.Nanos, s subject, r *refreshes, c *signal.CacheState) {
	if r == nil {
		return
	}
	v, theory := r.volunteers(), math.Exp(min(1/betaOf(c), 50))
	many := v.cycles >= d.c.Cycles && v.starts > d.c.Starts*theory
	early := r.ttl > 0 && v.leads >= leadRefreshes && v.led >= leadCycles && v.lead.Seconds() > d.c.Lead*r.ttl.Seconds()
	if !many && !early {
		return
	}
	y := symptom{
		subject: s, key: r.key, service: c.Service, severity: Ticket, onset: r.cycles[0].began, ttl: r.ttl,
		summary: fmt.Sprintf("%s: %.1f early refreshes a life; XFetch explains %.1f.", placeOf(r.key, s.cache), v.starts, theory),
	}
	var l evidenceList
	if early {
		y.summary = fmt.Sprintf("%s: refreshed %.1f s before its expiry on average, of a life of %.1f s.", placeOf(r.key, s.cache), v.lead.Seconds(), r.ttl.Seconds())
		l.add("lead.share", v.lead.Seconds()/r.ttl.Seconds(), "1", fmt.Sprintf("of the time to live; a ticket above %v", d.c.Lead))
	}
	l.add("starts", v.starts, "{recompute}", fmt.Sprintf("a life that was refreshed early; a ticket above %.1f", d.c.Starts*theory))
	l.add("starts.theory", theory, "{recompute}", "e^(1/beta)")
	l.addPositive("lead", v.lead.Seconds(), "s", "before the expiry, on average")
	l.addPositive("ttl", seconds(r.ttl), "s", "")
	l.add("beta", betaOf(c), "1", betaNote(c))
	l.addPositive("recompute.mean", seconds(r.recompute()), "s", "")
	l.add("cycles", float64(v.cycles), "{cycle}", "with an early refresh")
	y.evidence = l
	d.alarms.raise(at, y)
}
