package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// What the demo's application is called, and what it reads.
const (
	Service = "demo"
	Cache   = "feed"
	Origin  = "db"
	Key     = "feed:stampede-demo"
)

// instance is one process of the application, but for the process.
type instance struct {
	o      *Options
	origin *origin
	rdb    *redis.Client
	mon    *instrument.Monitor
	out    *otlp.Exporter
	flight singleflight.Group
}

func newInstance(ctx context.Context, n int, o *Options, org *origin, redisAddr string) (*instance, error) {
	mon, err := instrument.New(Cache, instrument.Options{
		Service:  Service,
		Instance: fmt.Sprintf("app-%02d", n+1),
		Build:    o.Protect,
		Origin:   signal.Origin{Name: Origin, Budget: o.Budget},
	})
	if err != nil {
		return nil, err
	}
	out, err := otlp.New(ctx, otlp.Options{Endpoint: o.Endpoint, Insecure: true})
	if err != nil {
		mon.Close()
		return nil, err
	}
	mon.Attach(out)
	hook, err := goredis.NewHook(mon, goredis.Options{})
	if err != nil {
		mon.Close()
		return nil, err
	}
	rdb := redis.NewClient(&redis.Options{Addr: redisAddr, PoolSize: 64, DisableIdentity: true})
	rdb.AddHook(hook)
	return &instance{o: o, origin: org, rdb: rdb, mon: mon, out: out}, nil
}

// close ends the instance in order: what it measured is sent first.
func (i *instance) close(ctx context.Context) error {
	return errors.Join(i.mon.Close(), i.out.Shutdown(ctx), i.rdb.Close())
}

// read is what the application does for a request. luck is uniform in (0, 1].
func (i *instance) read(ctx context.Context, luck float64) error {
	raw, err := i.rdb.Get(ctx, Key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	switch {
	case err == nil && i.o.Protect == ProtectXFetch:
		return i.maybeEarly(ctx, raw, luck)
	case err == nil:
		return nil
	case i.o.Protect == ProtectSingleFlight:
		return i.rebuildOnce(ctx)
	default:
		return i.rebuild(ctx)
	}
}

// rebuild makes the value anew because there is none.
func (i *instance) rebuild(ctx context.Context) error {
	_, err := instrument.Recompute(ctx, i.mon, Key, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, i.origin.recompute(ctx, false, i.store(time.Now()))
	})
	return err
}

// rebuildOnce is rebuild, unless this instance is at it already.
func (i *instance) rebuildOnce(ctx context.Context) error {
	led := false
	_, err, _ := i.flight.Do(Key, func() (any, error) {
		led = true
		return nil, i.rebuild(ctx)
	})
	if !led { // singleflight's own flag counts the leader too
		i.mon.Follow(Key).Done()
	}
	return err
}

// maybeEarly recomputes ahead of expiry if luck has it; see [volunteers].
func (i *instance) maybeEarly(ctx context.Context, raw string, luck float64) error {
	v, err := parseEnvelope(raw)
	if err != nil {
		return err
	}
	now := time.Now()
	if !volunteers(v, now, luck) {
		return nil
	}
	i.mon.EarlyRefresh(Key, v.expiry.Sub(now), v.delta)
	run := i.mon.Begin(Key, instrument.Start{Cause: signal.CauseEarly})
	err = i.origin.recompute(run.Context(ctx), true, i.store(now))
	run.End(instrument.OutcomeOf(err))
	return err
}

// store returns what writes a value whose recompute began at start.
func (i *instance) store(start time.Time) func(context.Context) error {
	return func(ctx context.Context) error {
		now := time.Now()
		v := envelope{expiry: now.Add(i.o.TTL), delta: now.Sub(start)}
		return i.rdb.Set(ctx, Key, v.String(), i.o.TTL).Err()
	}
}
