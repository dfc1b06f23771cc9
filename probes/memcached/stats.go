package memcached

import (
	"context"
	"time"

	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// StatsName is the name of the probe [Stats] makes, unless options give another.
const StatsName = "memcached-stats"

// Stats returns a probe that asks the server at addr, host:port, for its
// counters and answers with one [signal.Vitals] for cache, of the source
// {Service, addr}: its uptime, the reads that found a key and those that did not,
// the reads that found a value past its expiry, the values it dropped for want of
// memory, flushes, and the keys it holds.
//
// It is the server's account of the commands of all its clients. Counts are since
// the server started, or since somebody reset them (stats reset). It costs the
// server one stats a run, and one connection.
func Stats(addr, cache string, o Options) (probes.Probe, error) {
	o = o.withDefaults(StatsName)
	if err := o.validate(addr, cache); err != nil {
		return probes.Probe{}, err
	}
	p := &stats{link: link{addr: addr, o: o}, cache: cache}
	return probes.Probe{
		Name:     o.Name,
		Target:   addr,
		Interval: o.Interval,
		Timeout:  o.Timeout,
		Run:      p.run,
		Close:    p.close,
	}, nil
}

type stats struct {
	link
	cache string
}

func (p *stats) run(ctx context.Context) (probes.Result, error) {
	n, err := p.askStats(ctx)
	if err != nil {
		return probes.Result{}, err
	}
	return probes.Result{Vitals: []*signal.Vitals{{
		Source:  signal.Source{Service: p.o.Service, Instance: p.addr, Build: n.version},
		Cache:   p.cache,
		At:      signal.At(time.Now()),
		Uptime:  n.uptime,
		Probe:   true,
		Lookups: signal.Lookups{Hits: n.hits, Misses: n.misses},
		Expired: n.expired,
		Evicted: n.evictions,
		Server:  signal.Server{Flushes: n.flushes, Sets: n.sets, Keys: n.items},
	}}}, nil
}
