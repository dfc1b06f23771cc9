package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Rig is a fleet under load.
type Rig struct {
	o         Options
	origin    *origin
	instances []*instance
	redis     *miniredis.Miniredis // nil if the caller brought one
	stopClock func()

	reads  atomic.Uint64
	failed atomic.Uint64
}

// New starts the fleet's clients, without load. Close the rig.
func New(ctx context.Context, o Options) (_ *Rig, err error) {
	o = o.withDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Endpoint == "" {
		return nil, errors.New("endpoint is empty: want the host:port of an OTLP receiver")
	}
	r := &Rig{o: o, stopClock: func() {}}
	r.origin = &origin{takes: o.Recompute, onCycle: o.OnCycle}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close(ctx))
		}
	}()
	addr := o.Redis
	if addr == "" {
		if r.redis, err = miniredis.Run(); err != nil {
			return nil, fmt.Errorf("start embedded redis: %w", err)
		}
		addr = r.redis.Addr()
		r.stopClock = advance(r.redis)
	}
	for n := range o.Instances {
		i, err := newInstance(ctx, n, &r.o, r.origin, addr)
		if err != nil {
			return nil, fmt.Errorf("start instance %d: %w", n+1, err)
		}
		r.instances = append(r.instances, i)
	}
	if err := r.instances[0].rdb.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("reach redis at %s: %w", addr, err)
	}
	return r, nil
}

// advance moves the embedded Redis's clock on with real time; by itself it
// stands still. A key then outlives its TTL by a few milliseconds at most.
func advance(s *miniredis.Miniredis) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				s.FastForward(now.Sub(last))
				last = now
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}

// Run puts the fleet under load until ctx is done, and returns once the last
// reader has its answer. The value is there at the start, so that the first
// recompute is due at its expiry.
func (r *Rig) Run(ctx context.Context) error {
	first := r.instances[0]
	if err := first.store(time.Now().Add(-r.o.Recompute))(ctx); err != nil {
		return fmt.Errorf("store the first value: %w", err)
	}
	rng := rand.New(rand.NewPCG(r.o.Seed, r.o.Seed))
	var readers sync.WaitGroup
	defer readers.Wait()
	next := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		for now := time.Now(); !next.After(now); {
			i, luck := r.instances[rng.IntN(len(r.instances))], 1-rng.Float64()
			readers.Go(func() { r.read(i, luck) })
			next = next.Add(time.Duration(rng.ExpFloat64() / r.o.Rate * float64(time.Second)))
		}
		timer.Reset(time.Until(next))
	}
}

// read is one request. It has a context of its own, as requests have, and ends
// even if the rig is told to stop.
func (r *Rig) read(i *instance, luck float64) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second+10*r.o.Recompute)
	defer cancel()
	r.reads.Add(1)
	if err := i.read(ctx, luck); err != nil {
		r.failed.Add(1)
	}
}

// Truth returns the origin's own account.
func (r *Rig) Truth() Truth { return r.origin.account() }

// Reads returns how many requests were made, and how many of them failed.
func (r *Rig) Reads() (made, failed uint64) { return r.reads.Load(), r.failed.Load() }

// Drain sends what the instances have measured and closes them.
func (r *Rig) Drain(ctx context.Context) error {
	var errs []error
	if len(r.instances) > 0 {
		errs = append(errs, r.instances[0].rdb.Del(ctx, Key).Err())
	}
	for _, i := range r.instances {
		errs = append(errs, i.close(ctx))
	}
	r.instances = nil
	return errors.Join(errs...)
}

// Close drains the rig, if that was not done, and ends its embedded Redis.
func (r *Rig) Close(ctx context.Context) error {
	err := r.Drain(ctx)
	r.stopClock()
	if r.redis != nil {
		r.redis.Close()
	}
	return err
}
