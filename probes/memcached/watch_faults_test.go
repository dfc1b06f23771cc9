package memcached_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes/memcached"
)

// through returns a probe that listens through a proxy.
func through(t testing.TB, addr string) (*run, *cachetest.Proxy) {
	t.Helper()
	way := cachetest.NewProxy(t, addr)
	return watch(t, way.Addr(), memcached.WatchOptions{}), way
}

func TestWatchComesBackWithTheServer(t *testing.T) {
	server := cachetest.MemcachedServer(t)
	r := watch(t, server.Addr(), memcached.WatchOptions{})
	stampede(t, server.Addr(), "feed:1", 5, 60)
	r.heard("feed:*", 5)

	server.Kill()
	r.until("failure", func() bool { return r.err != nil })
	if r.gaps != 1 {
		t.Errorf("%d gaps, want one", r.gaps)
	}
	server.Restart()
	r.listening()
	stampede(t, server.Addr(), "feed:1", 5, 60)
	if got := r.heard("feed:*", 10); got.Duplicates != 2*4 {
		t.Errorf("%d duplicates, want 4 before and 4 after", got.Duplicates)
	}
	if r.gaps != 1 {
		t.Errorf("%d gaps, want one", r.gaps)
	}
}

func TestWatchForgetsReadersWhoseStoreItMayHaveMissed(t *testing.T) {
	addr := cachetest.Memcached(t)
	r, way := through(t, addr)
	c := dial(t, addr)
	for range 3 {
		c.get("feed:1")
	}
	r.until("misses", func() bool { return r.sum("feed:*").Lookups.Misses == 3 })
	way.Cut()
	r.until("failure", func() bool { return r.err != nil })
	way.Mend()
	r.listening()
	c.set("feed:1", 60)
	if got := r.heard("feed:*", 1); got.Recomputes.Starts() != 0 {
		t.Errorf("%d recomputes: nobody knows what a store ends after a gap", got.Recomputes.Starts())
	}
}

func TestWatchFailsWhileTheServerIsAway(t *testing.T) {
	r, way := through(t, cachetest.Memcached(t))
	way.Cut()
	r.until("failure", func() bool { return r.err != nil })
	for range 3 {
		if err := r.once(); err == nil {
			t.Error("no error")
		}
	}
	if r.gaps != 1 {
		t.Errorf("%d gaps, want one: nothing was heard since", r.gaps)
	}
}

func TestWatchLosesNothingWhileTheNetworkStalls(t *testing.T) {
	addr := cachetest.Memcached(t)
	r, way := through(t, addr)
	way.Freeze()
	stampede(t, addr, "feed:1", 5, 60)
	if err := r.once(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a deadline exceeded", err)
	}
	way.Thaw()
	if got := r.heard("feed:*", 5); got.Duplicates != 4 {
		t.Errorf("%d duplicates, want 4", got.Duplicates)
	}
	if r.gaps != 0 {
		t.Errorf("%d gaps, want none", r.gaps)
	}
}

func TestWatchCountsLinesTheServerLeftOutAsAGap(t *testing.T) {
	// One thread keeps 64 KiB of lines, which is some 600.
	addr := cachetest.MemcachedWith(t, "-t", "1")
	r := watch(t, addr, memcached.WatchOptions{})
	c := dial(t, addr)
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "get many:%d\r\n", i)
	}
	many.WriteString("mn")
	if _, err := fmt.Fprintf(c, "%s\r\n", many.String()); err != nil {
		t.Fatal(err)
	}
	for c.line() != "MN" {
	}
	r.until("gap", func() bool { return r.gaps > 0 })
	if got := r.sum("many:*").Lookups.Misses; got >= 5000 {
		t.Errorf("it has heard of %d misses: there was room for fewer", got)
	}
	if !strings.Contains(strings.Join(r.limits, " "), "leaves lines out of its log") {
		t.Errorf("limits are %q", r.limits)
	}
	c.set("end:1", 60)
	r.heard("end:*", 1)
}

func TestWatchHangsUpOnALogBeyondItsBudget(t *testing.T) {
	addr := cachetest.Memcached(t)
	r := watch(t, addr, memcached.WatchOptions{MaxLinesPerSecond: 100})
	c := dial(t, addr)
	gets := func(n int) {
		for range n {
			c.get("feed:1")
		}
	}
	gets(600) // five seconds' worth is free
	r.until("hanging up", func() bool { return !r.vitals.Watch })
	if err := r.err; err != nil {
		t.Errorf("it fails with %v: it does what it was told to", err)
	}
	if got := strings.Join(r.limits, " "); !strings.Contains(got, "more than 100 lines a second") {
		t.Errorf("limits are %q", r.limits)
	}
	written := func() string { return stat(t, addr, "log_worker_written") }
	for before := ""; before != written(); gets(1) { // the server notices when it writes the next line
		before = written()
	}
	gets(50)
	r.ok().ok()
	if r.skipped < 50 || r.gaps != 1 {
		t.Errorf("%d events skipped and %d gaps, want at least 50 and one", r.skipped, r.gaps)
	}
	r.listening()
}

// stat returns one of the counters of the server at addr.
func stat(t testing.TB, addr, name string) string {
	t.Helper()
	c := dial(t, addr)
	defer c.Close()
	value := ""
	for line := c.do("stats"); line != "END"; line = c.line() {
		if rest, ok := strings.CutPrefix(line, "STAT "+name+" "); ok {
			value = rest
		}
	}
	return value
}

func TestWatchSaysThatTheServerDoesNotAllowIt(t *testing.T) {
	addr := cachetest.MemcachedWith(t, "-W")
	p, err := memcached.Watch(addr, "feed", memcached.Options{}, memcached.WatchOptions{})
	r := running(t, p, err)
	r.until("refusal", func() bool { return r.err != nil })
	if !strings.Contains(r.err.Error(), "watch commands not allowed") {
		t.Errorf("got %v", r.err)
	}
}

func TestWatchWaitsForAnAnswerThatIsLate(t *testing.T) {
	// Where somebody else watches, the answer comes with the next piece of the
	// log, up to a second later.
	addr := cachetest.Memcached(t)
	other := watch(t, addr, memcached.WatchOptions{})
	r := watch(t, addr, memcached.WatchOptions{})
	if r.gaps != 0 || other.gaps != 0 {
		t.Errorf("%d and %d gaps, want none", r.gaps, other.gaps)
	}
}

func TestWatchRefusesALogThatIsNone(t *testing.T) {
	const stats = "STAT uptime 5\r\nSTAT get_hits 0\r\nSTAT get_misses 0\r\nSTAT evictions 0\r\nSTAT curr_items 0\r\nEND\r\n"
	addr := serve(t, func(c net.Conn) {
		buf := make([]byte, 1024)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			answer := stats
			if strings.HasPrefix(string(buf[:n]), "watch") {
				answer = "OK\r\nnonsense\r\n"
			}
			if _, err := c.Write([]byte(answer)); err != nil {
				return
			}
		}
	})
	p, err := memcached.Watch(addr, "feed", memcached.Options{}, memcached.WatchOptions{})
	r := running(t, p, err)
	r.until("refusal", func() bool { return r.err != nil })
	if !strings.Contains(r.err.Error(), "none of a memcached's log") {
		t.Errorf("got %v", r.err)
	}
}

func TestWatchOptionsAreChecked(t *testing.T) {
	for want, w := range map[string]memcached.WatchOptions{
		"MaxLinesPerSecond is 99":      {MaxLinesPerSecond: 99},
		"MaxLinesPerSecond is 1000001": {MaxLinesPerSecond: 1_000_001},
		"MaxKeys is 63":                {MaxKeys: 63},
		"MaxKeys is 10000001":          {MaxKeys: 10_000_001},
		"GiveUp is 1ms":                {GiveUp: time.Millisecond},
		`lock pattern "lock"`:          {Locks: []string{"lock"}},
	} {
		if _, err := memcached.Watch("localhost:11211", "feed", memcached.Options{}, w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
