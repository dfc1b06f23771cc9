package redis

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/keyname"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/census"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// ExpiryName is the name of the probe [Expiry] makes, unless options give
// another.
const ExpiryName = "redis-expiry"

// ExpiryOptions say how closely to look. The zero value works.
type ExpiryOptions struct {
	// KeysPerSecond is how many keys of each primary are looked at, 1 to
	// 100,000. A key costs the server 2 to 6 microseconds: see the results in
	// benchmarks/. Default 1000.
	KeysPerSecond int
	// Keep is how long a key counts as it was when it was looked at, unless
	// the walk comes by again before that; 1s to 1h. Default 30s.
	Keep time.Duration
	// Groups bounds how many groups of keys are told apart, 1 to 100: those
	// with most to expire. Default 16.
	Groups int
	// Group names the group of a key, as [signal.Key.Group] is. Default
	// [keyname.Pattern].
	Group func(key string) string
}

func (o ExpiryOptions) withDefaults() ExpiryOptions {
	if o.KeysPerSecond == 0 {
		o.KeysPerSecond = 1000
	}
	if o.Group == nil {
		o.Group = keyname.Pattern
	}
	return o
}

func (o ExpiryOptions) validate() error {
	if o.KeysPerSecond < 1 || o.KeysPerSecond > 100_000 {
		return fmt.Errorf("KeysPerSecond is %d: want 1 to 100000", o.KeysPerSecond)
	}
	_, err := census.New(o.census())
	return err
}

func (o ExpiryOptions) census() census.Options {
	return census.Options{Keep: o.Keep, Groups: o.Groups}
}

// Expiry returns a probe that walks over the keys of every primary and asks for
// their times to live. It answers with one [signal.Vitals] a primary for cache,
// of the source {Service, addr#expiry}, that says how many keys of which group
// expire in which second, scaled up to all keys of the database from those
// looked at lately; see [census.Census].
//
// It reads no value. A key that has expired is dropped by the server when it is
// looked at, a little before the server would have come by itself. PTTL counts
// as a hit in the server's own statistics, which [Info] puts right. It opens one
// connection to each primary.
func Expiry(addrs []string, cache string, o Options, e ExpiryOptions) (probes.Probe, error) {
	o, e = o.withDefaults(ExpiryName), e.withDefaults()
	if err := o.validate(addrs, cache); err != nil {
		return probes.Probe{}, err
	}
	if err := e.validate(); err != nil {
		return probes.Probe{}, fmt.Errorf("probe redis %q: expiry: %w", target(addrs), err)
	}
	r := newRoster(addrs, o, func(addr string) *expiry {
		c, _ := census.New(e.census()) // validated above
		return &expiry{e: e, census: c, source: signal.Source{Service: o.Service, Instance: addr + "#expiry"}, cache: cache}
	})
	r.budget = perRun(e.KeysPerSecond, o)
	return probes.Probe{
		Name: o.Name, Target: target(addrs), Interval: o.Interval, Timeout: o.Timeout,
		Run: r.run, Close: r.close,
	}, nil
}

// perRun returns how many keys a run may look at.
func perRun(keysPerSecond int, o Options) int {
	interval := o.Interval
	if interval == 0 {
		interval = probes.DefaultInterval
	}
	return max(1, int(float64(keysPerSecond)*interval.Seconds()))
}

// expiry looks at the keys of one primary.
type expiry struct {
	e      ExpiryOptions
	walk   walk
	census *census.Census
	source signal.Source
	cache  string
}

// look looks at one slice of keys, and says what is known by then.
func (x *expiry) look(ctx context.Context, c *goredis.Client, budget int) (*signal.Vitals, []string, error) {
	err := x.walk.slice(ctx, c, budget, func(keys []string) error { return x.visit(ctx, c, keys) })
	if err != nil {
		x.census.DropSlice()
		return nil, nil, err
	}
	size, err := c.DBSize(ctx).Result()
	if err != nil {
		x.census.DropSlice()
		return nil, nil, fmt.Errorf("ask for the number of keys: %w", err)
	}
	now := signal.At(time.Now())
	x.census.EndSlice(now, uint64(max(0, size)))
	v := &signal.Vitals{Source: x.source, Cache: x.cache, At: now, Probe: true}
	x.census.Fill(now, v)
	return v, nil, nil
}

// visit asks for the times to live of keys, in one go.
func (x *expiry) visit(ctx context.Context, c *goredis.Client, keys []string) error {
	ttls := make([]*goredis.DurationCmd, len(keys))
	pipe := c.Pipeline()
	for i, key := range keys {
		ttls[i] = pipe.PTTL(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("ask for times to live: %w", err)
	}
	now := time.Now()
	for i, key := range keys {
		// Less than zero: it never expires, or it is gone already.
		var at signal.Nanos
		if ttl := ttls[i].Val(); ttl > 0 {
			at = signal.At(now.Add(ttl))
		}
		x.census.Key(signal.At(now), keyname.Safe(x.e.Group(key)), at)
	}
	return nil
}
