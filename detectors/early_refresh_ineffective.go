package detectors

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const earlyRefreshIneffectiveID = "early-refresh-ineffective"

var earlyRefreshIneffectiveDoc = Doc{
	ID:    earlyRefreshIneffectiveID,
	Title: "XFetch refreshes too late, or not at all",
	Meaning: "Readers are meant to refresh a key at random before it expires (XFetch), and the key is read often enough for that to work, yet it keeps expiring under them. " +
		"Or, as information, the keys are read so seldom that it cannot work.",
	Signal: "The lives of a key's values on caches that say XFetch: whether each was refreshed early or expired under a reader; against r reads a second of it, its recompute time d, and the declared beta.",
	Condition: "Opens a ticket on a key with r beta d of at least 3, of whose last 20 to 64 lives so many expired that a true share of max(0.2, 3 e^(-r beta d)) would show as many less than once in 1,000. " +
		"Information on the cache when keys with r beta d below 1 have had 20 lives. Beta is 1 unless declared. Lives that end by invalidation or eviction do not count. " +
		"Clears when it has not been so for 30 minutes, or two of the key's times to live if that is longer.",
	Why: "With XFetch (Vattani, Chierichetti, Lowenstein, VLDB 2015) a read t before the expiry volunteers with probability e^(-t / (beta d)), so a key expires unrefreshed with probability e^(-r beta d): " +
		"5 % at 3, and next to never above. A true share of 20 % already allows for a rate that is estimated at twice what it is. At 20 lives it takes 11 expiries to be sure; were the share 5 %, as it should be, that comes about once in 2 billion. " +
		"A broken XFetch (a recompute time stored as zero, a beta of zero) lets all of them expire. Below 1 the theory itself says that more than a third expire, and there is nothing to mend: the incident quotes e^(-r beta d).",
	Traps: "The rate of reads is known only from the seconds in which an instance has something to report about the key, times the number of instances; where one instance gets most of the reads it is off. " +
		"A cache of which one service uses XFetch and another does not. A beta that is declared and not used.",
	Advice: "Check that what is stored with the value as its recompute time is that, in the unit it is read in, and not clamped to next to nothing; then raise beta: 1.5 or 2 costs little. " +
		"For keys that are seldom read XFetch does nothing: spread their expiries (jitter), or refresh the few that matter by a job.",
}

// EarlyRefreshIneffectiveConfig holds the thresholds of the
// early-refresh-ineffective detector. A zero field takes its default.
type EarlyRefreshIneffectiveConfig struct {
	// Reach is the r beta d from which XFetch must work, 2 to 100. Default 3.
	Reach float64 `yaml:"reach,omitempty"`
	// Share is the part of a key's lives that may expire at least, 0.01 to
	// 0.9; three times the part theory predicts counts instead if it is more.
	// Default 0.2.
	Share float64 `yaml:"share,omitempty"`
	// Cycles is how many lives of a key make a verdict, 10 to 64. Default 20.
	Cycles int `yaml:"cycles,omitempty"`
	// Chance is how probable as many expiries may be at most if the share
	// were the one allowed, 1e-9 to 0.05. Default 0.001.
	Chance float64 `yaml:"chance,omitempty"`
	// ClearAfter is how long it must not be so before a finding clears, 1s to
	// 24h; two times to live of the key count instead if they are longer.
	// Default 30m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
	// MaxKeys bounds how many keys are remembered, 100 to 1,000,000; each
	// takes up to 3 kB. Default 5,000.
	MaxKeys int `yaml:"max_keys,omitempty"`
}

func (c EarlyRefreshIneffectiveConfig) withDefaults() EarlyRefreshIneffectiveConfig {
	c.Reach = cmp.Or(c.Reach, 3)
	c.Share = cmp.Or(c.Share, 0.2)
	c.Cycles = cmp.Or(c.Cycles, 20)
	c.Chance = cmp.Or(c.Chance, 0.001)
	c.ClearAfter = cmp.Or(c.ClearAfter, 30*time.Minute)
	c.MaxKeys = cmp.Or(c.MaxKeys, 5000)
	return c
}

func (c EarlyRefreshIneffectiveConfig) validate() error {
	return cmp.Or(
		within("reach", c.Reach, 2, 100),
		within("share", c.Share, 0.01, 0.9),
		within("cycles", c.Cycles, 10, maxCycles),
		within("chance", c.Chance, 1e-9, 0.05),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
		within("max_keys", c.MaxKeys, 100, 1_000_000),
	)
}

const (
	// coldBelow is the r beta d below which XFetch cannot work.
	coldBelow = 1
	// coldEvery is how often the keys of a cache that are seldom read are
	// added up.
	coldEvery = 10 * time.Second
)

// earlyRefreshIneffective finds keys that expire although XFetch is at work.
type earlyRefreshIneffective struct {
	c      EarlyRefreshIneffectiveConfig
	alarms *alarms
	book   refreshBook
	coldAt signal.Nanos
	limits []Limit
}

// NewEarlyRefreshIneffective returns the early-refresh-ineffective detector. It
// is a [Limited].
func NewEarlyRefreshIneffective(c EarlyRefreshIneffectiveConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &earlyRefreshIneffective{
		c: c, book: newRefreshBook(c.MaxKeys, volunteering, true),
		alarms: newAlarms(&earlyRefreshIneffectiveDoc, c.ClearAfter, "values were refreshed before they expired, as far as theory allows,"),
	}, nil
}

// Doc implements [Detector].
func (*earlyRefreshIneffective) Doc() Doc { return earlyRefreshIneffectiveDoc }

// Limits implements [Limited].
func (d *earlyRefreshIneffective) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector]. Urgent ticks show what is not over.
func (d *earlyRefreshIneffective) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	caches := cachesOf(t)
	for _, s := range d.book.learn(t, caches) {
		d.judge(t.At, s, d.book.notes.find(s), caches[s.cache])
	}
	if t.At >= d.coldAt || d.coldAt.Sub(t.At) > coldEvery {
		d.coldAt = t.At.Add(coldEvery)
		d.addUpCold(t.At, caches)
	}
	out := d.alarms.tell(t, caches)
	d.limits = d.alarms.limits(t, caches, undeclaredBeta)
	return out
}

// reach returns the product r beta d that decides what XFetch can do for a key,
// and its parts; 0 if one is not known.
func (r *refreshes) reach(at signal.Nanos, c *signal.CacheState) (product, rate float64) {
	rate = r.rate(at, c.Instances)
	return rate * betaOf(c) * r.recompute().Seconds(), rate
}

func (d *earlyRefreshIneffective) judge(at signal.Nanos, s subject, r *refreshes, c *signal.CacheState) {
	if r == nil {
		return
	}
	n, expired := r.outcome()
	product, rate := r.reach(at, c)
	if n < d.c.Cycles || product < d.c.Reach {
		return
	}
	theory := math.Exp(-product)
	allowed := min(1, max(d.c.Share, 3*theory))
	chance := binomialTail(n, expired, allowed)
	if chance >= d.c.Chance {
		return
	}
	var l evidenceList
	l.add("expired.share", float64(expired)/float64(n), "1", "of the key's latest lives")
	l.add("expired.theory", theory, "1", "e^(-reach)")
	l.add("reach", product, "1", "reads a second, times beta, times the recompute time")
	l.add("chance", chance, "1", fmt.Sprintf("of so many if the share were %.2g; a ticket below %v", allowed, d.c.Chance))
	l.add("cycles", float64(n), "{cycle}", "")
	l.add("reads", rate, "{read}/s", "estimated")
	l.add("beta", betaOf(c), "1", betaNote(c))
	l.add("recompute.mean", seconds(r.recompute()), "s", "")
	l.addPositive("ttl", seconds(r.ttl), "s", "")
	d.alarms.raise(at, symptom{
		subject: s, key: r.key, service: c.Service, severity: Ticket, onset: r.cycles[0].began, ttl: r.ttl, evidence: l,
		summary: fmt.Sprintf("%s: %d of its last %d lives ended in an expiry; with XFetch theory allows %s.",
			placeOf(r.key, s.cache), expired, n, percent(theory)),
	})
}

// percent writes a share.
func percent(x float64) string {
	switch {
	case x < 0.001:
		return "less than 0.1 %"
	case x < 0.1:
		return fmt.Sprintf("%.1f %%", 100*x)
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

func betaNote(c *signal.CacheState) string {
	if c.Claims.Beta > 0 {
		return "as declared"
	}
	return "the usual one; not declared"
}

// coldSum is what the seldom read keys of a cache have in common.
type coldSum struct {
	keys, cycles, expired int
	predicted             float64 // expiries
	most                  float64
	since                 signal.Nanos
}

// addUpCold tells of caches whose keys are read too seldom.
func (d *earlyRefreshIneffective) addUpCold(at signal.Nanos, caches map[string]*signal.CacheState) {
	sums := map[string]*coldSum{}
	for _, p := range d.book.notes.sorted() {
		s := p.subject
		c, r := caches[s.cache], &p.note
		if c == nil || !volunteering(c) || r.ends < 1 || len(r.cycles) == 0 {
			continue
		}
		product, _ := r.reach(at, c)
		if product >= coldBelow {
			continue
		}
		sum := sums[s.cache]
		if sum == nil {
			sum = &coldSum{since: at}
			sums[s.cache] = sum
		}
		n, expired := r.outcome()
		sum.keys, sum.cycles, sum.expired = sum.keys+1, sum.cycles+n, sum.expired+expired
		sum.predicted += float64(n) * math.Exp(-product)
		sum.most = max(sum.most, product)
		sum.since = min(sum.since, r.since)
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if sum := sums[name]; sum.cycles >= d.c.Cycles {
			d.alarms.raise(at, cold(sum, caches[name]))
		}
	}
}

func cold(sum *coldSum, c *signal.CacheState) symptom {
	theory := sum.predicted / float64(sum.cycles)
	share := float64(sum.expired) / float64(sum.cycles)
	var l evidenceList
	l.add("expired.share", share, "1", "of the lives of keys that are seldom read")
	l.add("expired.theory", theory, "1", "e^(-reach), weighted by lives")
	l.add("reach.max", sum.most, "1", "reads a second, times beta, times the recompute time: the most of any of them")
	l.add("keys", float64(sum.keys), "{key}", "read too seldom for XFetch")
	l.add("cycles", float64(sum.cycles), "{cycle}", "")
	l.add("beta", betaOf(c), "1", betaNote(c))
	return symptom{
		subject: subject{cache: c.Cache}, service: c.Service, severity: Info, onset: sum.since, evidence: l,
		summary: fmt.Sprintf("Cache %s: %s read too seldom for XFetch: theory predicts that %s of their lives end in an expiry, and %s did.",
			c.Cache, areKeys(sum.keys), percent(theory), percent(share)),
	}
}

func areKeys(n int) string {
	if n == 1 {
		return "1 key is"
	}
	return fmt.Sprintf("%d keys are", n)
}

// undeclaredBeta says of a cache what keeps its XFetch from being judged fully.
func undeclaredBeta(c *signal.CacheState) []Limit {
	switch says := c.Claims.Says(signal.ProtectXFetch); {
	case !says && c.Work.Early > 0 && !c.Claims.Says(signal.ProtectRefreshAhead):
		return []Limit{{c.Cache, true, "Not enough data: values are refreshed early, and how is not declared. Claim xfetch and its beta."}}
	case says && c.Claims.Beta <= 0:
		return []Limit{{c.Cache, false, "The beta of its XFetch is not declared: it is taken to be 1."}}
	}
	return nil
}
