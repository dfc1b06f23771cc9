package goredis_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that tests move. It starts at the wall clock's time, so that
// instants given to a real server mean the same to both.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) Step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// watch is a hook, its monitor, and what the monitor reported.
type watch struct {
	hook    *goredis.Hook
	monitor *instrument.Monitor
	clock   *clock
	windows []*signal.Window
	vitals  *signal.Vitals
}

func (w *watch) Window(x *signal.Window, _ bool) { w.windows = append(w.windows, x) }
func (w *watch) Vitals(v *signal.Vitals)         { w.vitals = v }
func (w *watch) Dropped() uint64                 { return 0 }

func newWatch(t testing.TB, o goredis.Options) *watch {
	t.Helper()
	w := &watch{clock: &clock{t: time.Now()}}
	m, err := instrument.New("feed", instrument.Options{
		Interval: -1,
		Privacy:  instrument.PrivacyRaw,
		Now:      w.clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	m.Attach(w)
	o.Now = w.clock.Now
	hook, err := goredis.NewHook(m, o)
	if err != nil {
		t.Fatal(err)
	}
	w.hook, w.monitor = hook, m
	return w
}

// key returns everything reported of key as one window.
func (w *watch) key(key string) *signal.Window {
	w.monitor.Flush()
	var all *signal.Window
	for _, x := range w.windows {
		switch {
		case x.Key.Text != key:
		case all == nil:
			c := *x
			all = &c
		default:
			all.Merge(x)
		}
	}
	if all == nil {
		return &signal.Window{}
	}
	return all
}

// lookups returns the lookups of the whole cache.
func (w *watch) lookups() signal.Lookups {
	w.monitor.Flush()
	return w.vitals.Lookups
}

// run sends cmd through the hook to a server that answers err, and a value that
// cmd already holds.
func (w *watch) run(cmd redis.Cmder, err error) error {
	process := w.hook.ProcessHook(func(context.Context, redis.Cmder) error { return err })
	return process(context.Background(), cmd)
}

// Commands with the reply a server would give.

func status(args ...any) redis.Cmder {
	c := redis.NewStatusCmd(context.Background(), args...)
	c.SetVal("OK")
	return c
}

func str(args ...any) redis.Cmder {
	c := redis.NewStringCmd(context.Background(), args...)
	c.SetVal("value")
	return c
}

func number(n int64, args ...any) redis.Cmder {
	c := redis.NewIntCmd(context.Background(), args...)
	c.SetVal(n)
	return c
}

func truth(b bool, args ...any) redis.Cmder {
	c := redis.NewBoolCmd(context.Background(), args...)
	c.SetVal(b)
	return c
}

func list(v []any, args ...any) redis.Cmder {
	c := redis.NewSliceCmd(context.Background(), args...)
	c.SetVal(v)
	return c
}

func hash(v map[string]string, args ...any) redis.Cmder {
	c := redis.NewMapStringStringCmd(context.Background(), args...)
	c.SetVal(v)
	return c
}

// anything is what Client.Do makes.
func anything(v any, args ...any) redis.Cmder {
	c := redis.NewCmd(context.Background(), args...)
	c.SetVal(v)
	return c
}
