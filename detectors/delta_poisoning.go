package detectors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const deltaPoisoningID = "delta-poisoning"

var deltaPoisoningDoc = Doc{
	ID:    deltaPoisoningID,
	Title: "One slow recompute makes everybody refresh early",
	Meaning: "XFetch decides by the time the last recompute took, which is stored with the value. One recompute took far longer than the key's usual ones, was stored as such, and until the next write readers refresh the key many times as early as they should. " +
		"If the origin was slow because it was busy, that makes it busier.",
	Signal: "The recompute time a reader acted on when it refreshed early; and, at the write already, how long a recompute took, on caches that say XFetch; both against the median of the key's other recent recomputes.",
	Condition: "Opens a ticket on a key when such a time is at least 3 times the median of the other ones among the key's last 10 recomputes, of which there must be 5, and 3 times what so few say that it is at most (their highest, or of nine the next). Recomputes that overlap are one. A measured time counts no further than the clamp that is declared. " +
		"Pages, while it is open, if over the last 10 s recomputes took up at least 0.8 of the origin's budget and early refreshes came at 1.5 times the rate of the 50 s before. " +
		"Once 5 keys of a cache have a finding, further ones share one on the cache. Clears when it has not been so for 10 minutes, or two of the key's times to live if that is longer.",
	Why: "The lead of XFetch is beta d (ln(r beta d) + 0.58): more than proportional to d. At r = 300 reads a second and beta 1 an outlier of 1.8 s among recomputes of 0.4 s, 4.5 times as long, moves the mean lead from 2.2 s to 12.4 s, 5.8 times. " +
		"Three, because below that the lead stays within a few of its own standard deviations of 1.3 beta d. Five to nine recomputes tell their median badly: with a 99th percentile of 4 times the median that of five is off by a third. So the time is held against the bound that the median is below with 95 %, whatever the law of recompute times. " +
		"It moves once 2 of the last 9 were slow: then the origin is slow, the stored time is right, and nothing is found. " +
		"How often an honest recompute is 3 times its median depends on its spread: at a 99th percentile of twice the median once in 8,800, at 6 times the median in 7.7 % of all: such keys poison themselves all the time and need the clamp, which one finding for all of them says best.",
	Traps: "An origin that has become slow for good. A clamp that is not declared: then the outlier is not acted on, and the ticket says so by its missing evidence \"acted\". " +
		"A key whose recompute time depends on who asks.",
	Advice: "Clamp what is stored as recompute time, to 2 or 3 times its usual value, or store a moving median; and declare the clamp. The next write heals this key by itself: a refresh by hand now, while the origin is well, makes it sooner. " +
		"If the origin is under pressure, lower beta or switch early refresh off until it is not.",
	MayPage: true,
}

// DeltaPoisoningConfig holds the thresholds of the delta-poisoning detector. A
// zero field takes its default.
type DeltaPoisoningConfig struct {
	// Factor is how many times the median a stored recompute time must be,
	// 1.5 to 100. Default 3.
	Factor float64 `yaml:"factor,omitempty"`
	// PageUse is the part of the origin's budget that recomputes must take up
	// to page, 0.1 to 1. Default 0.8.
	PageUse float64 `yaml:"page_use,omitempty"`
	// PageRise is how many times as often as before early refreshes must come
	// to page, 1.1 to 100. Default 1.5.
	PageRise float64 `yaml:"page_rise,omitempty"`
	// ClearAfter is how long it must not be so before a finding clears, 1s to
	// 24h; two times to live of the key count instead if they are longer.
	// Default 10m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
	// MaxKeys bounds how many keys are remembered, 100 to 1,000,000; each
	// takes about 400 bytes. Default 10,000.
	MaxKeys int `yaml:"max_keys,omitempty"`
}

func (c DeltaPoisoningConfig) withDefaults() DeltaPoisoningConfig {
	c.Factor = cmp.Or(c.Factor, 3)
	c.PageUse = cmp.Or(c.PageUse, 0.8)
	c.PageRise = cmp.Or(c.PageRise, 1.5)
	c.ClearAfter = cmp.Or(c.ClearAfter, 10*time.Minute)
	c.MaxKeys = cmp.Or(c.MaxKeys, 10_000)
	return c
}

func (c DeltaPoisoningConfig) validate() error {
	return cmp.Or(
		within("factor", c.Factor, 1.5, 100),
		within("page_use", c.PageUse, 0.1, 1),
		within("page_rise", c.PageRise, 1.1, 100),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
		within("max_keys", c.MaxKeys, 100, 1_000_000),
	)
}

// deltaPoisoning finds recompute times that should not have been stored.
type deltaPoisoning struct {
	c       DeltaPoisoningConfig
	alarms  *alarms
	notes   *notebook[deltas]
	origins map[originName]*strain
	pulse   pulse
	limits  []Limit
}

// NewDeltaPoisoning returns the delta-poisoning detector. It is a [Limited].
func NewDeltaPoisoning(c DeltaPoisoningConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &deltaPoisoning{
		c: c, alarms: newAlarms(&deltaPoisoningDoc, c.ClearAfter, "no outlier was stored or acted on as its recompute time"),
		notes: newNotebook[deltas](c.MaxKeys, earlyKeep), origins: map[originName]*strain{},
	}, nil
}

// Doc implements [Detector].
func (*deltaPoisoning) Doc() Doc { return deltaPoisoningDoc }

// Limits implements [Limited].
func (d *deltaPoisoning) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector]. Urgent ticks hold no early refreshes.
func (d *deltaPoisoning) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	caches := cachesOf(t)
	d.learnOrigins(t)
	for _, k := range sortedKeys(t) {
		if c := caches[k.Window.Cache]; c != nil && volunteering(c) {
			d.look(t.At, k.Window, k.TTL, c)
		}
	}
	for _, e := range sortedEpisodes(t) {
		if c := caches[e.Window.Cache]; e.Final && isNews(t.At, e) && c != nil && volunteering(c) {
			d.look(t.At, e.Window, e.TTL, c)
		}
	}
	d.escalate(t.At, caches)
	d.notes.sweep(t.At)
	out := d.alarms.tell(t, caches)
	d.limits = d.alarms.limits(t, caches, d.limitsOf)
	return out
}

// look takes in what one window says of a key's recompute times.
func (d *deltaPoisoning) look(at signal.Nanos, w *signal.Window, ttl time.Duration, c *signal.CacheState) {
	n := d.notes.open(at, keySubject(w))
	fresh := n.add(w)
	var stored time.Duration
	for _, s := range fresh {
		stored = max(stored, s)
	}
	acted := max(0, w.Early.DeltaMax)
	delta := max(clamped(stored, c.Claims.Clamp), acted)
	if delta <= 0 {
		return
	}
	usual, most, of := n.usual(delta, c.Claims.Clamp)
	if of < minOthers || float64(delta) < d.c.Factor*float64(most) {
		return
	}
	y := d.symptom(w, ttl, delta, acted, usual, of, c)
	if d.alarms.open[y.subject] == nil && d.poisoned(w.Cache) >= maxPoisoned {
		y.subject, y.key = subject{cache: w.Cache}, signal.Key{}
		y.summary = fmt.Sprintf("Cache %s: recomputes vary so much that more than %d keys stored outliers as their recompute time, the latest of them %.2f s instead of %.2f s.",
			w.Cache, maxPoisoned, delta.Seconds(), usual.Seconds())
	}
	d.alarms.raise(at, y)
}

// maxPoisoned is how many keys of a cache are told of singly: if there are more,
// it is the way of the cache, and one finding for all says so.
const maxPoisoned = 5

// poisoned returns how many keys of a cache have a finding.
func (d *deltaPoisoning) poisoned(cache string) int {
	n := 0
	for s, a := range d.alarms.open {
		if s.cache == cache && a.symptom.key != (signal.Key{}) {
			n++
		}
	}
	return n
}

func (d *deltaPoisoning) symptom(w *signal.Window, ttl, delta, acted, usual time.Duration, of int, c *signal.CacheState) symptom {
	var l evidenceList
	l.add("delta", seconds(delta), "s", "stored, or acted on, as the key's recompute time")
	l.add("usual", seconds(usual), "s", fmt.Sprintf("the median of the key's %d other recent recomputes", of))
	l.add("factor", float64(delta)/float64(max(1, usual)), "1", fmt.Sprintf("a ticket from %v", d.c.Factor))
	l.addPositive("acted", seconds(acted), "s", "the longest a reader acted on, since the last tick")
	l.addPositive("lead.max", seconds(w.Early.LeadMax), "s", "the earliest refresh before the expiry, since the last tick")
	l.addPositive("clamp", seconds(c.Claims.Clamp), "s", "as declared")
	l.add("beta", betaOf(c), "1", betaNote(c))
	l.addPositive("ttl", seconds(ttl), "s", "")
	return symptom{
		subject: keySubject(w), key: w.Key, service: c.Service, severity: Ticket, onset: w.Start, ttl: ttl, evidence: l,
		summary: fmt.Sprintf("%s: a recompute time of %.2f s counts for its early refresh; usual are %.2f s.", placeOf(w.Key, w.Cache), delta.Seconds(), usual.Seconds()),
	}
}

// escalate pages for open findings whose origin is under pressure that early
// refreshes add to.
func (d *deltaPoisoning) escalate(at signal.Nanos, caches map[string]*signal.CacheState) {
	for _, s := range slices.SortedFunc(maps.Keys(d.alarms.open), compareSubjects) {
		a, c := d.alarms.open[s], caches[s.cache]
		if c == nil || a.severity == Page {
			continue
		}
		o := d.origins[originOf(c)]
		if o == nil {
			continue
		}
		use, rise := o.now(at)
		if use < d.c.PageUse || rise < d.c.PageRise {
			continue
		}
		y := a.symptom
		y.severity, y.priority, y.events = Page, 2, 0
		y.summary += fmt.Sprintf(" Recomputes take up %.0f %% of its origin's budget, and early refreshes come %.1f times as often as before.", 100*use, rise)
		y.evidence = append(slices.Clone(a.evidence),
			Evidence{"origin.use", use, "1", fmt.Sprintf("of its budget, over 10 s; pages from %v", d.c.PageUse)},
			Evidence{"refreshes.rise", rise, "1", fmt.Sprintf("against the 50 s before; pages from %v", d.c.PageRise)})
		d.alarms.raise(at, y)
	}
}

func (d *deltaPoisoning) limitsOf(c *signal.CacheState) []Limit {
	out := undeclaredBeta(c)
	if c.Claims.Says(signal.ProtectXFetch) && budgetOf(c) == 0 {
		out = append(out, Limit{c.Cache, false, originOf(c).undeclared() + " Without it delta-poisoning never pages."})
	}
	return out
}
