package detectors

import (
	"fmt"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// lossWindow is the stretch of time in which lost keys are counted.
	lossWindow = 5 * time.Second
	// lossMost is how long after the last lost key a finding can stay open
	// because misses remain: then something else holds them up.
	lossMost = 10 * time.Minute
)

// loss is what is known of one cache that may have lost its values.
type loss struct {
	misses cusum
	recent rolling[signal.Lookups]
	// partial: hits are not seen, only misses are.
	partial bool
	seen    signal.Nanos

	jump   bool         // misses have jumped
	gone   fates        // keys, over the latest window
	since  signal.Nanos // when keys began to be lost in numbers; zero if they are not
	all    float64      // keys lost since, or in the last minute
	lostAt signal.Nanos // when they were last lost in numbers
	rate   float64      // misses a second, over the window
}

func newLoss(c *MassInvalidationConfig) *loss {
	return &loss{
		misses: cusum{factor: c.Factor, alarm: c.Alarm},
		recent: rolling[signal.Lookups]{span: lossWindow + maxGap},
	}
}

// look takes in a tick that is about the time took. What is normal is left as it
// is while there is a finding.
func (l *loss) look(at signal.Nanos, took time.Duration, k *cacheDemand, c *signal.CacheState, open bool, cfg *MassInvalidationConfig) {
	l.seen, l.partial = at, c.Unknown.Has(signal.UnknownHits)
	l.recent.add(at, took, c.Lookups)
	l.jump = l.misses.look(float64(c.Lookups.Misses), took, open)
	l.gone = k.gone.since(at.Add(-lossWindow))
	switch {
	case l.lost() < cfg.few():
		l.since = 0
	case l.since == 0:
		l.since = at.Add(-took)
	}
	since := k.gone.since(max(l.since, at.Add(-cohortFor)))
	l.all = since.total() * since.share(fateLost)
	lookups, span := l.window(at)
	l.rate = 0
	if span > 0 {
		l.rate = float64(lookups.Misses) / span.Seconds()
	}
}

// window returns the reads of the latest window, and how much of it is known.
func (l *loss) window(at signal.Nanos) (sum signal.Lookups, span time.Duration) {
	samples, span := l.recent.since(at.Add(-lossWindow))
	for _, s := range samples {
		sum.Add(s.v)
	}
	return sum, span
}

// lost returns the keys lost in the latest window.
func (l *loss) lost() float64 { return l.gone.total() * l.gone.share(fateLost) }

// few returns the keys that may be lost in a window while nothing is wrong.
func (c *MassInvalidationConfig) few() float64 { return float64(c.Keys) / 10 }

// calm reports whether what there was is over.
func (l *loss) calm(at signal.Nanos, c *MassInvalidationConfig) bool {
	if l.lost() >= c.few() {
		l.lostAt = at
		return false
	}
	return l.rate < c.Factor/2*l.misses.normal() || at.Sub(l.lostAt) > lossMost
}

// symptom says what is known of a loss.
func (d *massInvalidation) symptom(at signal.Nanos, o *originDemand, c *signal.CacheState, l *loss) symptom {
	l.lostAt = at
	priority := 2
	if o.saturated() {
		priority = 1
	}
	return symptom{
		subject: subject{cache: c.Cache}, service: c.Service,
		severity: Page, priority: priority, onset: l.since,
		summary: fmt.Sprintf("Cache %s: %s lost before their time; %.0f misses a second, %.1f are normal.",
			c.Cache, keysWere(l.all), l.rate, l.misses.normal()),
		evidence: d.evidence(at, o, l),
	}
}

func keysWere(n float64) string {
	if n == 1 {
		return "1 key was"
	}
	return fmt.Sprintf("%.0f keys were", n)
}

// evidence lists what is known, in order of weight.
func (d *massInvalidation) evidence(at signal.Nanos, o *originDemand, l *loss) []Evidence {
	var e evidenceList
	e.add("lost", l.all, "{key}", fmt.Sprintf("gone before they were to expire, since the onset or in the last minute; pages at %d within %v", d.c.Keys, lossWindow))
	e.add("lost.share", l.gone.share(fateLost), "1", fmt.Sprintf("of the keys that are gone; pages at %g", d.c.LostShare))
	e.add("misses", l.rate, "{miss}/s", fmt.Sprintf("over %v", lossWindow))
	e.add("misses.normal", l.misses.normal(), "{miss}/s", fmt.Sprintf("what %g times as many are held against", d.c.Factor))
	e.add("jump", l.misses.sum, "1", fmt.Sprintf("log-likelihood that misses rose so far; alarms at %g", d.c.Alarm))
	if reads, _ := l.window(at); reads.Total() > 0 && !l.partial {
		e.add("hit_ratio", ratio(float64(reads.Hits+reads.Stale), float64(reads.Total()), 0), "1", fmt.Sprintf("over %v", lossWindow))
	}
	d.serverEvidence(at, &e)
	if o.budget > 0 {
		e.add("running", float64(o.running()), "{recompute}", "now, those that queue included")
		e.add("budget", float64(o.budget), "{recompute}", "as declared for "+o.name.String())
	}
	if o.speed.known() {
		e.add("refill", o.speed.cost(l.all, o.budget).Seconds(), "s", "for those keys, if each is computed once")
		o.speed.tell(&e)
	}
	return e
}

// serverLoss is what cache servers have lost, by their own count.
type serverLoss struct{ evicted, flushed, restarted uint64 }

func (s *serverLoss) add(o serverLoss) {
	s.evicted += o.evicted
	s.flushed += o.flushed
	s.restarted += o.restarted
}

// serverEvidence adds what cache servers say. A flush or a restart comes before
// the misses, so it is looked for a little longer.
func (d *massInvalidation) serverEvidence(at signal.Nanos, e *evidenceList) {
	since := func(span time.Duration) (sum serverLoss) {
		samples, _ := d.servers.since(at.Add(-span))
		for _, s := range samples {
			sum.add(s.v)
		}
		return sum
	}
	before := since(lossWindow + maxGap)
	e.addPositive("server.flushed", float64(before.flushed), "{command}", fmt.Sprintf("that drop all keys, on all cache servers that are probed, in %v", lossWindow+maxGap))
	e.addPositive("server.restarted", float64(before.restarted), "{server}", "of all that are probed, in the same time")
	e.addPositive("server.evicted", float64(since(lossWindow).evicted), "{key}", fmt.Sprintf("by the count of all cache servers that are probed, in %v", lossWindow))
}
