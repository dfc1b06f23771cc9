package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/redis"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// published starts a server that publishes key events.
func published(t *testing.T, args ...string) string {
	t.Helper()
	return cachetest.RedisWith(t, append([]string{"--notify-keyspace-events", "Eg$xemhlsz"}, args...)...)
}

// listener is a keyspace probe that the test runs.
type listener struct {
	t       *testing.T
	p       probes.Probe
	all     probes.Result // of all runs
	limits  []string      // of the latest
	windows map[string]*signal.Window
	heard   int // windows and skipped events of the latest run
}

func listen(t *testing.T, addrs []string, o redis.Options, k redis.KeyspaceOptions) *listener {
	t.Helper()
	k.RawKeys = true
	p, err := redis.Keyspace(addrs, "feed", o, k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &listener{t: t, p: p, windows: map[string]*signal.Window{}}
}

// run runs the probe once, for so long.
func (l *listener) run(d time.Duration) error {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), d)
	defer cancel()
	res, err := l.p.Run(ctx)
	l.all.Gaps += res.Gaps
	l.all.Skipped += res.Skipped
	l.all.Vitals = res.Vitals
	l.limits = res.Limits
	l.heard = len(res.Windows) + int(res.Skipped)
	for _, w := range res.Windows {
		if was := l.windows[w.Key.Text]; was != nil {
			was.Merge(w)
		} else {
			l.windows[w.Key.Text] = w
		}
	}
	return err
}

// hear runs the probe until it has heard what do does: until it hears nothing
// more.
func (l *listener) hear(do func()) {
	l.t.Helper()
	if err := l.run(time.Second); err != nil { // connects
		l.t.Fatal(err)
	}
	do()
	for l.heard = 1; l.heard > 0; {
		if err := l.run(500 * time.Millisecond); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *listener) window(key string) *signal.Window {
	l.t.Helper()
	w := l.windows[key]
	if w == nil {
		l.t.Fatalf("no window of %q in %d", key, len(l.windows))
	}
	return w
}

func TestKeyspaceCountsMissesAndRebuilds(t *testing.T) {
	addr := published(t)
	c, ctx := dial(t, addr), t.Context()
	l := listen(t, []string{addr}, redis.Options{}, redis.KeyspaceOptions{})
	l.hear(func() {
		var readers sync.WaitGroup
		for range 50 {
			readers.Go(func() { _ = c.Get(ctx, "feed:1").Err() })
		}
		readers.Wait()
		for range 40 {
			must(t, c.Set(ctx, "feed:1", "x", time.Minute))
		}
		for range 7 {
			must(t, c.Get(ctx, "feed:1")) // a hit raises no event
		}
	})
	if err := l.run(200 * time.Millisecond); err != nil { // asks for the time to live
		t.Fatal(err)
	}
	w := l.window("feed:1")
	if w.Lookups != (signal.Lookups{Misses: 50}) || w.MissPeak != 50 || w.InFlightPeak != 40 || w.Duplicates != 39 || w.Stores.Count != 40 {
		t.Errorf("got %+v, peak %d, %d at once, %d duplicates, %d stores", w.Lookups, w.MissPeak, w.InFlightPeak, w.Duplicates, w.Stores.Count)
	}
	if w.Stores.TTLMax < 59*time.Second || w.Stores.TTLMax > time.Minute+time.Second {
		t.Errorf("it lives for %v, want a minute", w.Stores.TTLMax)
	}
	v := l.all.Vitals[0]
	if !v.Probe || !v.Watch || !v.Unknown.Has(signal.UnknownHits) || v.Lookups.Misses != 50 || v.Stores != 40 || v.Duplicates != 39 || v.Instance != addr+"#keyspace" || v.Cache != "feed" {
		t.Errorf("vitals %+v", v)
	}
	if len(l.limits) != 0 {
		t.Errorf("it says that it is limited: %q", l.limits)
	}
}

func TestKeyspaceKnowsEveryWayOfWriting(t *testing.T) {
	addr := published(t)
	c, ctx := dial(t, addr), t.Context()
	writes := map[string]func(key string) goredis.Cmder{
		"set":    func(k string) goredis.Cmder { return c.Set(ctx, k, "x", 0) },
		"setex":  func(k string) goredis.Cmder { return c.Set(ctx, k, "x", time.Minute) },
		"setnx":  func(k string) goredis.Cmder { return c.SetNX(ctx, k, "x", 0) },
		"mset":   func(k string) goredis.Cmder { return c.MSet(ctx, k, "x") },
		"getset": func(k string) goredis.Cmder { return c.Do(ctx, "GETSET", k, "x") },
		"eval": func(k string) goredis.Cmder {
			return c.Eval(ctx, "return redis.call('set', KEYS[1], 'x')", []string{k})
		},
		"hset":   func(k string) goredis.Cmder { return c.HSet(ctx, k, "a", 1, "b", 2) },
		"rpush":  func(k string) goredis.Cmder { return c.RPush(ctx, k, "a", "b") },
		"sadd":   func(k string) goredis.Cmder { return c.SAdd(ctx, k, "a", "b") },
		"zadd":   func(k string) goredis.Cmder { return c.ZAdd(ctx, k, goredis.Z{Score: 1, Member: "a"}) },
		"incr":   func(k string) goredis.Cmder { return c.Incr(ctx, k) },
		"append": func(k string) goredis.Cmder { return c.Append(ctx, k, "x") },
		"bitop":  func(k string) goredis.Cmder { return c.Do(ctx, "BITOP", "NOT", k, "source") },
		"rename": func(k string) goredis.Cmder { must(t, c.Set(ctx, "from", "x", 0)); return c.Rename(ctx, "from", k) },
		"copy":   func(k string) goredis.Cmder { return c.Copy(ctx, "source", k, 0, false) },
	}
	must(t, c.Set(ctx, "source", "x", 0))
	l := listen(t, []string{addr}, redis.Options{}, redis.KeyspaceOptions{})
	l.hear(func() {
		for name, write := range writes {
			must(t, c.Get(ctx, name))
			must(t, write(name))
		}
	})
	for name := range writes {
		misses := uint64(1)
		if name == "getset" { // it reads, too
			misses++
		}
		if w := l.window(name); w.Lookups.Misses != misses || w.Stores.Count != 1 || w.Recomputes.Starts() != 1 {
			t.Errorf("%s: %d misses, %d stores, %d recomputes, want one each", name, w.Lookups.Misses, w.Stores.Count, w.Recomputes.Starts())
		}
	}
}

func TestKeyspaceSaysWhatBecameOfValues(t *testing.T) {
	addr := published(t)
	c, ctx := dial(t, addr), t.Context()
	l := listen(t, []string{addr}, redis.Options{}, redis.KeyspaceOptions{})
	again := func(key string) {
		for c.Get(ctx, key).Err() == nil {
		}
		must(t, c.Set(ctx, key, "x", 0))
	}
	l.hear(func() {
		for _, key := range []string{"expired", "invalidated", "evicted"} {
			must(t, c.Set(ctx, key, "x", 0))
		}
		must(t, c.PExpire(ctx, "expired", time.Millisecond))
		again("expired")
		must(t, c.Del(ctx, "invalidated"))
		again("invalidated")
		must(t, c.FlushAll(ctx)) // raises no event
		again("evicted")
		again("cold")
	})
	for _, cause := range []signal.Cause{signal.CauseExpired, signal.CauseInvalidated, signal.CauseEvicted, signal.CauseCold} {
		if n := l.window(cause.String()).Recomputes.Started[cause]; n != 1 {
			t.Errorf("%d recomputes of the key are said to be %v, want 1", n, cause)
		}
	}
}

func TestKeyspaceTakesKeysOfAnyBytes(t *testing.T) {
	addr := published(t)
	c, ctx := dial(t, addr), t.Context()
	keys := []string{"", " ", "a b", "line\r\nend", "*3\r\n$7\r\nmessage\r\n", "\x00\xff\xfe", strings.Repeat("k", 1<<20), strings.Repeat("k", 5<<20)}
	l := listen(t, []string{addr}, redis.Options{}, redis.KeyspaceOptions{})
	l.hear(func() {
		for _, k := range keys {
			must(t, c.Get(ctx, k))
			must(t, c.Set(ctx, k, "x", 0))
		}
	})
	if len(l.windows) != len(keys)-1 || l.all.Skipped != 2 {
		t.Errorf("%d keys told apart and %d events skipped, want all but the longest, and its 2", len(l.windows), l.all.Skipped)
	}
}

func TestKeyspaceWatchesOneDatabase(t *testing.T) {
	addr := published(t)
	ctx := t.Context()
	l := listen(t, []string{addr}, redis.Options{Database: 3}, redis.KeyspaceOptions{})
	l.hear(func() {
		for db := range 5 {
			c := goredis.NewClient(&goredis.Options{Addr: addr, DB: db})
			must(t, c.Get(ctx, fmt.Sprint("in ", db)))
			c.Close()
		}
	})
	if len(l.windows) != 1 || l.windows["in 3"] == nil {
		t.Errorf("saw %v, want what is in 3", l.windows)
	}
}

func TestKeyspaceSamplesWholeKeysAboveItsBudget(t *testing.T) {
	addr := published(t)
	c, ctx := dial(t, addr), t.Context()
	l := listen(t, []string{addr}, redis.Options{}, redis.KeyspaceOptions{MaxEventsPerSecond: 100})
	const keys, misses = 400, 5
	l.hear(func() {
		for range misses {
			pipe := c.Pipeline()
			for k := range keys {
				pipe.Get(ctx, fmt.Sprint("feed:", k))
			}
			if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
				t.Fatal(err)
			}
		}
	})
	if l.all.Skipped < keys*misses/2 || len(l.limits) != 1 || !strings.Contains(l.limits[0], "one key in") {
		t.Errorf("%d of %d events skipped, limits %q", l.all.Skipped, keys*misses, l.limits)
	}
	before := len(l.windows)
	clear(l.windows)
	l.hear(func() {
		must(t, c.MGet(ctx, "feed:1", "feed:2", "feed:3", "feed:4", "feed:5", "feed:6", "feed:7", "feed:8"))
	})
	if before == 0 || len(l.windows) > 4 {
		t.Errorf("of 8 keys it sees %d after the flood, want those it samples", len(l.windows))
	}
}

func TestKeyspaceRefusesOptionsThatMakeNoSense(t *testing.T) {
	for name, err := range map[string]error{
		"no address":      refused(redis.Keyspace(nil, "feed", redis.Options{}, redis.KeyspaceOptions{})),
		"no cache":        refused(redis.Keyspace([]string{"a:1"}, "", redis.Options{}, redis.KeyspaceOptions{})),
		"no port":         refused(redis.Keyspace([]string{"a"}, "feed", redis.Options{}, redis.KeyspaceOptions{})),
		"a mode":          refused(redis.Keyspace([]string{"a:1"}, "feed", redis.Options{Mode: "ring"}, redis.KeyspaceOptions{})),
		"no master":       refused(redis.Keyspace([]string{"a:1"}, "feed", redis.Options{Mode: redis.Sentinel}, redis.KeyspaceOptions{})),
		"a database":      refused(redis.Keyspace([]string{"a:1"}, "feed", redis.Options{Mode: redis.Cluster, Database: 1}, redis.KeyspaceOptions{})),
		"a lock pattern":  refused(redis.Keyspace([]string{"a:1"}, "feed", redis.Options{}, redis.KeyspaceOptions{Locks: []string{"*"}})),
		"too few events":  refused(redis.Keyspace([]string{"a:1"}, "feed", redis.Options{}, redis.KeyspaceOptions{MaxEventsPerSecond: 1})),
		"too few keys":    refused(redis.Keyspace([]string{"a:1"}, "feed", redis.Options{}, redis.KeyspaceOptions{MaxKeys: 1})),
		"a long patience": refused(redis.Keyspace([]string{"a:1"}, "feed", redis.Options{}, redis.KeyspaceOptions{GiveUp: 2 * time.Hour})),
		"many lookups":    refused(redis.Keyspace([]string{"a:1"}, "feed", redis.Options{}, redis.KeyspaceOptions{TTLLookups: 10_000})),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func refused(_ probes.Probe, err error) error { return err }
