package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/internal/metric"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// page writes one monitor's part of a scrape.
type page struct {
	c     *Collector
	ch    chan<- prometheus.Metric
	cache string
}

// put writes one sample; labels follow the cache.
func (p page) put(m semconv.Metric, v float64, labels ...string) {
	p.ch <- metric.Const(p.c.descs[m.Name], m.Kind, v, append([]string{p.cache}, labels...)...)
}

// origin writes what is counted per cache, not per group.
func (p page) origin(groups []instrument.GroupTotals) {
	var r signal.Retries
	for i := range groups {
		r.Requests += groups[i].Retries.Requests
		r.Attempts += groups[i].Retries.Attempts
	}
	p.put(semconv.OriginRequests, float64(r.Requests))
	p.put(semconv.OriginAttempts, float64(r.Attempts))
}

func (p page) group(g *instrument.GroupTotals) {
	for _, l := range []struct {
		result string
		n      uint64
	}{{"hit", g.Lookups.Hits}, {"miss", g.Lookups.Misses}, {"stale", g.Lookups.Stale}, {"error", g.Lookups.Errors}} {
		p.put(semconv.Lookups, float64(l.n), g.Group, l.result)
	}
	for _, v := range []struct {
		m semconv.Metric
		v float64
	}{
		{semconv.MissConcurrency, float64(g.MissNow)},
		{semconv.MissConcurrencyPeak, float64(g.MissPeak)},
		{semconv.InFlight, float64(g.InFlightNow)},
		{semconv.InFlightPeak, float64(g.InFlightPeak)},
		{semconv.Duplicates, float64(g.Duplicates)},
		{semconv.WhileFresh, float64(g.WhileFresh)},
		{semconv.Coalesced, float64(g.Coalesced)},
		{semconv.EarlyRefreshes, float64(g.Early)},
		{semconv.LocksLost, float64(g.LocksLost)},
		{semconv.Stores, float64(g.Stores)},
		{semconv.Invalidations, float64(g.Invalidations)},
	} {
		p.put(v.m, v.v, g.Group)
	}
	p.put(semconv.LockAttempts, float64(g.LockAcquired), g.Group, "acquired")
	p.put(semconv.LockAttempts, float64(g.LockAttempts-g.LockAcquired), g.Group, "refused")
	p.recomputes(g)
}

// recomputes writes the causes and outcomes that have happened; the usual ones
// always, so that their first increase is seen.
func (p page) recomputes(g *instrument.GroupTotals) {
	for c := range signal.NumCauses {
		if n := g.Recomputes.Started[c]; n > 0 || c == signal.CauseExpired {
			p.put(semconv.RecomputesStarted, float64(n), g.Group, c.String())
		}
		for o := range signal.NumOutcomes {
			n := g.Recomputes.Ended[c][o]
			if n > 0 || c == signal.CauseExpired && o == signal.OutcomeOK {
				p.put(semconv.Recomputes, float64(n), g.Group, c.String(), o.String())
			}
		}
	}
}
