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

const hotKeyExpiryID = "hot-key-expiry"

var hotKeyExpiryDoc = Doc{
	ID:    hotKeyExpiryID,
	Title: "Hot key dogpile",
	Meaning: "A key that many readers want had no value, and they recomputed it side by side instead of once. " +
		"All but one of those recomputes were wasted, and the origin paid for each.",
	Signal: "Provoked recomputes of one key that ran at the same instant anywhere in the fleet, counted from the intervals that " +
		"instances report. Early refreshes, warm-ups and look-ups of what does not exist are not counted: nobody waited for them.",
	Condition: "Pages as soon as one episode's peak, as far as it is proven, reaches 20 and the origin's budget; 50 if no budget is declared. " +
		"Opens a ticket when 3 of a key's last 5 episodes reached 5. The page is of priority 1 from twice the budget (without one, from 100). " +
		"Clears when no episode has reached 10 (a ticket: 3) for twice the key's time to live, at least 10 minutes and at most a day, " +
		"while instances kept reporting: silence holds the finding. A ticket can become a page, a page never becomes a ticket.",
	Why: "Without protection an expiry starts N = 1 + Poisson(r d) recomputes, for r reads per second that take d seconds to answer. " +
		"At r d = 5, which most origins bear, N reaches 20 once in 700,000 expiries; at r d = 30 it does in 98.7 % of them, so 20 parts " +
		"the two. A key with r d = 0.5 reaches 5 by bad luck in 0.18 % of its expiries, but hardly in three of five. Volunteers of XFetch " +
		"(Vattani, Chierichetti, Lowenstein, VLDB 2015) follow a geometric law of mean e^(1/beta), and at beta = 1 would reach 20 in one " +
		"cycle of 6,100: that is why early refreshes are left out. What the origin can run at once is a sharper bound than any of these, where it is known.",
	Traps: "A fleet that has just started is cold: while its oldest instance is younger than 60 s, recomputes of keys nobody had before are a ticket " +
		"unless they exceed a declared budget. If no process ran two of them at once, coalescing works inside each process, and there are just many processes: " +
		"that is not this trouble. A batch read of many keys is one recompute of each. A window that arrives late corrects the figures and raises nothing. " +
		"Keys that are normalised in two ways look like two keys.",
	Advice: "Stop the readers from meeting at the expiry: refresh ahead of it (XFetch, with the measured recompute time clamped to a sane range). " +
		"Then let one recompute per process serve all who wait (single-flight), and look in the cache again once it is your turn. " +
		"If the budget is smaller than the number of processes, add a lease in the cache, and serve the old value while its holder works. " +
		"Never jitter: it spreads many keys apart, and this is one.",
	MayPage: true,
}

const (
	// lateAfter is how old an episode that nobody has seen grow may be and
	// still raise a finding. Older ones are news of the past.
	lateAfter = 10 * time.Second
	// maxHold bounds how long a finding waits for the next expiry of a key
	// that lives long. Nobody looks at a page for days.
	maxHold = 24 * time.Hour
	// rememberFor is how long a key without a finding is remembered, at least.
	rememberFor = time.Hour
	sweepEvery  = time.Minute
)

// hotKeyExpiry finds keys that a fleet recomputes side by side.
type hotKeyExpiry struct {
	c HotKeyExpiryConfig
	// keys holds those with an episode of at least c.TicketPeak among their
	// latest. The many keys that never come so far cost nothing.
	keys    map[subject]*hotKey
	open    map[subject]*hotKey // those of keys with a finding
	sweepAt signal.Nanos

	limits  []Limit
	partial map[string]bool // caches with a source that sees no recomputes
	refused map[string]bool // caches with a key there was no room for, since the last regular tick
}

// subject is the key of a cache.
type subject struct {
	cache string
	key   signal.KeyID
}

func subjectOf(e *signal.Episode) subject { return subject{e.Window.Cache, e.Window.Key.ID} }

func compareSubjects(a, b subject) int {
	return cmp.Or(strings.Compare(a.cache, b.cache), cmp.Compare(a.key, b.key))
}

// NewHotKeyExpiry returns the hot-key-expiry detector. It is a [Limited].
func NewHotKeyExpiry(c HotKeyExpiryConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &hotKeyExpiry{
		c:       c,
		keys:    map[subject]*hotKey{},
		open:    map[subject]*hotKey{},
		partial: map[string]bool{},
		refused: map[string]bool{},
	}, nil
}

// Doc implements [Detector].
func (*hotKeyExpiry) Doc() Doc { return hotKeyExpiryDoc }

// Observe implements [Detector].
func (d *hotKeyExpiry) Observe(t *signal.Tick) []Finding {
	caches := make(map[string]*signal.CacheState, len(t.Caches))
	for i := range t.Caches {
		caches[t.Caches[i].Cache] = &t.Caches[i]
	}
	var out []Finding
	for es := d.relevant(t, caches); len(es) > 0; {
		s, n := subjectOf(es[0]), 1
		for n < len(es) && subjectOf(es[n]) == s {
			n++
		}
		if k := d.look(t.At, s, es[:n], caches[s.cache]); k != nil && t.Urgent {
			out = append(out, k.finding(t.At, &d.c))
		}
		es = es[n:]
	}
	if t.Urgent {
		return out
	}
	d.sweep(t.At)
	out = d.review(t, caches)
	d.limits = d.findLimits(t, caches)
	clear(d.refused)
	return out
}

// relevant returns the episodes that can change anything, by subject, then
// start: those of keys that are remembered, and those that make one so.
func (d *hotKeyExpiry) relevant(t *signal.Tick, caches map[string]*signal.CacheState) []*signal.Episode {
	var es []*signal.Episode
	for i := range t.Episodes {
		e := &t.Episodes[i]
		if e.Window.Unknown.Has(signal.UnknownRecomputes) {
			d.partial[e.Window.Cache] = true
		}
		if dogpileOf(e, caches[e.Window.Cache]) >= d.c.TicketPeak || d.keys[subjectOf(e)] != nil {
			es = append(es, e)
		}
	}
	slices.SortFunc(es, func(a, b *signal.Episode) int {
		return cmp.Or(compareSubjects(subjectOf(a), subjectOf(b)), cmp.Compare(a.Started, b.Started))
	})
	return es
}

// look takes in all episodes of one key at one tick. It returns the key if that
// raised a finding, or made one worse.
func (d *hotKeyExpiry) look(at signal.Nanos, s subject, es []*signal.Episode, cache *signal.CacheState) *hotKey {
	k := d.keys[s]
	if k == nil {
		if !d.makeRoom() {
			d.refused[s.cache] = true
			return nil
		}
		k = &hotKey{subject: s}
		d.keys[s] = k
	}
	raised := k.look(at, es, cache, &d.c)
	switch {
	case k.alarm != nil:
		d.open[s] = k
	case k.recurrences(d.c.TicketPeak) == 0:
		delete(d.keys, s)
	}
	if !raised {
		return nil
	}
	return k
}

// review returns the findings that hold at a regular tick, and those that
// clear.
func (d *hotKeyExpiry) review(t *signal.Tick, caches map[string]*signal.CacheState) []Finding {
	out := make([]Finding, 0, len(d.open))
	for _, s := range slices.SortedFunc(maps.Keys(d.open), compareSubjects) {
		k := d.open[s]
		over := k.over(t.At, hears(caches[s.cache]), &d.c)
		f := k.finding(t.At, &d.c)
		if over {
			f.Cleared = true
			f.Summary = k.clearedSummary(&d.c)
			k.alarm = nil
			delete(d.open, s)
		}
		out = append(out, f)
	}
	return out
}

// sweep forgets keys that have been idle for long.
func (d *hotKeyExpiry) sweep(at signal.Nanos) {
	if at < d.sweepAt {
		return
	}
	d.sweepAt = at.Add(sweepEvery)
	for s, k := range d.keys {
		if k.alarm == nil && at.Sub(k.seen) > max(rememberFor, twoLives(k.ttl)) {
			delete(d.keys, s)
		}
	}
}

// makeRoom makes sure that one more key can be remembered. It forgets many at a
// time, the longest idle first, so that the cost of choosing is shared.
func (d *hotKeyExpiry) makeRoom() bool {
	if len(d.keys) < d.c.MaxKeys {
		return true
	}
	idle := make([]*hotKey, 0, len(d.keys)-len(d.open))
	for _, k := range d.keys {
		if k.alarm == nil {
			idle = append(idle, k)
		}
	}
	slices.SortFunc(idle, func(a, b *hotKey) int {
		return cmp.Or(cmp.Compare(a.seen, b.seen), compareSubjects(a.subject, b.subject))
	})
	for _, k := range idle[:min(len(idle), d.c.MaxKeys/16+1)] {
		delete(d.keys, k.subject)
	}
	return len(idle) > 0
}

// Limits implements [Limited].
func (d *hotKeyExpiry) Limits() []Limit { return slices.Clone(d.limits) }

func (d *hotKeyExpiry) findLimits(t *signal.Tick, caches map[string]*signal.CacheState) []Limit {
	var out []Limit
	maps.DeleteFunc(d.partial, func(cache string, _ bool) bool { return caches[cache] == nil })
	for i := range t.Caches {
		c := &t.Caches[i]
		if !reporting(c) {
			out = append(out, Limit{c.Cache, true, "No instance has reported lately."})
			continue
		}
		if !hears(c) {
			out = append(out, Limit{c.Cache, true, "Its servers are probed, and nobody reports what happens to single keys."})
			continue
		}
		if c.Origin.Budget == 0 {
			out = append(out, Limit{c.Cache, false, fmt.Sprintf(
				"What its origin can run at once is not declared: a page takes %d recomputes of one key at once.", d.c.PagePeakNoBudget)})
		}
		if d.partial[c.Cache] {
			out = append(out, Limit{c.Cache, false, "Some sources report reads only: recomputes of theirs are not counted."})
		}
		if d.refused[c.Cache] {
			out = append(out, Limit{c.Cache, false, fmt.Sprintf("%d keys have a finding: there is no room for more.", len(d.open))})
		}
	}
	silent := map[string]bool{}
	for s := range d.open {
		if caches[s.cache] == nil {
			silent[s.cache] = true
		}
	}
	for cache := range silent {
		out = append(out, Limit{cache, true, "No instance has reported lately."})
	}
	slices.SortStableFunc(out, func(a, b Limit) int { return strings.Compare(a.Cache, b.Cache) })
	return out
}
