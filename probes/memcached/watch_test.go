package memcached_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes/memcached"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// watch returns a probe that listens to the server at addr.
func watch(t testing.TB, addr string, w memcached.WatchOptions) *run {
	t.Helper()
	p, err := memcached.Watch(addr, "feed", memcached.Options{}, w)
	r := running(t, p, err)
	r.listening()
	return r
}

// listening runs the probe until the server writes its log to it.
func (r *run) listening() {
	r.t.Helper()
	r.until("log", func() bool { return r.err == nil && r.vitals != nil && r.vitals.Watch })
}

// logsDeletions reports whether the server does, by its version.
func (r *run) logsDeletions() bool {
	var major, minor, patch int
	if _, err := fmt.Sscanf(r.vitals.Build, "%d.%d.%d", &major, &minor, &patch); err != nil {
		r.t.Fatalf("version %q: %v", r.vitals.Build, err)
	}
	return major > 1 || minor > 6 || minor == 6 && patch >= 20
}

// heard runs the probe until it has heard of so many stores of a group.
func (r *run) heard(group string, stores uint64) signal.Window {
	r.t.Helper()
	r.until(fmt.Sprintf("%d stores of %s", stores, group), func() bool { return r.sum(group).Stores.Count >= stores })
	return r.sum(group)
}

// stampede makes so many readers miss a key and then store it, all of them
// before any of them stores.
func stampede(t testing.TB, addr, key string, readers, ttl int) {
	t.Helper()
	var missed, done sync.WaitGroup
	missed.Add(readers)
	for range readers {
		c := dial(t, addr)
		done.Go(func() {
			if c.get(key) {
				t.Errorf("%q is there", key)
			}
			missed.Done()
			missed.Wait()
			c.set(key, ttl)
		})
	}
	done.Wait()
}

func TestWatchCountsAStampedeExactly(t *testing.T) {
	const readers = 200
	addr := cachetest.Memcached(t)
	r := watch(t, addr, memcached.WatchOptions{})
	stampede(t, addr, "feed:1", readers, 60)
	stampede(t, addr, "feed:2", readers, 60)

	got := r.heard("feed:*", 2*readers)
	if got.Lookups.Misses != 2*readers || got.Stores.Count != 2*readers {
		t.Errorf("%d misses and %d stores, want %d of each", got.Lookups.Misses, got.Stores.Count, 2*readers)
	}
	if n := got.Recomputes.Started[signal.CauseCold]; n != 2*readers || got.Recomputes.Starts() != n {
		t.Errorf("recomputes by cause: %v, want %d of cold keys", got.Recomputes.Started, 2*readers)
	}
	if got.Duplicates != 2*(readers-1) || got.InFlightPeak != readers || got.MissPeak < readers {
		t.Errorf("%d duplicates, at most %d at once, %d waited; want %d, %d and %d", got.Duplicates, got.InFlightPeak, got.MissPeak, 2*(readers-1), readers, readers)
	}
	if got.Stores.TTLMin != 60e9 || got.Stores.TTLMax != 60e9 {
		t.Errorf("values live %v to %v, want 60 s", got.Stores.TTLMin, got.Stores.TTLMax)
	}
	if r.gaps != 0 || r.skipped != 0 {
		t.Errorf("%d gaps and %d events skipped, want none", r.gaps, r.skipped)
	}
	var want []string
	if !r.logsDeletions() {
		want = []string{"The server does not log deletions, as it would from version 1.6.20 on, so a value that was deleted counts as dropped by the server."}
	}
	if diff := cmp.Diff(want, r.limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestWatchTellsWhyAValueWasGone(t *testing.T) {
	addr := cachetest.Memcached(t)
	r := watch(t, addr, memcached.WatchOptions{})
	c := dial(t, addr)
	deleted := signal.CauseEvicted // the server does not say by whom
	if r.logsDeletions() {
		deleted = signal.CauseInvalidated
	}
	tests := []struct {
		name, group string
		lose        func(c *client, key string) // makes the value go, and misses it
		want        signal.Cause
	}{
		{"it was never there", "never:*", func(c *client, key string) { c.get(key) }, signal.CauseCold},
		{"it expired", "brief:*", func(c *client, key string) {
			for c.set(key, 1); c.get(key); {
			}
		}, signal.CauseExpired},
		{"everything was flushed", "swept:*", func(c *client, key string) {
			c.set(key, 60)
			// A flush takes what was stored before the server's clock moved last.
			// It may drop the value before anybody looks; then it is gone without
			// a word.
			for c.do("flush_all"); c.get(key); c.do("flush_all") {
			}
		}, signal.CauseEvicted},
		{"it was deleted", "gone:*", func(c *client, key string) {
			c.set(key, 60)
			c.do("delete %s", key)
			c.get(key)
		}, deleted},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			key := strings.Replace(tc.group, "*", "1", 1)
			tc.lose(c, key)
			c.set(key, 60)
			r.until("recompute", func() bool { s := r.sum(tc.group); return s.Recomputes.Starts() > 0 })
			got := r.sum(tc.group)
			flushed := tc.want == signal.CauseEvicted && got.Recomputes.Started[signal.CauseInvalidated] == 1
			if got.Recomputes.Started[tc.want] != 1 && !flushed {
				t.Errorf("recomputes by cause: %v, want one %v", got.Recomputes.Started, tc.want)
			}
		})
	}
}

func TestWatchKnowsWhatIsNoReadersMiss(t *testing.T) {
	addr := cachetest.Memcached(t)
	r := watch(t, addr, memcached.WatchOptions{})
	c := dial(t, addr)
	c.set("a:1", 60) // looks for the key first
	c.do("add b:1 0 60 1\r\nx")
	c.do("add b:1 0 60 1\r\nx") // is refused
	c.do("append b:1 0 60 1\r\nx")
	c.do("ms c:1 1 T60\r\nx")
	if got := c.do("set huge:1 0 60 %d\r\n%s", 2<<20, strings.Repeat("x", 2<<20)); !strings.HasPrefix(got, "SERVER_ERROR") {
		t.Fatalf("a value of 2 MiB: %s", got)
	}
	c.get("miss:1")
	c.set("end:1", 60)
	r.heard("end:*", 1)
	for group, want := range map[string][2]uint64{"a:*": {0, 1}, "b:*": {0, 1}, "c:*": {0, 1}, "huge:*": {0, 0}, "miss:*": {1, 0}, "end:*": {0, 1}} {
		if got := r.sum(group); got.Lookups.Misses != want[0] || got.Stores.Count != want[1] {
			t.Errorf("%s: %d misses and %d stores, want %v", group, got.Lookups.Misses, got.Stores.Count, want)
		}
	}
}

// What looks like a miss and is none. It is documented; a version of the server
// that tells would be welcome.
func TestWatchTakesDeletesAndCountersForMisses(t *testing.T) {
	addr := cachetest.Memcached(t)
	r := watch(t, addr, memcached.WatchOptions{})
	c := dial(t, addr)
	c.do("delete a:1")
	c.do("incr b:1 1")
	c.do("touch c:1 60")
	c.set("end:1", 60)
	r.heard("end:*", 1)
	for _, group := range []string{"a:*", "b:*", "c:*"} {
		if got := r.sum(group); got.Lookups.Misses != 1 || got.Recomputes.Starts() != 0 {
			t.Errorf("%s: %d misses and %d recomputes, want a miss and none", group, got.Lookups.Misses, got.Recomputes.Starts())
		}
	}
}

func TestWatchSeesWhatAMetaLeaseSpares(t *testing.T) {
	addr := cachetest.Memcached(t)
	r := watch(t, addr, memcached.WatchOptions{})
	c := dial(t, addr)
	lookup := func(want, format string, args ...any) {
		t.Helper()
		if got := c.do(format, args...); !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q, want %q at its end", fmt.Sprintf(format, args...), got, want)
		}
	}
	// A key that is not there: one reader wins the right to recompute, the
	// others are told to wait.
	lookup(" W", "mg lease:1 N30 t v")
	for range 9 {
		lookup(" Z", "mg lease:1 N30 t v")
	}
	c.do("ms lease:1 1 T60\r\nx")
	// A value that is marked stale, and one that is refreshed ahead of time:
	// one reader wins, the others get what is there.
	c.set("stale:1", 60)
	c.do("md stale:1 I T30")
	lookup(" X W", "mg stale:1 t v")
	lookup(" Z X", "mg stale:1 t v")
	c.do("ms stale:1 1 T60\r\nx")
	c.set("early:1", 60)
	lookup(" W", "mg early:1 R90 t v")
	lookup(" Z", "mg early:1 R90 t v")
	c.do("ms early:1 1 T160\r\nx")

	r.heard("early:*", 2)
	for group, want := range map[string][4]uint64{"lease:*": {1, 1, 1, 0}, "stale:*": {0, 2, 0, 0}, "early:*": {0, 2, 0, 0}} {
		w := r.sum(group)
		if got := [4]uint64{w.Lookups.Misses, w.Stores.Count, w.Recomputes.Starts(), w.Duplicates}; got != want {
			t.Errorf("%s: misses, stores, recomputes and duplicates are %v, want %v", group, got, want)
		}
	}
}

func TestWatchSeesLocks(t *testing.T) {
	addr := cachetest.Memcached(t)
	r := watch(t, addr, memcached.WatchOptions{Locks: []string{"lock:{key}"}})
	a, b := dial(t, addr), dial(t, addr)
	lock := func(c *client, want string) {
		t.Helper()
		if got := c.do("add lock:feed:1 0 1 1\r\nx"); got != want {
			t.Fatalf("lock: %s, want %s", got, want)
		}
	}
	// Two miss; one takes the lock, stores and releases; the other is refused.
	a.get("feed:1")
	b.get("feed:1")
	lock(a, "STORED")
	lock(b, "NOT_STORED")
	a.set("feed:1", 60)
	a.do("delete lock:feed:1")
	got := r.heard("feed:*", 1)
	if l := got.Locks; l.Acquired != 1 || l.Holds != 1 || l.Lost != 0 {
		t.Errorf("a lock that was released: %+v", l)
	}
	if got.Recomputes.Starts() != 1 || got.Duplicates != 0 {
		t.Errorf("%d recomputes and %d duplicates, want one and none", got.Recomputes.Starts(), got.Duplicates)
	}
	// One takes the lock and dies; it runs out.
	lock(a, "STORED")
	for b.do("add lock:feed:1 0 60 1\r\nx") != "STORED" {
		r.ok()
	}
	b.set("feed:1", 60)
	if l := r.heard("feed:*", 2).Locks; l.Acquired != 3 || l.Holds != 2 || l.Lost != 1 {
		t.Errorf("a lock that ran out: %+v", l)
	}
}

func TestWatchTakesKeysOfAnyBytes(t *testing.T) {
	addr := cachetest.Memcached(t)
	r := watch(t, addr, memcached.WatchOptions{RawKeys: true})
	c := dial(t, addr)
	c.do("ms AAEg/w== 2 b T60\r\nhi") // 00 01 20 ff
	c.set("k%25,=:/\u00e9", 60)
	c.set(strings.Repeat("k", 250), 60)
	r.until("keys", func() bool { return len(r.windows) >= 3 })
	var got []string
	for _, w := range r.windows {
		got = append(got, w.Key.Text)
	}
	want := []string{"\x00\x01 \uFFFD", "k%25,=:/\u00e9", strings.Repeat("k", 250)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
