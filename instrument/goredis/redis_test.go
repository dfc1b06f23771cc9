package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// servers are what tests of single servers run against: the real thing, and the
// one the demo runs on.
var servers = map[string]func(testing.TB) string{
	"redis":     cachetest.Redis,
	"miniredis": func(t testing.TB) string { return miniredis.RunT(t).Addr() },
}

// onServers runs f with a client of each kind of server, the hook added.
func onServers(t *testing.T, f func(t *testing.T, rdb *redis.Client, w *watch)) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			w := newWatch(t, goredis.Options{})
			f(t, hooked(t, redis.NewClient(&redis.Options{Addr: start(t)}), w), w)
		})
	}
}

// hooked adds w's hook to a client that is closed when t ends.
func hooked[C interface {
	AddHook(redis.Hook)
	Close() error
}](t testing.TB, rdb C, w *watch) C {
	t.Helper()
	rdb.AddHook(w.hook)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func TestMissThenStoreIsOneRecompute(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client, w *watch) {
		ctx := t.Context()
		if err := rdb.Get(ctx, "k").Err(); err != redis.Nil {
			t.Fatalf("get of an empty cache: %v, want nil reply", err)
		}
		w.clock.Step(400 * time.Millisecond)
		if err := rdb.Set(ctx, "k", "v", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := rdb.Get(ctx, "k").Result(); err != nil || got != "v" {
			t.Fatalf("get: %q, %v", got, err)
		}
		got := w.key("k")
		want := signal.Recomputes{}
		want.Started[signal.CauseCold] = 1
		want.Ended[signal.CauseCold][signal.OutcomeOK] = 1
		if diff := cmp.Diff(want, got.Recomputes); diff != "" {
			t.Errorf("recomputes (-want +got):\n%s", diff)
		}
		if got.Busy != 400*time.Millisecond || got.MissPeak != 1 || got.Duplicates != 0 {
			t.Errorf("busy %v, miss peak %d, duplicates %d; want 400ms, 1, 0", got.Busy, got.MissPeak, got.Duplicates)
		}
		if !got.Unknown.Has(signal.UnknownStarts) {
			t.Errorf("an inferred recompute is not marked as such: %b", got.Unknown)
		}
		if diff := cmp.Diff(signal.Lookups{Hits: 1, Misses: 1}, w.lookups()); diff != "" {
			t.Errorf("lookups (-want +got):\n%s", diff)
		}
	})
}

func TestCommandsOfTheClientAreUnderstood(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client, w *watch) {
		ctx := t.Context()
		const ttl = time.Minute
		must := func(cmds ...redis.Cmder) {
			t.Helper()
			for _, cmd := range cmds {
				if err := cmd.Err(); err != nil && err != redis.Nil {
					t.Errorf("%v: %v", cmd.Args(), err)
				}
			}
		}
		must(
			rdb.Set(ctx, "set", "v", ttl),
			rdb.Do(ctx, "SETEX", "setex", 60, "v"),
			rdb.SetArgs(ctx, "setargs", "v", redis.SetArgs{Mode: "XX", TTL: ttl}), // not there: no store
			rdb.SetArgs(ctx, "setargs", "v", redis.SetArgs{Get: true, TTL: ttl}),
			rdb.SetArgs(ctx, "setat", "v", redis.SetArgs{ExpireAt: w.clock.Now().Add(ttl)}),
			rdb.SetXX(ctx, "set", "v", redis.KeepTTL),
			rdb.SetXX(ctx, "setxx", "v", ttl), // not there: no store
			rdb.SetNX(ctx, "setnx", "v", 0),
			rdb.MSet(ctx, "mset", "v", "other", "v"),
			rdb.MSetNX(ctx, "msetnx", "v"),
			rdb.Do(ctx, "GETSET", "getset", "v"),
			rdb.HSet(ctx, "hset", "f", "v", "g", "v"),
			rdb.HSetNX(ctx, "hset", "f", "v"), // there: no store
			rdb.Get(ctx, "set"),
			rdb.GetEx(ctx, "set", ttl),
			rdb.MGet(ctx, "set", "none", "mset"),
			rdb.HGet(ctx, "hset", "f"), rdb.HGet(ctx, "hset", "none"),
			rdb.HMGet(ctx, "hset", "f", "none"), rdb.HMGet(ctx, "none", "f", "g"),
			rdb.HGetAll(ctx, "hset"), rdb.HGetAll(ctx, "none"),
			rdb.Do(ctx, "GET", "set"), rdb.Do(ctx, "MGET", "set", "none"), rdb.Do(ctx, "HGETALL", "hset"), rdb.Do(ctx, "HGETALL", "none"),
			rdb.Exists(ctx, "none"), rdb.TTL(ctx, "none"),
			rdb.Expire(ctx, "set", 2*ttl), rdb.Persist(ctx, "set"),
			rdb.Del(ctx, "msetnx", "none"), rdb.Unlink(ctx, "none"), rdb.GetDel(ctx, "getset"),
		)
		if err := rdb.HGetAll(ctx, "set").Err(); err == nil {
			t.Error("a hash lookup of a string did not fail")
		}
		want := map[string]life{
			"set":     {Stores: 2, TTL: ttl},
			"setex":   {Stores: 1, TTL: ttl},
			"setargs": {Stores: 1, TTL: ttl},
			"setat":   {Stores: 1, TTL: ttl},
			"setxx":   {},
			"setnx":   {Stores: 1, NoExpiry: 1},
			"mset":    {Stores: 1, NoExpiry: 1},
			"msetnx":  {Stores: 1, NoExpiry: 1, Deleted: 1},
			"getset":  {Stores: 1, NoExpiry: 1, Deleted: 1},
			"hset":    {Stores: 1},
		}
		got := make(map[string]life)
		for key := range want {
			l := lifeOf(w.key(key))
			l.TTL = l.TTL.Round(time.Second) // SetArgs sends ExpireAt in whole milliseconds or seconds
			got[key] = l
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("lives (-want +got):\n%s", diff)
		}
		wantLookups := signal.Lookups{Hits: 10, Misses: 6, Errors: 1}
		if diff := cmp.Diff(wantLookups, w.lookups()); diff != "" {
			t.Errorf("lookups (-want +got):\n%s", diff)
		}
	})
}

const compareAndDelete = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`

func TestLockTakenAndReleasedByScript(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client, w *watch) {
		ctx := t.Context()
		unlock := redis.NewScript(compareAndDelete)
		for _, token := range []string{"me", "you"} {
			if err := rdb.SetNX(ctx, "lock:k", token, time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		}
		w.clock.Step(2 * time.Second)
		// The script is not on the server yet: this is an EVALSHA that fails and
		// an EVAL.
		if n, err := unlock.Run(ctx, rdb, []string{"lock:k"}, "me").Int(); err != nil || n != 1 {
			t.Fatalf("release: %d, %v", n, err)
		}
		// From here on it is: an EVALSHA alone. The lock is gone before its holder
		// releases it.
		if err := rdb.SetNX(ctx, "lock:k", "me", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		if err := rdb.Do(ctx, "RENAME", "lock:k", "elsewhere").Err(); err != nil {
			t.Fatal(err)
		}
		w.clock.Step(time.Second)
		if n, err := unlock.Run(ctx, rdb, []string{"lock:k"}, "me").Int(); err != nil || n != 0 {
			t.Fatalf("release of a lost lock: %d, %v", n, err)
		}
		want := signal.Locks{Attempts: 3, Acquired: 2, Holds: 2, HoldSum: 3 * time.Second, HoldMax: 2 * time.Second, Lost: 1}
		if diff := cmp.Diff(want, w.key("lock:k").Locks); diff != "" {
			t.Errorf("locks (-want +got):\n%s", diff)
		}
	})
}

func TestPipelinesAndTransactions(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client, w *watch) {
		ctx := t.Context()
		work := func(p redis.Pipeliner) error {
			p.Set(ctx, "k", "v", time.Minute)
			p.Get(ctx, "k")
			p.Get(ctx, "none")
			p.HGetAll(ctx, "k") // wrong type
			p.MGet(ctx, "k", "none")
			return nil
		}
		once := signal.Lookups{Hits: 2, Misses: 2, Errors: 1}
		rdb.Pipelined(ctx, work)
		if diff := cmp.Diff(once, w.lookups()); diff != "" {
			t.Errorf("lookups in a pipeline (-want +got):\n%s", diff)
		}
		rdb.TxPipelined(ctx, work)
		twice := once
		twice.Add(once)
		if diff := cmp.Diff(twice, w.lookups()); diff != "" {
			t.Errorf("lookups in a transaction too (-want +got):\n%s", diff)
		}
		// A transaction that fails as a whole stores nothing and finds nothing.
		err := rdb.Watch(ctx, func(tx *redis.Tx) error {
			if err := rdb.Incr(ctx, "watched").Err(); err != nil {
				return err
			}
			_, err := tx.TxPipelined(ctx, work)
			return err
		}, "watched")
		if !errors.Is(err, redis.TxFailedErr) {
			t.Fatalf("transaction: %v, want it to fail", err)
		}
		twice.Errors += 3 + 2 // MGET is two lookups
		if diff := cmp.Diff(twice, w.lookups()); diff != "" {
			t.Errorf("lookups after a failed transaction (-want +got):\n%s", diff)
		}
		if got := w.key("k").Stores.Count; got != 2 {
			t.Errorf("stores of k: %d, want 2", got)
		}
	})
}

func TestAutomaticPipelinesDoNotWaitForThemselves(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client, w *watch) {
		ctx := t.Context()
		ap, err := rdb.AsyncAutoPipeline()
		if err != nil {
			t.Fatal(err)
		}
		defer ap.Close()
		const n = 200
		var cmds []redis.Cmder
		for i := range n {
			cmds = append(cmds, ap.Get(ctx, fmt.Sprint(i)), ap.MGet(ctx, "a", "b"), ap.HGetAll(ctx, "h"))
		}
		for _, cmd := range cmds {
			if err := cmd.Err(); err != nil && err != redis.Nil {
				t.Errorf("%v: %v", cmd.Args(), err)
			}
		}
		if diff := cmp.Diff(signal.Lookups{Misses: 4 * n}, w.lookups()); diff != "" {
			t.Errorf("lookups (-want +got):\n%s", diff)
		}
	})
}

func TestMGetOfManyKeysCountsEachKey(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client, w *watch) {
		ctx := t.Context()
		keys := make([]string, 500)
		for i := range keys {
			keys[i] = fmt.Sprintf("feed:%d", i)
			if i%5 != 0 {
				continue
			}
			if err := rdb.Set(ctx, keys[i], "v", time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := rdb.MGet(ctx, keys...).Err(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(signal.Lookups{Hits: 100, Misses: 400}, w.lookups()); diff != "" {
			t.Errorf("lookups (-want +got):\n%s", diff)
		}
		for i, want := range []signal.Lookups{{Hits: 1}, {Misses: 1}} {
			if diff := cmp.Diff(want, w.key(keys[i]).Lookups); diff != "" {
				t.Errorf("lookups of %s (-want +got):\n%s", keys[i], diff)
			}
		}
	})
}

func TestStrangeKeysAreKeysLikeOthers(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client, w *watch) {
		ctx := t.Context()
		keys := map[string]string{
			"empty":     "",
			"binary":    "\x00\xff\xfe\r\n\x00",
			"newlines":  "a\nb\r\nc",
			"markup":    `"'</script><script>alert(1)</script>`,
			"one MiB":   strings.Repeat("k", 1<<20),
			"one MiB 2": strings.Repeat("k", 1<<20-1) + "l",
		}
		for name, key := range keys {
			rdb.Get(ctx, key)
			w.clock.Step(time.Second)
			if err := rdb.Set(ctx, key, "v", time.Minute).Err(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			rdb.Get(ctx, key)
		}
		n := uint64(len(keys))
		if diff := cmp.Diff(signal.Lookups{Hits: n, Misses: n}, w.lookups()); diff != "" {
			t.Errorf("lookups (-want +got):\n%s", diff)
		}
		recomputes, busy := uint64(0), time.Duration(0)
		for _, x := range w.windows {
			recomputes += x.Recomputes.Starts()
			busy += x.Busy
		}
		if recomputes != n || busy != time.Duration(n)*time.Second {
			t.Errorf("recomputes %d, busy %v; want %d of a second each", recomputes, busy, n)
		}
	})
}

func TestManyGoroutinesAreCountedExactly(t *testing.T) {
	onServers(t, func(t *testing.T, rdb *redis.Client, w *watch) {
		const goroutines, rounds = 64, 20
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for range rounds {
					rdb.Get(ctx, "never stored")
					rdb.MGet(ctx, "hot", "never stored")
					rdb.Set(ctx, "hot", "v", time.Minute)
					rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
						p.Get(ctx, "hot")
						p.Del(ctx, fmt.Sprint("gone", g))
						return nil
					})
					if rdb.SetNX(ctx, "lock", fmt.Sprint(g), time.Minute).Val() {
						rdb.Eval(ctx, compareAndDelete, []string{"lock"}, fmt.Sprint(g))
					}
				}
			})
		}
		wg.Wait()
		const n = goroutines * rounds
		if got := w.lookups(); got.Total() != 4*n || got.Errors != 0 {
			t.Errorf("lookups %+v, want %d and no errors", got, 4*n)
		}
		if got := w.key("hot").Stores.Count; got != n {
			t.Errorf("stores of hot: %d, want %d", got, n)
		}
		if got := w.key("never stored").Lookups.Misses; got != 2*n {
			t.Errorf("misses: %d, want %d", got, 2*n)
		}
		got := w.key("lock").Locks
		if got.Attempts != n || got.Acquired == 0 || got.Holds != got.Acquired || got.Lost != 0 {
			t.Errorf("locks %+v, want %d attempts, each taken one released", got, n)
		}
	})
}

func TestLookupWithoutAnAnswerIsAnErrorNotAMiss(t *testing.T) {
	w := newWatch(t, goredis.Options{})
	addr := cachetest.Redis(t)
	rdb := hooked(t, redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1}), w)

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rdb.Get(cancelled, "k").Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("get with a cancelled context: %v", err)
	}

	// The server takes the command and does not answer in time.
	if err := rdb.Do(t.Context(), "CLIENT", "PAUSE", "60000", "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := rdb.Get(short, "k").Err(); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("get of a paused server: %v, want a time-out", err)
	}
	if _, err := rdb.Pipelined(short, func(p redis.Pipeliner) error { p.Get(short, "k"); return nil }); err == nil {
		t.Error("pipeline after its deadline did not fail")
	}
	if diff := cmp.Diff(signal.Lookups{Errors: 3}, w.lookups()); diff != "" {
		t.Errorf("lookups (-want +got):\n%s", diff)
	}
}

func TestRetriesInsideTheClientAreOneLookup(t *testing.T) {
	w := newWatch(t, goredis.Options{})
	server := miniredis.RunT(t)
	attempts := 0
	server.Server().SetPreHook(func(peer *miniserver.Peer, cmd string, _ ...string) bool {
		if cmd != "GET" {
			return false
		}
		if attempts++; attempts < 3 {
			peer.WriteError("LOADING Redis is loading the dataset in memory")
			return true
		}
		return false
	})
	rdb := hooked(t, redis.NewClient(&redis.Options{Addr: server.Addr(), MinRetryBackoff: -1, MaxRetryBackoff: -1}), w)
	if err := rdb.Get(t.Context(), "k").Err(); err != redis.Nil {
		t.Errorf("get: %v, want nil reply", err)
	}
	if attempts != 3 {
		t.Errorf("the server saw %d attempts, want 3", attempts)
	}
	if diff := cmp.Diff(signal.Lookups{Misses: 1}, w.lookups()); diff != "" {
		t.Errorf("lookups (-want +got):\n%s", diff)
	}
}
