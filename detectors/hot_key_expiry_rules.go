package detectors

import (
	"cmp"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// hotCause is the rule that raised a finding.
type hotCause uint8

const (
	causePeak hotCause = iota
	causeColdStart
	causeRecurrence
)

// verdict is what the rules make of one episode. Severity Info: nothing.
type verdict struct {
	severity Severity
	priority int
	cause    hotCause
}

// worseThan reports whether v is more urgent than a finding of that severity and
// priority.
func (v verdict) worseThan(s Severity, priority int) bool {
	return v.severity > s || (v.severity == s && v.priority < priority)
}

// judge applies the rules to h, an episode of k, which is what e said.
func (c *HotKeyExpiryConfig) judge(at signal.Nanos, k *hotKey, h *hotEpisode, e *signal.Episode, cache *signal.CacheState) verdict {
	budget := budgetOf(cache)
	switch {
	case k.dogpile(h) >= c.pageAt(budget) && budget == 0 && coldStart(at, e, cache, c.ColdStart):
		return verdict{Ticket, 0, causeColdStart}
	case k.dogpile(h) >= c.pageAt(budget):
		return verdict{Page, c.priority(h.peak, budget), causePeak}
	case k.dogpile(h) >= c.TicketPeak && k.recurrences(c.TicketPeak) >= c.TicketEpisodes:
		return verdict{Ticket, 0, causeRecurrence}
	}
	return verdict{}
}

// budgetOf returns what the cache's origin can run at once, or 0.
func budgetOf(c *signal.CacheState) int {
	if c == nil {
		return 0
	}
	return max(0, c.Origin.Budget)
}

// pageAt returns the least peak that pages.
func (c *HotKeyExpiryConfig) pageAt(budget int) int {
	if budget == 0 {
		return c.PagePeakNoBudget
	}
	return max(c.PagePeak, budget)
}

// priority returns that of a page: 1 from twice what the origin can bear.
func (c *HotKeyExpiryConfig) priority(peak, budget int) int {
	if peak >= 2*cmp.Or(budget, c.PagePeakNoBudget) {
		return 1
	}
	return 2
}

// coldStart reports whether e is no more than a fleet filling its cache: when it
// began no instance had been up for as long as young, and nobody had a value for
// the key.
func coldStart(at signal.Nanos, e *signal.Episode, cache *signal.CacheState, young time.Duration) bool {
	if !hears(cache) || e.KnownBefore || cache.UptimeMax-at.Sub(e.Started) >= young {
		return false
	}
	r := &e.Window.Recomputes
	n := r.Started[signal.CauseCold]
	return n > 0 && n == r.Provoked()
}

// reporting reports whether silence about a cache means that nothing happened.
func reporting(c *signal.CacheState) bool { return c != nil && c.Instances+c.Probes > 0 }

// hears reports whether silence about a single key of a cache means that nothing
// happened to it.
func hears(c *signal.CacheState) bool { return c != nil && c.Instances+c.Watching > 0 }

// mayRaise reports whether e, of which h was known before, is news. What is
// late is not: it improves the evidence.
func mayRaise(at signal.Nanos, h *hotEpisode, e *signal.Episode) bool {
	return !h.final && (h.live || !e.Final || at.Sub(e.Window.End) <= lateAfter)
}

// keepsOpen returns the least peak that keeps a finding of that severity open.
func (c *HotKeyExpiryConfig) keepsOpen(s Severity) int {
	if s == Page {
		return c.ClearPagePeak
	}
	return c.ClearTicketPeak
}

// hold returns how long a finding on a key of that time to live must be quiet
// before it clears.
func (c *HotKeyExpiryConfig) hold(ttl time.Duration) time.Duration {
	return max(c.ClearAfter, twoLives(ttl))
}

// twoLives is twice a time to live, as far as that is worth waiting for.
func twoLives(ttl time.Duration) time.Duration { return 2 * min(ttl, maxHold/2) }
