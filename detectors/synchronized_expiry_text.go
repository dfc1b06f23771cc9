package detectors

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// cohort is what can be told of the keys that expired together.
type cohort struct {
	since signal.Nanos // onset of the storm it is of
	keys  float64      // gone since
	group string       // most of them are of; "" if unknown

	// As their deadlines were known before they passed; zero if they were not.
	deadlines float64
	spread    time.Duration
	fullest   load
}

// cohortFor is how long after its onset a storm's cohort can grow: an episode
// lasts at most about as long, and one that goes on after that would count as
// another key.
const cohortFor = time.Minute

// measure brings what is known of the cohort up to date.
func (s *storm) measure(t *signal.Tick, o *originDemand, c *signal.CacheState) {
	if s.since != s.full {
		s.cohort = cohort{since: s.full}
	}
	if t.At.Sub(s.since) > cohortFor {
		return
	}
	gone := o.gone(s.since)
	s.keys = max(s.keys, gone.total())
	s.group = mostGone(t, c.Cache)
	fell, _ := o.fell()
	if w := highest(fell, 1); w.keys > s.deadlines {
		s.deadlines = w.keys
		s.cohort.spread, s.fullest = spread(w.loads)
	}
}

// mostGone returns the key group that most episodes of a cache are of.
func mostGone(t *signal.Tick, cache string) string {
	n := map[string]int{}
	for i := range t.Episodes {
		if w := t.Episodes[i].Window; w.Cache == cache {
			n[w.Key.Group]++
		}
	}
	most := ""
	for _, g := range slices.Sorted(maps.Keys(n)) {
		if n[g] > n[most] {
			most = g
		}
	}
	return most
}

// refill returns how long the origin takes for all of the cohort.
func (s *storm) refill(o *originDemand) time.Duration {
	return o.speed.cost(max(s.keys, s.deadlines), o.budget)
}

// symptom says what is known of a storm.
func (s *storm) symptom(o *originDemand, c *signal.CacheState, cfg *SynchronizedExpiryConfig) symptom {
	var timeout time.Duration
	for _, x := range o.caches {
		timeout = max(timeout, x.Claims.Timeout)
	}
	priority := 2
	if timeout > 0 && s.refill(o) > timeout {
		priority = 1
	}
	return symptom{
		subject: subject{cache: c.Cache}, service: c.Service,
		severity: Page, priority: priority, onset: s.full,
		summary:  s.summary(o, c.Cache),
		evidence: s.evidence(o, cfg, timeout),
	}
}

func (s *storm) summary(o *originDemand, cache string) string {
	what := "keys"
	if s.group != "" {
		what = "keys, most of them " + s.group + ","
	}
	text := fmt.Sprintf("Cache %s: %.0f %s expired together; %s refills %.1f a second, so this takes %.0f s.",
		cache, max(s.keys, s.deadlines), what, o.name, o.speed.perSecond(o.budget), s.refill(o).Seconds())
	return text + tooSmall(o, max(s.keys, s.deadlines), o.ttl())
}

// evidence lists what is known, in order of weight.
func (s *storm) evidence(o *originDemand, c *SynchronizedExpiryConfig, timeout time.Duration) []Evidence {
	v := &s.now
	var l evidenceList
	l.add("keys", s.keys, "{key}", "gone since the onset, each counted once")
	l.add("demand", v.demand, "1", fmt.Sprintf("keys gone in %v, of those %s can recompute in it; pages at %g", v.window, o.name, c.Demand))
	l.add("backlog", v.backlog, "s", fmt.Sprintf("that the origin needs for what waits; pages at %g", c.Backlog.Seconds()))
	l.add("refill", s.refill(o).Seconds(), "s", "for all of them, if each is computed once")
	l.addPositive("timeout", timeout.Seconds(), "s", "of clients, as declared")
	l.add("budget", float64(o.budget), "{recompute}", "as declared for "+o.name.String())
	l.add("running", float64(v.running), "{recompute}", "now, those that queue included")
	o.speed.tell(&l)
	l.addPositive("recompute.now", v.took.Seconds(), "s", "of those that ended in the window, their time in the queue included")
	l.add("expired", v.gone.share(fateExpired), "1", fmt.Sprintf("of the keys that are gone; pages at %g", c.ExpiredShare))
	if v.misses > 0 {
		l.add("distinct", min(1, v.gone.total()/v.misses), "1", fmt.Sprintf("keys a miss; %g says that there are many", c.DistinctShare))
		l.add("top", v.top, "1", fmt.Sprintf("share of the most missed key, at most; %g says that there are many", c.TopShare))
	}
	l.add("spread.required", o.spreadFor(max(s.keys, s.deadlines)).Seconds(), "s", "to keep the origin 80 % busy")
	if s.deadlines > 0 {
		l.add("spread.observed", s.cohort.spread.Seconds(), "s", "of the deadlines, from their 1st to their 99th percentile, scaled to all")
		l.add("deadlines", s.deadlines, "{key}", "that were known to fall due in this wave")
		l.add("deadlines.peak", s.fullest.keys, "{key}", "of them in the fullest second")
	}
	l.addPositive("ttl", o.ttl().Seconds(), "s", "the longest lately")
	return l
}
