// Package redis probes Redis, and servers that speak as it does.
package redis

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// InfoName is the name of the probe [Info] makes, unless options give another.
const InfoName = "redis-info"

// Info returns a probe that asks every primary for INFO and answers with one
// [signal.Vitals] each for cache, of the source {Service, addr}: its uptime, the
// reads that found a key and those that did not, the keys it dropped at their
// expiry or for want of memory, how many it holds, how often it was flushed and
// stored to, and the clients blocked on it.
//
// It is the server's account. It counts the commands of all its clients, in all
// its databases, on keys of any kind: EXISTS is a read to it. So is PTTL, which
// the probe [Expiry] sends a lot of, and which reads no value: its calls are
// taken off the hits. Counts are since the server started, or since somebody
// reset them (CONFIG RESETSTAT). It costs a server one INFO of its default
// sections and one of its command statistics a run, and one connection.
func Info(addrs []string, cache string, o Options) (probes.Probe, error) {
	o = o.withDefaults(InfoName)
	if err := o.validate(addrs, cache); err != nil {
		return probes.Probe{}, err
	}
	r := newRoster(addrs, o, func(addr string) info {
		return info{source: signal.Source{Service: o.Service, Instance: addr}, cache: cache}
	})
	return probes.Probe{
		Name: o.Name, Target: target(addrs), Interval: o.Interval, Timeout: o.Timeout,
		Run: r.run, Close: r.close,
	}, nil
}

// info asks one primary.
type info struct {
	source signal.Source
	cache  string
}

func (p info) look(ctx context.Context, c *goredis.Client, _ int) (*signal.Vitals, []string, error) {
	pipe := c.Pipeline()
	// Two commands: before 7.0 INFO takes one section.
	sections, commands := pipe.Info(ctx), pipe.Info(ctx, "commandstats")
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, fmt.Errorf("ask for INFO: %w", err)
	}
	v, err := parseInfo(sections.Val(), commands.Val())
	if err != nil {
		return nil, nil, err
	}
	v.Service, v.Instance = p.source.Service, p.source.Instance
	v.Cache, v.At, v.Probe = p.cache, signal.At(time.Now()), true
	return v, nil, nil
}
