package goredis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func isLock(key string) (string, bool) { return strings.CutPrefix(key, "lock:") }

func take(token string) redis.Cmder { return truth(true, "set", "lock:k", token, "ex", 10, "nx") }

func release(n int64, token string) redis.Cmder {
	return anything(n, "evalsha", "0123", 1, "lock:k", token)
}

func renew(n int64, token string) redis.Cmder {
	return anything(n, "evalsha", "4567", 1, "lock:k", token, 10_000)
}

func TestLocksAreHeldUntilReleasedOrLost(t *testing.T) {
	const s = time.Second
	free := signal.Locks{Attempts: 1, Acquired: 1}
	held := func(d time.Duration) signal.Locks {
		return signal.Locks{Attempts: 1, Acquired: 1, Holds: 1, HoldSum: d, HoldMax: d}
	}
	lost := func(d time.Duration) signal.Locks { l := held(d); l.Lost = 1; return l }
	type step struct {
		after time.Duration
		cmd   redis.Cmder
		err   error
	}
	tests := []struct {
		name  string
		steps []step
		want  signal.Locks
	}{
		{"held by somebody else", []step{{0, truth(false, "set", "lock:k", "me", "ex", 10, "nx"), nil}}, signal.Locks{Attempts: 1}},
		{"held by somebody else, says nil", []step{{0, anything(nil, "SET", "lock:k", "me", "NX", "PX", 500), redis.Nil}}, signal.Locks{Attempts: 1}},
		{"no answer", []step{{0, truth(false, "set", "lock:k", "me", "ex", 10, "nx"), errServer}}, signal.Locks{}},
		{"taken and still held", []step{{0, take("me"), nil}}, free},
		{"released by a script", []step{{0, take("me"), nil}, {3 * s, release(1, "me"), nil}}, held(3 * s)},
		{"released by DEL", []step{{0, take("me"), nil}, {3 * s, number(1, "del", "lock:k"), nil}}, held(3 * s)},
		{"released by UNLINK", []step{{0, take("me"), nil}, {3 * s, number(1, "unlink", "lock:k"), nil}}, held(3 * s)},
		{"released by DELEX", []step{{0, take("me"), nil}, {3 * s, number(1, "delex", "lock:k", "ifeq", "me"), nil}}, held(3 * s)},
		{"the token is a number", []step{
			{0, truth(true, "set", "lock:k", 7, "ex", 10, "nx"), nil},
			{3 * s, anything(int64(1), "eval", "script", 1, "lock:k", []byte("7")), nil},
		}, held(3 * s)},
		{"the script finds another token", []step{{0, take("me"), nil}, {11 * s, release(0, "me"), nil}}, lost(11 * s)},
		{"the script finds no lock and says nil", []step{{0, take("me"), nil}, {11 * s, anything(nil, "eval", "script", 1, "lock:k", "me"), redis.Nil}}, lost(11 * s)},
		{"DELEX finds another token", []step{{0, take("me"), nil}, {11 * s, number(0, "delex", "lock:k", "ifeq", "me"), nil}}, lost(11 * s)},
		{"DEL finds no lock", []step{{0, take("me"), nil}, {3 * s, number(0, "del", "lock:k"), nil}}, lost(3 * s)},
		{"DEL deletes whatever is there after the expiry", []step{{0, take("me"), nil}, {11 * s, number(1, "del", "lock:k"), nil}}, lost(11 * s)},
		{"the token was right although the clock says expired", []step{{0, take("me"), nil}, {11 * s, release(1, "me"), nil}}, held(11 * s)},
		{"a script that is not there yet", []step{{0, take("me"), nil}, {s, release(0, "me"), errServer}, {s, release(1, "me"), nil}}, held(2 * s)},
		{"a script of somebody else's token", []step{{0, take("me"), nil}, {s, release(0, "you"), nil}}, free},
		{"a script on another key", []step{{0, take("me"), nil}, {s, anything(int64(1), "eval", "script", 1, "lock:j", "me"), nil}}, free},
		{"a script without keys", []step{{0, take("me"), nil}, {s, anything(int64(1), "eval", "script", 0, "lock:k", "me"), nil}}, free},
		{"a script with more keys than arguments", []step{{0, take("me"), nil}, {s, anything(int64(1), "eval", "script", 9, "lock:k", "me"), nil}}, free},
		{"renewed by a script, then released in time", []step{
			{0, take("me"), nil}, {8 * s, renew(1, "me"), nil}, {8 * s, number(1, "del", "lock:k"), nil},
		}, held(16 * s)},
		{"renewed too late", []step{{0, take("me"), nil}, {11 * s, renew(0, "me"), nil}}, lost(11 * s)},
		{"renewed by EXPIRE, then released in time", []step{
			{0, take("me"), nil}, {8 * s, truth(true, "pexpire", "lock:k", 10_000), nil}, {8 * s, number(1, "del", "lock:k"), nil},
		}, held(16 * s)},
		{"renewed by PERSIST, then released", []step{
			{0, take("me"), nil}, {8 * s, truth(true, "persist", "lock:k"), nil}, {88 * s, number(1, "del", "lock:k"), nil},
		}, held(96 * s)},
		{"ended by EXPIRE", []step{{0, take("me"), nil}, {8 * s, truth(true, "expire", "lock:k", 0), nil}}, held(8 * s)},
		{"two holders, the first of whom was too slow", []step{
			{0, take("me"), nil}, {11 * s, take("you"), nil}, {s, release(0, "me"), nil}, {s, release(1, "you"), nil},
		}, signal.Locks{Attempts: 2, Acquired: 2, Holds: 2, HoldSum: 14 * s, HoldMax: 12 * s, Lost: 1}},
		{"already expired when it was taken", []step{{0, status("set", "lock:k", "me", "nx", "exat", 1), nil}}, free},
	}
	for _, tc := range tests {
		for mode, o := range map[string]goredis.Options{"guessed": {}, "declared": {LockKey: isLock}} {
			t.Run(tc.name+", "+mode, func(t *testing.T) {
				w := newWatch(t, o)
				for _, s := range tc.steps {
					w.clock.Step(s.after)
					w.run(s.cmd, s.err)
				}
				key, other := "lock:k", "k"
				if mode == "declared" {
					key, other = other, key
				}
				got := w.key(key)
				if held := got.Locks.Acquired - got.Locks.Holds; uint64(got.Locks.Held) != held {
					t.Errorf("%d locks are held at the end; want %d", got.Locks.Held, held)
				}
				got.Locks.Held, got.Locks.HeldSince = 0, 0
				if diff := cmp.Diff(tc.want, got.Locks); diff != "" {
					t.Errorf("locks (-want +got):\n%s", diff)
				}
				if l := lifeOf(got); l != (life{}) {
					t.Errorf("a lock counted as a cache key: %+v", l)
				}
				if x := w.key(other); x.Cache != "" {
					t.Errorf("%s was reported too: %+v", other, x)
				}
			})
		}
	}
}

func TestHoldsNobodyEndsAreGivenUp(t *testing.T) {
	for mode, want := range map[string]uint64{"guessed": 0, "declared": 1} {
		t.Run(mode, func(t *testing.T) {
			o := goredis.Options{}
			key := "lock:k"
			if mode == "declared" {
				o.LockKey, key = isLock, "k"
			}
			w := newWatch(t, o)
			w.run(take("me"), nil)
			w.clock.Step(19 * time.Second)
			w.run(str("get", "other"), redis.Nil)
			if got := w.key(key).Locks.Holds; got != 0 {
				t.Errorf("holds ended before twice the lock's life: %d, want 0", got)
			}
			w.clock.Step(2 * time.Second)
			w.run(str("get", "other"), redis.Nil)
			got := w.key(key).Locks
			if got.Holds != 1 || got.Lost != want {
				t.Errorf("holds %d, lost %d; want 1, %d", got.Holds, got.Lost, want)
			}
		})
	}
}

func TestKeyThatWasMissedIsFilledNotLocked(t *testing.T) {
	w := newWatch(t, goredis.Options{})
	w.run(str("get", "k"), redis.Nil)
	w.clock.Step(300 * time.Millisecond)
	w.run(truth(true, "set", "k", "v", "ex", 10, "nx"), nil)
	got := w.key("k")
	if got.Recomputes.Starts() != 1 || got.Busy != 300*time.Millisecond || got.Stores.TTLMax != 10*time.Second {
		t.Errorf("recomputes %d, busy %v, TTL %v; want 1, 300ms, 10s", got.Recomputes.Starts(), got.Busy, got.Stores.TTLMax)
	}
	if !got.Locks.IsZero() {
		t.Errorf("a fill counted as a lock: %+v", got.Locks)
	}
}

func TestKeyThatWasWrittenIsNotALock(t *testing.T) {
	w := newWatch(t, goredis.Options{})
	w.run(truth(true, "set", "k", "v", "ex", 10, "nx"), nil) // looks like a lock
	w.run(status("set", "k", "v", "ex", 10), nil)            // but is not
	w.run(number(1, "del", "k"), nil)
	if diff := cmp.Diff(life{Stores: 1, TTL: 10 * time.Second, Deleted: 1}, lifeOf(w.key("k"))); diff != "" {
		t.Errorf("life (-want +got):\n%s", diff)
	}
}

func TestDeclaredLocksAreNoCacheKeys(t *testing.T) {
	w := newWatch(t, goredis.Options{LockKey: isLock})
	w.run(str("get", "lock:k"), nil)
	w.run(str("get", "lock:k"), redis.Nil)
	w.run(status("set", "lock:k", "me", "ex", 10), nil)
	w.run(truth(true, "setnx", "lock:k", "me"), nil)
	w.run(number(1, "del", "lock:k", "k"), nil)
	if got := w.lookups(); got.Total() != 0 {
		t.Errorf("lookups: %+v, want none", got)
	}
	got := w.key("k")
	if got.Invalidations != 1 || got.Stores.Count != 0 {
		t.Errorf("deletions %d, stores %d; want 1 of k, none", got.Invalidations, got.Stores.Count)
	}
	if got.Locks.Acquired != 1 || got.Locks.Holds != 1 {
		t.Errorf("locks: %+v, want one SETNX, released", got.Locks)
	}
}

func TestHeldLocksAreBounded(t *testing.T) {
	w := newWatch(t, goredis.Options{MaxLocks: 8, LockKey: isLock})
	const n = 100
	for i := range n {
		w.run(truth(true, "set", fmt.Sprintf("lock:%d", i), "me", "ex", 10, "nx"), nil)
	}
	w.monitor.Flush()
	var got signal.Locks
	for _, x := range w.windows {
		got.Acquired += x.Locks.Acquired
		got.Holds += x.Locks.Holds
		got.Lost += x.Locks.Lost
	}
	if want := (signal.Locks{Acquired: n, Holds: n - 8}); got != want {
		t.Errorf("locks %+v, want all taken, all but 8 given up and none lost", got)
	}
}
