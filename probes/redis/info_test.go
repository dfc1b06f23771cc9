package redis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/redis"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestMain(m *testing.M) {
	logging.Disable() // the client reports servers that tests take away
	goleak.VerifyTestMain(m)
}

// probe returns a probe of addr that is closed when t ends.
func probe(t *testing.T, addr string, o redis.Options) probes.Probe {
	t.Helper()
	p, err := redis.Info([]string{addr}, "feed", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// ask runs p once and returns its only record.
func ask(t *testing.T, p probes.Probe) *signal.Vitals {
	t.Helper()
	res, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Windows) != 0 || len(res.Vitals) != 1 {
		t.Fatalf("got %d windows and %d vitals, want one vitals", len(res.Windows), len(res.Vitals))
	}
	return res.Vitals[0]
}

// dial returns a client of the server at addr.
func dial(t *testing.T, addr string) *goredis.Client {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	t.Cleanup(func() { c.Close() })
	return c
}

// must fails t if a command failed, other than by finding nothing.
func must(t *testing.T, cmd goredis.Cmder) {
	t.Helper()
	if err := cmd.Err(); err != nil && !errors.Is(err, goredis.Nil) {
		t.Fatal(err)
	}
}

func TestInfoCountsWhatARealServerCounts(t *testing.T) {
	addr := cachetest.Redis(t)
	c, ctx := dial(t, addr), t.Context()
	p := probe(t, addr, redis.Options{})
	before := ask(t, p)

	must(t, c.Set(ctx, "a", "1", 0))
	for range 3 {
		must(t, c.Get(ctx, "a"))
	}
	for range 2 {
		must(t, c.Get(ctx, "b"))
	}
	// A key that lives one millisecond is gone as soon as a read misses it.
	hits, misses := uint64(3), uint64(2)
	must(t, c.Set(ctx, "c", "1", time.Millisecond))
	for c.Get(ctx, "c").Err() == nil {
		hits++
	}
	misses++

	got := ask(t, p)
	want := &signal.Vitals{
		Source:  signal.Source{Service: "redis", Instance: addr},
		Cache:   "feed",
		Lookups: signal.Lookups{Hits: hits, Misses: misses},
		Expired: 1,
		Server:  signal.Server{Sets: 2, Keys: 1},
		Probe:   true,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(signal.Vitals{}, "At", "Uptime", "Source.Build")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.At <= before.At {
		t.Errorf("the second record is of %v, the first of %v", got.At.Time(), before.At.Time())
	}
	if got.Build == "" {
		t.Error("no version")
	}
}

func TestInfoCountsFlushesAndClientsThatWait(t *testing.T) {
	addr := cachetest.Redis(t)
	c, ctx := dial(t, addr), t.Context()
	p := probe(t, addr, redis.Options{})
	must(t, c.FlushDB(ctx))
	must(t, c.FlushAll(ctx))
	if got := ask(t, p).Server.Flushes; got != 2 {
		t.Errorf("flushed %d times, want 2", got)
	}
	waiting, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		dial(t, addr).BLPop(waiting, 0, "queue")
	}()
	for ask(t, p).Server.Blocked == 0 {
		if ctx.Err() != nil {
			t.Fatal("the client that waits was never counted")
		}
	}
	must(t, c.RPush(ctx, "queue", "x"))
	cancel()
	<-gone
}

func TestTimesToLiveThatWereAskedForAreNoHits(t *testing.T) {
	addr := cachetest.Redis(t)
	c, ctx := dial(t, addr), t.Context()
	must(t, c.Set(ctx, "a", "1", time.Hour))
	must(t, c.Get(ctx, "a"))
	for range 10 {
		must(t, c.PTTL(ctx, "a"))
	}
	if got := ask(t, probe(t, addr, redis.Options{})).Lookups; got != (signal.Lookups{Hits: 1}) {
		t.Errorf("got %+v, want one hit", got)
	}
}

func TestInfoCountsEvictions(t *testing.T) {
	addr := cachetest.RedisWith(t, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru")
	c, ctx := dial(t, addr), t.Context()
	value := strings.Repeat("x", 1<<20)
	for _, key := range []string{"a", "b", "c", "d"} {
		must(t, c.Set(ctx, key, value, 0))
	}
	// A server evicts before any command, so the figure is between two others.
	gone := func() uint64 {
		left, err := c.DBSize(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		return uint64(4 - left)
	}
	low := gone()
	got := ask(t, probe(t, addr, redis.Options{})).Evicted
	if high := gone(); got < low || got > high || got == 0 {
		t.Errorf("got %d evicted keys, want %d to %d, and more than none", got, low, high)
	}
}

func TestInfoLogsIn(t *testing.T) {
	addr := cachetest.RedisWith(t, "--requirepass", "open sesame")
	tests := []struct {
		name string
		o    redis.Options
		err  string
	}{
		{"the right password is accepted", redis.Options{Password: "open sesame"}, ""},
		{"the right password of a named user is accepted", redis.Options{Username: "default", Password: "open sesame"}, ""},
		{"a wrong password is an error", redis.Options{Password: "sesame"}, "WRONGPASS"},
		{"no password is an error", redis.Options{}, "NOAUTH"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := probe(t, addr, tc.o).Run(t.Context())
			if tc.err == "" && err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, want an error that mentions %q", err, tc.err)
			}
			if err != nil && tc.o.Password != "" && strings.Contains(err.Error(), tc.o.Password) {
				t.Errorf("the error gives the password away: %v", err)
			}
		})
	}
}

// serve accepts connections for as long as t runs and hands each to handle.
func serve(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			handle(conn)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

func TestInfoGivesUpOnAServerThatDoesNotAnswer(t *testing.T) {
	addr := serve(t, func(net.Conn) {})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := probe(t, addr, redis.Options{}).Run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a deadline exceeded", err)
	}
}

func TestRunnerTellsASilentServerFromOneThatIsGone(t *testing.T) {
	silent := serve(t, func(net.Conn) {})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	l.Close()
	for addr, want := range map[string]probes.Reason{silent: probes.TimedOut, gone: probes.Failed} {
		p, err := redis.Info([]string{addr}, "feed", redis.Options{Interval: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got probes.Report
		r, err := probes.New([]probes.Probe{p}, probes.Options{Report: func(r probes.Report) {
			got = r
			cancel()
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
		if got.Reason != want || got.Probe != redis.InfoName || got.Target != addr {
			t.Errorf("got %+v, want reason %q", got, want)
		}
	}
}

func TestInfoRefusesWhatIsNotRedis(t *testing.T) {
	answers := map[string]string{
		"another protocol": "HTTP/1.1 400 Bad Request\r\n\r\n",
		"an empty answer":  "$0\r\n\r\n",
		"half an answer":   "$30\r\n# Server\r\n",
		"an error":         "-ERR unknown command\r\n",
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, func(c net.Conn) {
				_, _ = c.Write([]byte(answer))
				_ = c.(*net.TCPConn).CloseWrite()
			})
			if res, err := probe(t, addr, redis.Options{}).Run(t.Context()); err == nil {
				t.Errorf("got %+v and no error", res.Vitals[0])
			}
		})
	}
}

func TestInfoSpeaksTLSIfTold(t *testing.T) {
	hello := make(chan byte, 1)
	addr := serve(t, func(c net.Conn) {
		var first [1]byte
		_, _ = c.Read(first[:])
		select {
		case hello <- first[0]:
		default:
		}
		c.Close()
	})
	p := probe(t, addr, redis.Options{TLS: &tls.Config{ServerName: "cache.example"}})
	if _, err := p.Run(t.Context()); err == nil {
		t.Error("no error from a server that hangs up")
	}
	const handshake = 22 // RFC 8446, section 5.1
	if got := <-hello; got != handshake {
		t.Errorf("the first byte is %d, want %d, a TLS handshake", got, handshake)
	}
}

func TestInfoComesBackWithTheServer(t *testing.T) {
	answers := 0
	addr := serve(t, func(c net.Conn) {
		if answers++; answers > 1 {
			_, _ = c.Write([]byte("$9\r\n# nothing\r\n"))
		}
		c.Close()
	})
	p := probe(t, addr, redis.Options{})
	for range 2 {
		if _, err := p.Run(t.Context()); err == nil {
			t.Error("no error from a server that hangs up")
		}
	}
	if answers < 2 {
		t.Errorf("the server was asked %d times, want a new connection for the second run", answers)
	}
}

func TestInfoNamesWhatItReports(t *testing.T) {
	addr := cachetest.Redis(t)
	p := probe(t, addr, redis.Options{Name: "primary", Service: "sessions", Interval: 2 * time.Second, Timeout: time.Second})
	if p.Name != "primary" || p.Target != addr || p.Interval != 2*time.Second || p.Timeout != time.Second {
		t.Errorf("got probe %q of %q every %v within %v", p.Name, p.Target, p.Interval, p.Timeout)
	}
	if v := ask(t, p); v.Service != "sessions" || v.Cache != "feed" {
		t.Errorf("got service %q, cache %q", v.Service, v.Cache)
	}
}

func TestInfoRefusesEmptyNames(t *testing.T) {
	for _, tc := range []struct{ name, addr, cache string }{
		{"no address", "", "feed"},
		{"no cache", "127.0.0.1:6379", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := redis.Info([]string{tc.addr}, tc.cache, redis.Options{}); err == nil {
				t.Error("no error")
			}
		})
	}
}
