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
	Title: "Early refreshes come too often, or far too early",
	Meaning: "Readers who refresh a key before it expires (XFetch, refresh-ahead) do so in greater numbers than chance explains, or so early that a good part of every value's life is thrown away. " +
		"The origin works for values that were still good.",
	Signal: "Early refreshes of each key: how many started in each life of a value, and how long before its expiry; against the beta or the ratio that is declared.",
	Condition: "Opens a ticket on a key whose values were refreshed early in at least 20 of its last 64 lives, by more than twice as many recomputes a life as are to be expected, on average: " +
		"e^(1/beta) with XFetch, one an instance with other ways of refreshing early, the greater of the two if nothing is declared. Lives in which recomputes took more than 1.5 times as long as in most do not count. " +
		"Or on one that had at least 20 early refreshes in at least 5 lives, with a mean lead over those lives of more than 25 % of the time to live, or more than the declared ratio of refresh-ahead by a tenth if that is higher; more than 50 % is too much whatever is declared. Beta is 1 unless declared. " +
		"Clears when it has not been so for 30 minutes, or two of the key's times to live if that is longer.",
	Why: "While the first volunteer of XFetch recomputes others join it, so that the number of starters follows a geometric law of mean e^(1/beta): 2.7 at beta 1, 1.9 at 1.5, 1.6 at 2 (Vattani, Chierichetti, Lowenstein, VLDB 2015). " +
		"That 20 lives show twice that by chance happens once in 94,000 at beta 1, in 13,000 at 0.5, and never more than once in 5,600, however small beta is. " +
		"The mean lead is beta d (ln(r beta d) + 0.58), for r reads a second and recomputes of d seconds: 2.2 s at r = 300, d = 0.4 and beta = 1. With beta = 10 it is 31 s: longer than a time to live of 20 s, and the key is refreshed all the time. " +
		"Those who join grow as e^(d / (beta D)) if the recompute takes d and readers act on D: a single slow one among 20 lives, of 4.5 times the usual, brings 90 of them, and says nothing of how XFetch is set up. Hence lives in which the origin was slow are left out. " +
		"Refresh-ahead by time is once an instance at most. Its lead is what its ratio says, and a ratio is a choice; but beyond a half more of each value is thrown away than used, and what was written as 5 minutes lives for less than half of them. " +
		"A quarter of the life thrown away is a third more work than needed; the lead of one life scatters by 1.3 beta d, the mean of 5 by 0.6 beta d.",
	Traps: "A warm-up or a refresh job counts its work as early. Instances that each have their own copy of the value volunteer each for themselves. " +
		"A time to live that is short against the recompute time leaves no room: then the lead is large at any beta. One recompute that took too long makes the next lead large (delta-poisoning), once.",
	Advice: "If the lead is most of the life, look for a time to live that was shortened where its early refresh was meant (a ratio in place of its complement, seconds in place of milliseconds). Too many starters: let one refresh per process serve (single-flight), or one in the fleet (a short lease), and look again whether the value is still due once it is your turn. " +
		"Too early: lower beta towards 1, and clamp the stored recompute time to a sane range. If the time to live is only a few recompute times long, make it longer.",
}

// EarlyRefreshExcessConfig holds the thresholds of the early-refresh-excess
// detector. A zero field takes its default.
type EarlyRefreshExcessConfig struct {
	// Starts is how many times the recomputes a life that are to be expected a
	// key must show, 1.2 to 100. Default 2.
	Starts float64 `yaml:"starts,omitempty"`
	// Cycles is how many lives that takes, 10 to 64. Default 20.
	Cycles int `yaml:"cycles,omitempty"`
	// Lead is the part of the time to live that the mean lead must exceed,
	// 0.05 to 1. Default 0.25.
	Lead float64 `yaml:"lead,omitempty"`
	// MostLead is the part of the time to live that the mean lead must exceed
	// if refresh-ahead is declared with a ratio that is higher: Lead to 1.
	// Default 0.5, or Lead if that is higher.
	MostLead float64 `yaml:"most_lead,omitempty"`
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
	c.MostLead = cmp.Or(c.MostLead, max(0.5, c.Lead))
	c.ClearAfter = cmp.Or(c.ClearAfter, 30*time.Minute)
	c.MaxKeys = cmp.Or(c.MaxKeys, 5000)
	return c
}

func (c EarlyRefreshExcessConfig) validate() error {
	return cmp.Or(
		within("starts", c.Starts, 1.2, 100),
		within("cycles", c.Cycles, 10, maxCycles),
		within("lead", c.Lead, 0.05, 1),
		within("most_lead", c.MostLead, c.Lead, 1),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
		within("max_keys", c.MaxKeys, 100, 1_000_000),
	)
}

// A mean lead takes so many refreshes, in so many lives.
const (
	leadRefreshes = 20
	leadCycles    = 5
)

// earlyRefreshExcess finds keys that are refreshed early more than they should.
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
		c: c, book: newRefreshBook(c.MaxKeys, reporting, false),
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
	d.limits = d.alarms.limits(t, caches, undeclaredAhead)
	return out
}

// volunteers is how a key was refreshed early.
type volunteers struct {
	cycles int     // with an early refresh, those in which the origin was slow left out
	starts float64 // a cycle, on average
	leads  float64 // refreshes of which the lead is known
	led    int     // cycles with one
	lead   time.Duration
}

// slowLife is how many times as long as usual the recomputes of a life must take
// for their number to say nothing.
const slowLife = 1.5

// volunteers adds up the key's cycles as of a tick. The mean lead is that of the
// cycles', so that one with many refreshes counts no more than others. How many
// refreshes one has is known once it is over.
func (r *refreshes) volunteers(at signal.Nanos) volunteers {
	var v volunteers
	var starts, lead float64
	slow := slowLife * r.usual()
	for i := range r.cycles {
		c := &r.cycles[i]
		over := c.ends >= c.starts || at.Sub(c.last) > r.gap()
		if c.starts > 0 && over && (slow == 0 || c.took() <= slow) {
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

// usual returns how many seconds recomputes take in most lives; 0 if not known.
func (r *refreshes) usual() float64 {
	took := make([]float64, 0, maxCycles)
	for i := range r.cycles {
		if t := r.cycles[i].took(); t > 0 {
			took = append(took, t)
		}
	}
	return median(took)
}

// expected is how a cache is meant to be refreshed early.
type expected struct {
	starts float64 // recomputes a life, at most, on average
	lead   float64 // part of the life that the mean lead may be
	by     string  // what explains starts
	note   string
}

// expect returns what c claims, or allows for what it may do.
func (d *earlyRefreshExcess) expect(c *signal.CacheState) expected {
	volunteers, each := math.Exp(min(1/betaOf(c), 50)), float64(max(1, c.Instances))
	x := expected{starts: volunteers, lead: d.c.Lead, by: "XFetch", note: "e^(1/beta)"}
	switch {
	case c.Claims.Says(signal.ProtectRefreshAhead) || c.Claims.Says(signal.ProtectStale):
		x.lead = max(d.c.Lead, min(1.1*c.Claims.RefreshAhead, d.c.MostLead))
		x.by, x.note = "one an instance", "one an instance"
		if x.starts = each; c.Claims.Says(signal.ProtectXFetch) && volunteers > each {
			x.starts, x.by, x.note = volunteers, "XFetch", "e^(1/beta), which is more than one an instance"
		}
	case !c.Claims.Says(signal.ProtectXFetch):
		x.starts, x.by = max(volunteers, each), "any usual way"
		x.note = "what is claimed is not known: e for XFetch, or one an instance"
	}
	return x
}

func (d *earlyRefreshExcess) judge(at signal.Nanos, s subject, r *refreshes, c *signal.CacheState) {
	if r == nil {
		return
	}
	v, x := r.volunteers(at), d.expect(c)
	many := v.cycles >= d.c.Cycles && v.starts > d.c.Starts*x.starts
	early := r.ttl > 0 && v.leads >= leadRefreshes && v.led >= leadCycles && v.lead.Seconds() > x.lead*r.ttl.Seconds()
	if !many && !early {
		return
	}
	y := symptom{
		subject: s, key: r.key, service: c.Service, severity: Ticket, onset: r.cycles[0].began, ttl: r.ttl,
		summary: fmt.Sprintf("%s: %.1f early refreshes a life; %s explains %.1f.", placeOf(r.key, s.cache), v.starts, x.by, x.starts),
	}
	var l evidenceList
	if early {
		y.summary = fmt.Sprintf("%s: refreshed %.1f s before its expiry on average, of a life of %.1f s.", placeOf(r.key, s.cache), v.lead.Seconds(), r.ttl.Seconds())
		l.add("lead.share", v.lead.Seconds()/r.ttl.Seconds(), "1", fmt.Sprintf("of the time to live; a ticket above %.3g", x.lead))
	}
	l.add("starts", v.starts, "{recompute}", fmt.Sprintf("a life that was refreshed early; a ticket above %.1f", d.c.Starts*x.starts))
	l.add("starts.theory", x.starts, "{recompute}", x.note)
	l.addPositive("lead", v.lead.Seconds(), "s", "before the expiry, on average")
	l.addPositive("ttl", seconds(r.ttl), "s", "")
	if c.Claims.Says(signal.ProtectXFetch) {
		l.add("beta", betaOf(c), "1", betaNote(c))
	}
	l.addPositive("ratio", c.Claims.RefreshAhead, "1", "the last part of a life in which refresh-ahead is meant to renew it")
	l.addPositive("recompute.mean", seconds(r.recompute()), "s", "")
	l.add("cycles", float64(v.cycles), "{cycle}", "with an early refresh")
	y.evidence = l
	d.alarms.raise(at, y)
}

// undeclaredAhead says of a cache what keeps its early refreshes from being
// judged fully.
func undeclaredAhead(c *signal.CacheState) []Limit {
	ahead, volunteers := c.Claims.Says(signal.ProtectRefreshAhead), c.Claims.Says(signal.ProtectXFetch)
	switch {
	case volunteers:
		return undeclaredBeta(c)
	case ahead && c.Claims.RefreshAhead <= 0:
		return []Limit{{c.Cache, false, "The ratio of its refresh-ahead is not declared: a lead of a quarter of the life is the most that is taken for meant."}}
	case !ahead && c.Work.Early > 0 && !c.Claims.Says(signal.ProtectStale):
		return []Limit{{c.Cache, false, "Values are refreshed early, and how is not declared: as many as there are instances are taken for meant. Claim xfetch and its beta, or refresh_ahead and its ratio."}}
	}
	return nil
}
