package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

var errServer = errors.New("WRONGTYPE Operation against a key holding the wrong kind of value")

func TestLookupsEndAsHitMissOrError(t *testing.T) {
	hits := func(n uint64) signal.Lookups { return signal.Lookups{Hits: n} }
	misses := func(n uint64) signal.Lookups { return signal.Lookups{Misses: n} }
	failures := func(n uint64) signal.Lookups { return signal.Lookups{Errors: n} }
	none := signal.Lookups{}
	tests := []struct {
		name string
		cmd  redis.Cmder
		err  error
		want signal.Lookups
	}{
		{"GET that finds a value is a hit", str("get", "k"), nil, hits(1)},
		{"GET that finds nil is a miss", str("get", "k"), redis.Nil, misses(1)},
		{"a nil that another hook wrapped is a miss", str("get", "k"), fmt.Errorf("read k: %w", redis.Nil), misses(1)},
		{"GET of the wrong type is an error", str("get", "k"), errServer, failures(1)},
		{"GET that was cancelled is an error", str("get", "k"), context.Canceled, failures(1)},
		{"GET that timed out is an error", str("get", "k"), context.DeadlineExceeded, failures(1)},
		{"GET into a buffer is a hit", redis.NewZeroCopyStringCmd(t.Context(), nil, "get", "k"), nil, hits(1)},
		{"GET by Do is a hit, in capitals too", anything("v", "GET", "k"), nil, hits(1)},
		{"GET by Do that finds nil is a miss", anything(nil, "Get", "k"), redis.Nil, misses(1)},
		{"GET whose name is bytes is a hit", anything("v", []byte("get"), "k"), nil, hits(1)},
		{"GET by DoRaw is not seen", redis.NewRawCmd(t.Context(), "get", "k"), nil, none},
		{"GETEX that finds a value is a hit", str("getex", "k", "ex", 10), nil, hits(1)},
		{"GETEX that finds nil is a miss", str("getex", "k", "ex", 10), redis.Nil, misses(1)},
		{"MGET counts each key", list([]any{"v", nil, "w"}, "mget", "a", "b", "c"), nil, signal.Lookups{Hits: 2, Misses: 1}},
		{"MGET by Do counts each key", anything([]any{"v", nil}, "mget", "a", "b"), nil, signal.Lookups{Hits: 1, Misses: 1}},
		{"MGET that failed is an error for each key", list(nil, "mget", "a", "b"), errServer, failures(2)},
		{"MGET with an error inside is an error for that key", anything([]any{"v", errServer}, "mget", "a", "b"), nil, signal.Lookups{Hits: 1, Errors: 1}},
		{"MGET whose reply is too short counts what is there", list([]any{"v"}, "mget", "a", "b"), nil, hits(1)},
		{"MGET whose reply cannot be read is not seen", str("mget", "a", "b"), nil, none},
		{"HGET that finds a field is a hit", str("hget", "h", "f"), nil, hits(1)},
		{"HGET that finds nil is a miss", str("hget", "h", "f"), redis.Nil, misses(1)},
		{"HMGET that finds something is one hit", list([]any{nil, "v"}, "hmget", "h", "f", "g"), nil, hits(1)},
		{"HMGET that finds nothing is one miss", list([]any{nil, nil}, "hmget", "h", "f", "g"), nil, misses(1)},
		{"HMGET of the wrong type is one error", list(nil, "hmget", "h", "f", "g"), errServer, failures(1)},
		{"HGETALL of a hash is a hit", hash(map[string]string{"f": "v"}, "hgetall", "h"), nil, hits(1)},
		{"HGETALL of an empty hash is a miss", hash(nil, "hgetall", "h"), nil, misses(1)},
		{"HGETALL by Do of a hash is a hit", anything(map[any]any{"f": "v"}, "hgetall", "h"), nil, hits(1)},
		{"HGETALL by Do of an empty RESP2 hash is a miss", anything([]any{}, "hgetall", "h"), nil, misses(1)},
		{"HGETALL whose reply cannot be read is not seen", str("hgetall", "h"), nil, none},
		{"EXISTS is no lookup", number(0, "exists", "k"), nil, none},
		{"TTL is no lookup", number(-2, "ttl", "k"), nil, none},
		{"GETRANGE is no lookup", str("getrange", "k", 0, 1), nil, none},
		{"GETDEL is no lookup", str("getdel", "k"), redis.Nil, none},
		{"GET without a key is nothing", str("get"), errServer, none},
		{"no command at all is nothing", str(), errServer, none},
		{"an unknown long command is nothing", str("supercalifragilistic", "k"), nil, none},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWatch(t, goredis.Options{})
			if err := w.run(tc.cmd, tc.err); err != tc.err {
				t.Errorf("the hook returned %v, want what the server said: %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, w.lookups()); diff != "" {
				t.Errorf("lookups (-want +got):\n%s", diff)
			}
		})
	}
}

// life is what a store, a touch or a deletion says of a key.
type life struct {
	Stores   uint64
	NoExpiry uint64
	TTL      time.Duration
	Deleted  uint64
}

func lifeOf(w *signal.Window) life {
	return life{w.Stores.Count, w.Stores.NoExpiry, w.Stores.TTLMax, w.Invalidations}
}

func TestStoresCarryTheirExpiry(t *testing.T) {
	now := time.Now().Truncate(time.Second) // so that instants in whole seconds are exact
	const s, ms = time.Second, time.Millisecond
	timed := func(d time.Duration) life { return life{Stores: 1, TTL: d} }
	forever, deleted, none := life{Stores: 1, NoExpiry: 1}, life{Deleted: 1}, life{}
	tests := []struct {
		name string
		cmd  redis.Cmder
		err  error
		want life
	}{
		{"SET without expiry", status("set", "k", "v"), nil, forever},
		{"SET EX", status("set", "k", "v", "ex", int64(10)), nil, timed(10 * s)},
		{"SET PX", status("set", "k", "v", "px", int64(1500)), nil, timed(1500 * ms)},
		{"SET PX as text, in capitals", anything("OK", "SET", "k", "v", "PX", "1500"), nil, timed(1500 * ms)},
		{"SET PX as bytes", anything("OK", "SET", "k", "v", []byte("Px"), []byte("1500")), nil, timed(1500 * ms)},
		{"SET EXAT", status("set", "k", "v", "exat", now.Unix()+60), nil, timed(60 * s)},
		{"SET PXAT", status("set", "k", "v", "pxat", now.UnixMilli()+60_000), nil, timed(60 * s)},
		{"SET EXAT in the past deletes", status("set", "k", "v", "exat", now.Unix()-60), nil, deleted},
		{"SET KEEPTTL of a key not seen before has an unknown expiry", status("set", "k", "v", "keepttl"), nil, life{Stores: 1}},
		{"SET EX after XX", status("set", "k", "v", "xx", "ex", 10), nil, timed(10 * s)},
		{"SET EX before XX", status("set", "k", "v", "ex", 10, "xx"), nil, timed(10 * s)},
		{"SET XX of a key that is not there", status("set", "k", "v", "xx"), redis.Nil, none},
		{"SET XX with a truth value for reply", truth(false, "set", "k", "v", "ex", 10, "xx"), nil, none},
		{"SET NX without expiry that stored", truth(true, "set", "k", "v", "nx"), nil, forever},
		{"SET NX without expiry that did not", truth(false, "set", "k", "v", "nx"), nil, none},
		{"SET GET of a key that was there", status("set", "k", "v", "get", "ex", 10), nil, timed(10 * s)},
		{"SET GET of a key that was not", status("set", "k", "v", "ex", 10, "get"), redis.Nil, timed(10 * s)},
		{"SET XX GET of a key that was not", status("set", "k", "v", "xx", "get"), redis.Nil, none},
		{"SET XX GET of a key that was there", status("set", "k", "v", "xx", "get"), nil, forever},
		{"SET NX GET of a key that was not there", status("set", "k", "v", "nx", "get"), redis.Nil, forever},
		{"SET NX GET of a key that was there", status("set", "k", "v", "nx", "get"), nil, none},
		{"SET IFEQ that stored", status("set", "k", "v", "ifeq", "ex", "ex", 10), nil, timed(10 * s)},
		{"SET IFEQ that did not", status("set", "k", "v", "ifeq", "old"), redis.Nil, none},
		{"SET IFEQ GET does not say whether it stored", str("set", "k", "v", "ifeq", "old", "get"), nil, none},
		{"SET that failed", status("set", "k", "v"), errServer, none},
		{"SET that was cancelled", status("set", "k", "v"), context.Canceled, none},
		{"SET with an expiry that ends in the middle", anything("OK", "set", "k", "v", "ex"), nil, life{Stores: 1}},
		{"SET with an expiry that is no number", anything("OK", "set", "k", "v", "ex", "soon"), nil, life{Stores: 1}},
		{"SET with the longest expiry", status("set", "k", "v", "ex", int64(1)<<62), nil, timed(1<<63 - 1)},
		{"SET without a value", status("set", "k"), nil, none},
		{"SETEX", status("setex", "k", 10, "v"), nil, timed(10 * s)},
		{"PSETEX", status("psetex", "k", 10, "v"), nil, timed(10 * ms)},
		{"SETEX of nothing is refused", status("setex", "k", 0, "v"), errServer, none},
		{"SETEX without a value", status("setex", "k", 10), nil, none},
		{"SETNX that stored", truth(true, "setnx", "k", "v"), nil, forever},
		{"SETNX by Do that did not", anything(int64(0), "setnx", "k", "v"), nil, none},
		{"GETSET", str("getset", "k", "v"), nil, forever},
		{"GETSET of a key that was not there", str("getset", "k", "v"), redis.Nil, forever},
		{"GETSET that failed", str("getset", "k", "v"), errServer, none},
		{"MSET", status("mset", "j", "v", "k", "v"), nil, forever},
		{"MSET with a key too many", status("mset", "j", "v", "k"), nil, none},
		{"MSETNX that stored", truth(true, "msetnx", "k", "v"), nil, forever},
		{"MSETNX that did not", truth(false, "msetnx", "k", "v"), nil, none},
		{"MSETEX", number(1, "msetex", 2, "j", "v", "k", "v", "ex", 10), nil, timed(10 * s)},
		{"MSETEX with more keys than it has", number(1, "msetex", 3, "j", "v", "k", "v"), nil, none},
		{"MSETEX that did not store", number(0, "msetex", 1, "k", "v", "nx"), nil, none},
		{"HSET of a new field", number(1, "hset", "k", "f", "v"), nil, life{Stores: 1}},
		{"HSET of an old field", number(0, "hset", "k", "f", "v"), nil, life{Stores: 1}},
		{"HMSET", truth(true, "hmset", "k", "f", "v"), nil, life{Stores: 1}},
		{"HSETNX that stored", truth(true, "hsetnx", "k", "f", "v"), nil, life{Stores: 1}},
		{"HSETNX that did not", truth(false, "hsetnx", "k", "f", "v"), nil, none},
		{"HDEL leaves the hash", number(1, "hdel", "k", "f"), nil, none},
		{"DEL", number(1, "del", "k"), nil, deleted},
		{"DEL of several", number(1, "del", "j", "k"), nil, deleted},
		{"DEL of nothing", number(0, "del", "k"), nil, none},
		{"DEL that failed", number(0, "del", "k"), errServer, none},
		{"UNLINK", number(1, "unlink", "k"), nil, deleted},
		{"DELEX", number(1, "delex", "k"), nil, deleted},
		{"DELEX with a condition that held", number(1, "delex", "k", "ifeq", "v"), nil, deleted},
		{"DELEX with a condition that did not", number(0, "delex", "k", "ifeq", "v"), nil, none},
		{"GETDEL", str("getdel", "k"), nil, deleted},
		{"GETDEL of nothing", str("getdel", "k"), redis.Nil, none},
		{"EXPIRE with no time left deletes", truth(true, "expire", "k", 0), nil, deleted},
		{"EXPIRE of nothing", truth(false, "expire", "k", 0), nil, none},
		{"PEXPIREAT in the past deletes", truth(true, "pexpireat", "k", now.UnixMilli()-1000), nil, deleted},
		{"GETEX with an expiry in the past deletes", str("getex", "k", "exat", now.Unix()-60), nil, deleted},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWatch(t, goredis.Options{})
			w.clock.t = now
			w.run(tc.cmd, tc.err)
			if diff := cmp.Diff(tc.want, lifeOf(w.key("k"))); diff != "" {
				t.Errorf("life of k (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTouchedValuesExpireWhenTheyWereToldTo(t *testing.T) {
	at := time.Now().Add(time.Minute).Truncate(time.Second)
	tests := []struct {
		name  string
		touch redis.Cmder
		want  signal.Cause // of a miss two minutes later
	}{
		{"EXPIRE", truth(true, "expire", "k", 60), signal.CauseExpired},
		{"EXPIRE by Do", anything(int64(1), "expire", "k", 60), signal.CauseExpired},
		{"EXPIRE that its condition refused", truth(false, "expire", "k", 60, "nx"), signal.CauseEvicted},
		{"PEXPIRE", truth(true, "pexpire", "k", 60_000), signal.CauseExpired},
		{"EXPIREAT", truth(true, "expireat", "k", at.Unix()), signal.CauseExpired},
		{"PEXPIREAT", truth(true, "pexpireat", "k", at.UnixMilli()), signal.CauseExpired},
		{"GETEX with an expiry", str("getex", "k", "ex", 60), signal.CauseExpired},
		{"GETEX without", str("getex", "k"), signal.CauseEvicted},
		{"EXPIRE without a time", truth(true, "expire", "k"), signal.CauseEvicted},
		{"PERSIST", truth(true, "persist", "k"), signal.CauseEvicted},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWatch(t, goredis.Options{})
			w.run(status("set", "k", "v"), nil)
			w.run(tc.touch, nil)
			w.clock.Step(2 * time.Minute)
			w.run(str("get", "k"), redis.Nil)
			w.run(status("set", "k", "v"), nil)
			if n := w.key("k").Recomputes.Started[tc.want]; n != 1 {
				t.Errorf("recomputes started: %v, want one with cause %v", w.key("k").Recomputes.Started, tc.want)
			}
		})
	}
}

// key is a type with a wire format of its own.
type key struct{ id int }

func (k key) MarshalBinary() ([]byte, error) { return fmt.Appendf(nil, "key:%d", k.id), nil }

// hostile is a key whose code cannot be trusted.
type hostile struct{}

func (*hostile) MarshalBinary() ([]byte, error) { panic("not today") }

func TestKeysAreWhatTheClientSends(t *testing.T) {
	text, n, yes := "text", 7, true
	day := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		name string
		arg  any
		want string // empty: not seen
	}{
		{"text", "text", "text"},
		{"a pointer to text", &text, "text"},
		{"bytes", []byte("a\x00b"), "a\x00b"},
		{"an int", 42, "42"},
		{"a pointer to an int", &n, "7"},
		{"a nil pointer to an int", (*int)(nil), "0"},
		{"a uint8", uint8(255), "255"},
		{"a float", 1.5, "1.5"},
		{"a truth value", true, "1"},
		{"a pointer to a truth value", &yes, "1"},
		{"a false one", false, "0"},
		{"a time", day, "2026-11-30T00:00:00Z"},
		{"a pointer to a time", &day, "2026-11-30T00:00:00Z"},
		{"a nil pointer to a time", (*time.Time)(nil), "0001-01-01T00:00:00Z"},
		{"a duration", time.Microsecond, "1000"},
		{"an IP address", net.IP("abcd"), "abcd"},
		{"a marshaler", key{3}, "key:3"},
		{"a marshaler that panics", (*hostile)(nil), ""},
		{"a struct", struct{}{}, ""},
		{"a pointer to a pointer", new(*int), ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWatch(t, goredis.Options{})
			w.run(anything("OK", "set", tc.arg, "v"), nil)
			w.monitor.Flush()
			var got []string
			for _, x := range w.windows {
				got = append(got, x.Key.Text)
			}
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("keys stored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldsOfADeclaredHashAreEntries(t *testing.T) {
	w := newWatch(t, goredis.Options{HashFields: func(key string) bool { return key == "users" }})
	w.run(str("hget", "users", "1"), redis.Nil)
	w.run(list([]any{"v", nil}, "hmget", "users", "1", "2"), nil)
	w.run(hash(nil, "hgetall", "users"), nil)
	w.clock.Step(time.Second)
	w.run(number(2, "hset", "users", "1", "v", "2", "v"), nil)
	w.run(number(1, "hdel", "users", "2"), nil)
	w.run(number(0, "hdel", "users", "3"), nil)
	w.run(str("hget", "profile", "name"), redis.Nil)

	if diff := cmp.Diff(signal.Lookups{Hits: 1, Misses: 3}, w.lookups()); diff != "" {
		t.Errorf("lookups (-want +got):\n%s", diff)
	}
	for key, want := range map[string]life{
		"users":   {},
		"users:1": {Stores: 1},
		"users:2": {Stores: 1, Deleted: 1},
		"users:3": {},
	} {
		if diff := cmp.Diff(want, lifeOf(w.key(key))); diff != "" {
			t.Errorf("life of %s (-want +got):\n%s", key, diff)
		}
	}
	if got := w.key("users:1"); got.Recomputes.Starts() != 1 || got.Busy != time.Second {
		t.Errorf("recomputes of users:1: %d, busy %v; want 1, busy 1s", got.Recomputes.Starts(), got.Busy)
	}
	if got := w.key("profile").Lookups.Misses; got != 1 {
		t.Errorf("misses of a hash that was not declared: %d, want 1", got)
	}
}

func TestPipelinesCountEachCommandByItsOwnError(t *testing.T) {
	failing := func(cmd redis.Cmder, err error) redis.Cmder { cmd.SetErr(err); return cmd }
	tests := []struct {
		name string
		cmds []redis.Cmder
		err  error
		want signal.Lookups
	}{
		{"all found", []redis.Cmder{str("get", "a"), str("get", "b")}, nil, signal.Lookups{Hits: 2}},
		{"one of each", []redis.Cmder{
			str("get", "a"),
			failing(str("get", "b"), redis.Nil),
			failing(str("get", "c"), errServer),
		}, redis.Nil, signal.Lookups{Hits: 1, Misses: 1, Errors: 1}},
		{"a transaction", []redis.Cmder{status("multi"), str("get", "a"), list(nil, "exec")}, nil, signal.Lookups{Hits: 1}},
		{"refused by another hook", []redis.Cmder{str("get", "a"), str("get", "b")}, errServer, signal.Lookups{Errors: 2}},
		{"empty", nil, nil, signal.Lookups{}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWatch(t, goredis.Options{})
			process := w.hook.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return tc.err })
			if err := process(t.Context(), tc.cmds); err != tc.err {
				t.Errorf("the hook returned %v, want %v", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, w.lookups()); diff != "" {
				t.Errorf("lookups (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHookWithoutMonitorDoesNothing(t *testing.T) {
	idle, err := goredis.NewHook(nil, goredis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, hook := range map[string]*goredis.Hook{"no monitor": idle, "no hook": nil} {
		t.Run(name, func(t *testing.T) {
			called := 0
			process := hook.ProcessHook(func(context.Context, redis.Cmder) error { called++; return errServer })
			pipeline := hook.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { called++; return errServer })
			dial := hook.DialHook(func(context.Context, string, string) (net.Conn, error) { called++; return nil, errServer })
			if err := process(t.Context(), str("get", "k")); err != errServer {
				t.Errorf("process: %v", err)
			}
			if err := pipeline(t.Context(), []redis.Cmder{str("get", "k")}); err != errServer {
				t.Errorf("pipeline: %v", err)
			}
			if _, err := dial(t.Context(), "tcp", "localhost:1"); err != errServer {
				t.Errorf("dial: %v", err)
			}
			if called != 3 {
				t.Errorf("next was called %d times, want 3", called)
			}
		})
	}
}

func TestOptionsOutOfRangeAreRefused(t *testing.T) {
	for _, n := range []int{-1, 1<<16 + 1} {
		_, err := goredis.NewHook(nil, goredis.Options{MaxLocks: n})
		want := fmt.Sprintf("make go-redis hook: MaxLocks is %d: want 1 to 65536", n)
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
