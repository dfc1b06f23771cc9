package detectors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const coalescingBypassID = "coalescing-bypass"

var coalescingBypassDoc = Doc{
	ID:    coalescingBypassID,
	Title: "Readers get past the coalescing",
	Meaning: "Single-flight is said to be on, and yet single processes recompute one key several times at once; " +
		"or a new build lets its readers wait for each other far less often than the build before. A deploy or a switch has taken the protection away, and the next hot expiry will show it.",
	Signal: "Provoked recomputes of one key running at once within one process, of caches whose application claims single-flight; " +
		"and, by build and instance, how many of those who needed a value were spared a recompute by waiting for somebody else's.",
	Condition: "Pages on a cache when, in one episode, processes ran at least 2 recomputes more than one each, not counting those that were given up (timed out or cancelled). " +
		"Opens a ticket when there was one too many in 3 episodes within 10 minutes. " +
		"Also pages when a new build spares less than half the share the old one spares (which must be 20 % or more), starts at least 1.5 recomputes a process and episode, " +
		"with at least 100 readers and 2 instances on either side, and instances of one build would differ as much less than once in 1,000. The claim counts for 10 minutes after it was last made. " +
		"Of priority 1 if the origin's budget was reached. Clears after 10 quiet minutes, or two of the key's times to live if that is longer.",
	Why: "That a process runs one recompute of a key at a time is what single-flight means: no amount of traffic breaks it, so no rate is needed, and one too many is a fact. " +
		"A single one comes about honestly, though, when a flight is forgotten or its leader is cancelled; hence two, or three times one, and those that were given up are taken off. " +
		"The comparison takes instances as clusters, since what one process does is alike throughout (Welch's test on ratios with the variance between instances). It looks at 100 readers, then 200, 400 and so on, so that a deploy of 5 instances and 3,200 readers " +
		"is judged 6 times at 10^-3, and a build that changes nothing pages once in 170 deploys at the very most, before it is also asked to halve the share and to start 1.5 recomputes a process. " +
		"That last condition leaves out a canary with little traffic: whose readers seldom meet, it spares few, and still starts one.",
	Traps: "Calls to forget a flight, leaders that are cancelled and followers that then start their own. A key that is made in two ways under one name. Another service that shares the cache and never claimed to coalesce breaks the claim of the one that did. " +
		"Instances without a version cannot be compared.",
	Advice: "Look whether the instances that do it are of one build or have one setting in common: the incident says which. Roll that back, or switch the guard on again. " +
		"Then see whether every path that reads the key goes through the same single-flight group, under the same key.",
	MayPage: true,
}

// CoalescingBypassConfig holds the thresholds of the coalescing-bypass detector.
// A zero field takes its default.
type CoalescingBypassConfig struct {
	// PageExcess is how many recomputes more than one a process an episode
	// must show to page, 1 to 1,000,000. Default 2.
	PageExcess int `yaml:"page_excess,omitempty"`
	// TicketEpisodes with fewer, within ten minutes, make a ticket, 1 to 16.
	// Default 3.
	TicketEpisodes int `yaml:"ticket_episodes,omitempty"`
	// MinReaders is how many readers that needed a value either build must
	// have had to be compared, 20 to 1,000,000. Default 100.
	MinReaders int `yaml:"min_readers,omitempty"`
	// Share is the part of what the old build spares below which a new one
	// must fall, 0.05 to 0.95. Default 0.5.
	Share float64 `yaml:"share,omitempty"`
	// Chance is how probable such a difference between instances of one build
	// may be at most, 1e-9 to 0.05. Default 0.001.
	Chance float64 `yaml:"chance,omitempty"`
	// ClearAfter is how long it must not be seen before a finding clears, 1s
	// to 24h. Default 10m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

func (c CoalescingBypassConfig) withDefaults() CoalescingBypassConfig {
	c.PageExcess = cmp.Or(c.PageExcess, 2)
	c.TicketEpisodes = cmp.Or(c.TicketEpisodes, 3)
	c.MinReaders = cmp.Or(c.MinReaders, 100)
	c.Share = cmp.Or(c.Share, 0.5)
	c.Chance = cmp.Or(c.Chance, 0.001)
	c.ClearAfter = cmp.Or(c.ClearAfter, 10*time.Minute)
	return c
}

func (c CoalescingBypassConfig) validate() error {
	return cmp.Or(
		within("page_excess", c.PageExcess, 1, maxPeak),
		within("ticket_episodes", c.TicketEpisodes, 1, maxStrays),
		within("min_readers", c.MinReaders, 20, 1_000_000),
		within("share", c.Share, 0.05, 0.95),
		within("chance", c.Chance, 1e-9, 0.05),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}

const (
	// claimedFor is how long a claim counts after it was last made: while a
	// build that does not make it rolls out, it is the one to hold it to.
	claimedFor = 10 * time.Minute
	// strayFor is how long a single recompute too many is remembered, and
	// maxStrays of how many episodes.
	strayFor  = 10 * time.Minute
	maxStrays = 16
)

// coalescingBypass finds processes that do not coalesce although they should.
type coalescingBypass struct {
	c      CoalescingBypassConfig
	alarms *alarms
	caches map[string]*coalescingCache
	limits []Limit
}

// coalescingCache is what is remembered of one cache.
type coalescingCache struct {
	claimed signal.Nanos // when last
	since   signal.Nanos // when first, without a pause of claimedFor
	strays  []stray      // oldest first
	builds  builds
}

// stray names an episode with a recompute too many.
type stray struct {
	subject
	started, at signal.Nanos
}

// NewCoalescingBypass returns the coalescing-bypass detector. It is a [Limited].
func NewCoalescingBypass(c CoalescingBypassConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &coalescingBypass{
		c: c, caches: map[string]*coalescingCache{},
		alarms: newAlarms(&coalescingBypassDoc, c.ClearAfter, "no process recomputed a key twice at once"),
	}, nil
}

// Doc implements [Detector].
func (*coalescingBypass) Doc() Doc { return coalescingBypassDoc }

// Limits implements [Limited].
func (d *coalescingBypass) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector].
func (d *coalescingBypass) Observe(t *signal.Tick) []Finding {
	caches := cachesOf(t)
	d.remember(t, caches)
	for _, e := range sortedEpisodes(t) {
		k := d.caches[e.Window.Cache]
		if k == nil || !isNews(t.At, e) {
			continue
		}
		// What began before everybody claimed it is not held to the claim:
		// it may be the trouble that single-flight was rolled out against.
		if k.claimed != 0 && t.At.Sub(k.claimed) <= claimedFor && e.Started >= k.since {
			d.look(t.At, k, e, caches[e.Window.Cache])
		}
		if e.Final {
			k.builds.add(t.At, e)
		}
	}
	if !t.Urgent {
		for _, name := range slices.Sorted(maps.Keys(d.caches)) {
			d.compare(t.At, d.caches[name], caches[name])
		}
	}
	out := d.alarms.tell(t, caches)
	if !t.Urgent {
		d.limits = d.alarms.limits(t, caches, d.limitsOf)
	}
	return out
}

// remember notes who claims what, and forgets caches that are gone.
func (d *coalescingBypass) remember(t *signal.Tick, caches map[string]*signal.CacheState) {
	if !t.Urgent {
		maps.DeleteFunc(d.caches, func(name string, _ *coalescingCache) bool { return caches[name] == nil })
	}
	for i := range t.Caches {
		c := &t.Caches[i]
		k := d.caches[c.Cache]
		if k == nil {
			k = &coalescingCache{}
			d.caches[c.Cache] = k
		}
		if c.Claims.Says(signal.ProtectSingleFlight) {
			if k.claimed == 0 || t.At.Sub(k.claimed) > claimedFor {
				k.since = t.At.Add(-c.UptimeMin) // a process claims it from its start
			}
			k.claimed = t.At
		}
	}
}

// look holds one episode to the claim.
func (d *coalescingBypass) look(at signal.Nanos, k *coalescingCache, e *signal.Episode, c *signal.CacheState) {
	b := breachOf(e)
	if b.excess <= 0 {
		return
	}
	y := d.symptom(e, &b, c)
	if b.excess < d.c.PageExcess {
		n := k.stray(at, e)
		if n < d.c.TicketEpisodes {
			d.alarms.keep(at, y.subject)
			return
		}
		y.severity, y.priority = Ticket, 0
		y.evidence = append(y.evidence, Evidence{"episodes", float64(n), "{episode}", "within ten minutes"})
	}
	d.alarms.raise(at, y)
}

// stray notes an episode with a recompute too many, once, and returns how many
// there were lately.
func (k *coalescingCache) stray(at signal.Nanos, e *signal.Episode) int {
	k.strays = slices.DeleteFunc(k.strays, func(s stray) bool { return at.Sub(s.at).Abs() > strayFor })
	known := slices.ContainsFunc(k.strays, func(s stray) bool { return s.subject == subjectOf(e) && s.started == e.Started })
	if !known {
		k.strays = append(k.strays, stray{subjectOf(e), e.Started, at})
		k.strays = k.strays[max(0, len(k.strays)-maxStrays):]
	}
	return len(k.strays)
}

// breach is how an episode breaks the rule of one recompute a process.
type breach struct {
	excess    int // recomputes beyond one a process, less those given up
	worst     uint32
	instances int
	builds    []string
	givenUp   uint64
}

func breachOf(e *signal.Episode) breach {
	var b breach
	for _, s := range sharesOf(e.Window) {
		if s.InFlightPeak < 2 {
			continue
		}
		b.excess += int(s.InFlightPeak) - 1
		b.worst = max(b.worst, s.InFlightPeak)
		b.instances++
		b.builds = append(b.builds, s.Build)
	}
	slices.Sort(b.builds)
	b.builds = slices.Compact(b.builds)
	r := &e.Window.Recomputes
	b.givenUp = r.Ends(signal.OutcomeCancelled) + r.Ends(signal.OutcomeTimedOut)
	b.excess -= int(min(b.givenUp, maxPeak))
	return b
}

// by says which builds broke it, if that can be told.
func (b *breach) by() string {
	switch {
	case len(b.builds) == 0 || b.builds[0] == "":
		return ""
	case len(b.builds) == 1:
		return ", all of build " + b.builds[0]
	case len(b.builds) > 4:
		return fmt.Sprintf(", of %d builds", len(b.builds))
	}
	return ", of builds " + strings.Join(b.builds, ", ")
}

func (d *coalescingBypass) symptom(e *signal.Episode, b *breach, c *signal.CacheState) symptom {
	w, budget := e.Window, budgetOf(c)
	y := symptom{
		subject: subject{cache: w.Cache}, service: serviceOf(c, w), severity: Page, priority: 2,
		onset: cmp.Or(e.Onset, e.Started), ttl: e.TTL,
		summary: fmt.Sprintf("Cache %s: single-flight is claimed, and %s recomputed one key of %s up to %d times at once%s.",
			w.Cache, count(b.instances, "instance"), cmp.Or(w.Key.Group, "a group without a name"), b.worst, b.by()),
	}
	if budget > 0 && e.PeakLow >= budget {
		y.priority = 1
	}
	var l evidenceList
	l.add("excess", float64(b.excess), "{recompute}", fmt.Sprintf("beyond one a process; pages at %d", d.c.PageExcess))
	l.add("process.peak", float64(b.worst), "{recompute}", "of one key at one instant in one process")
	l.add("instances", float64(b.instances), "{instance}", "that ran two or more"+b.by())
	l.add("peak", float64(e.PeakLow), "{recompute}", "at one instant in the fleet")
	l.addPositive("budget", float64(budget), "{recompute}", "as declared")
	l.addPositive("given_up", float64(b.givenUp), "{recompute}", "timed out or cancelled; not counted as excess")
	l.addPositive("spared", float64(w.Coalesced), "{reader}", "waited for somebody else's recompute")
	y.evidence = l
	return y
}

func (d *coalescingBypass) limitsOf(c *signal.CacheState) []Limit {
	if d.caches[c.Cache].claimed != 0 {
		return nil
	}
	return []Limit{{c.Cache, false, "No application claims single-flight: only builds are held against each other."}}
}

// sharesOf returns the instances in w. A window without Shares is its own only
// one.
func sharesOf(w *signal.Window) []signal.Share {
	if len(w.Shares) > 0 {
		return w.Shares
	}
	return []signal.Share{{
		Source: w.Source, Recomputes: w.Recomputes.Provoked(),
		InFlightPeak: w.InFlightPeak, MissPeak: w.MissPeak, Coalesced: w.Coalesced,
	}}
}
