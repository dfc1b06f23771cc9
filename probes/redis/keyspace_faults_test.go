package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes/redis"
)

// recovers runs the probe until a run succeeds, and fails if none does.
func (l *listener) recovers() {
	l.t.Helper()
	var err error
	for range 200 {
		if err = l.run(200 * time.Millisecond); err == nil {
			return
		}
		pause(l.t, 50*time.Millisecond)
	}
	l.t.Fatalf("it does not recover: %v", err)
}

// pause waits, as the runner does between runs.
func pause(t *testing.T, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
}

// sees fails unless the probe sees a rebuild of the key that do makes.
func (l *listener) sees(key string, do func(key string)) {
	l.t.Helper()
	delete(l.windows, key)
	do(key)
	for range 20 {
		if err := l.run(200 * time.Millisecond); err != nil {
			l.t.Fatal(err)
		}
		if w := l.windows[key]; w != nil && w.Recomputes.Starts() == 1 {
			return
		}
	}
	l.t.Fatalf("it does not see what happens to %q: %+v", key, l.windows[key])
}

// rebuild misses a key and stores it.
func rebuild(t *testing.T, c goredis.Cmdable) func(string) {
	return func(key string) {
		t.Helper()
		must(t, c.Get(t.Context(), key))
		must(t, c.Set(t.Context(), key, "x", time.Minute))
	}
}

func TestKeyspaceRecoversFrom(t *testing.T) {
	const flags = "Eg$xemhlsz"
	tests := []struct {
		name  string
		fault func(*testing.T, *cachetest.Server, *cachetest.Proxy)
		mend  func(*testing.T, *cachetest.Server, *cachetest.Proxy)
	}{
		{"a restart of the server",
			func(_ *testing.T, s *cachetest.Server, _ *cachetest.Proxy) { s.Kill() },
			func(_ *testing.T, s *cachetest.Server, _ *cachetest.Proxy) { s.Restart() }},
		{"a network that is cut",
			func(_ *testing.T, _ *cachetest.Server, p *cachetest.Proxy) { p.Cut() },
			func(_ *testing.T, _ *cachetest.Server, p *cachetest.Proxy) { p.Mend() }},
		{"a network that loses everything, and says nothing",
			func(_ *testing.T, _ *cachetest.Server, p *cachetest.Proxy) { p.Freeze() },
			func(_ *testing.T, _ *cachetest.Server, p *cachetest.Proxy) { p.Thaw() }},
		{"a server that throws it out",
			func(t *testing.T, s *cachetest.Server, _ *cachetest.Proxy) {
				cachetest.Command(t, s.Addr(), "CLIENT", "KILL", "TYPE", "pubsub")
			}, func(*testing.T, *cachetest.Server, *cachetest.Proxy) {}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := cachetest.RedisServer(t, "--notify-keyspace-events", flags)
			way := cachetest.NewProxy(t, s.Addr())
			l := listen(t, []string{way.Addr()}, redis.Options{}, redis.KeyspaceOptions{})
			if err := l.run(200 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			c := dial(t, s.Addr())
			l.sees("before", rebuild(t, c))
			must(t, c.Get(t.Context(), "during")) // is heard, or is not
			tc.fault(t, s, way)
			failed := false
			for range 30 {
				if err := l.run(200 * time.Millisecond); err != nil {
					failed = true
					break
				}
			}
			if !failed || l.all.Gaps != 1 {
				t.Errorf("failed %v, %d gaps, want a run that fails, and a gap", failed, l.all.Gaps)
			}
			tc.mend(t, s, way)
			l.recovers()
			must(t, c.Set(t.Context(), "during", "x", 0))
			l.sees("after", rebuild(t, c))
			if w := l.windows["during"]; w != nil && w.Recomputes.Starts() != 0 {
				t.Error("a miss before the gap and a store after it are taken for a recompute")
			}
			if l.all.Gaps != 1 {
				t.Errorf("%d gaps, want 1", l.all.Gaps)
			}
		})
	}
}

func TestKeyspaceSurvivesAServerThatDropsSlowSubscribers(t *testing.T) {
	s := cachetest.RedisServer(t, "--notify-keyspace-events", "Eg$xemhlsz", "--client-output-buffer-limit", "pubsub 64kb 64kb 1")
	l := listen(t, []string{s.Addr()}, redis.Options{}, redis.KeyspaceOptions{})
	if err := l.run(200 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	c := dial(t, s.Addr())
	key := strings.Repeat("k", 32<<10)
	for range 20 { // more than sockets hold, while nobody reads
		pipe := c.Pipeline()
		for i := range 50 {
			pipe.Get(t.Context(), fmt.Sprint(key, i))
		}
		if _, err := pipe.Exec(t.Context()); err != nil && !errors.Is(err, goredis.Nil) {
			t.Fatal(err)
		}
	}
	failed := false
	for range 20 {
		if failed = l.run(100*time.Millisecond) != nil; failed {
			break
		}
	}
	if !failed || l.all.Gaps != 1 {
		t.Fatalf("failed %v, %d gaps: want the server to drop it, and a gap", failed, l.all.Gaps)
	}
	l.recovers()
	l.sees("after", rebuild(t, c))
}

func TestKeyspaceEndsARunWhenItIsToldTo(t *testing.T) {
	l := listen(t, []string{published(t)}, redis.Options{}, redis.KeyspaceOptions{})
	if err := l.run(200 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	done := make(chan error)
	go func() {
		_, err := l.p.Run(ctx)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

func TestKeyspaceFollowsACluster(t *testing.T) {
	c := cachetest.RedisCluster(t, 3, true, "--notify-keyspace-events", "Eg$xemhlsz")
	client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { client.Close() })
	l := listen(t, c.Addrs()[:1], redis.Options{Mode: redis.Cluster}, redis.KeyspaceOptions{})
	l.recovers()
	for _, key := range []string{"a", "b", "c"} { // one on each
		l.sees(key, rebuild(t, client))
	}
	if len(l.all.Vitals) != 3 {
		t.Fatalf("%d vitals, want one of each primary", len(l.all.Vitals))
	}

	t.Log("hand the slots of one primary over to its replica")
	cachetest.Command(t, c.Replicas[0].Addr(), "CLUSTER", "FAILOVER")
	heir := c.Replicas[0].Addr() + "#keyspace"
	l.until(func() bool { return l.tells(heir) })
	if l.all.Gaps == 0 {
		t.Error("no gap was counted though another server took over")
	}
	settled(t, client)
	for _, key := range []string{"d", "e", "f"} {
		l.sees(key, rebuild(t, client))
	}

	t.Log("kill another")
	c.Primaries[1].Kill()
	heir = c.Replicas[1].Addr() + "#keyspace"
	l.until(func() bool { return l.tells(heir) })
	settled(t, client)
	for _, key := range []string{"g", "h", "i"} {
		l.sees(key, rebuild(t, client))
	}
}

// until runs the probe until a run succeeds and ok.
func (l *listener) until(ok func() bool) {
	l.t.Helper()
	var err error
	for range 300 {
		if err = l.run(200 * time.Millisecond); err == nil && ok() {
			return
		}
		pause(l.t, 20*time.Millisecond)
	}
	l.t.Fatalf("it did not come to that: %v", err)
}

// tells reports whether the latest vitals are also of that instance.
func (l *listener) tells(instance string) bool {
	for _, v := range l.all.Vitals {
		if v.Instance == instance && !v.Closing {
			return true
		}
	}
	return false
}

// settled waits until the client reaches every slot again.
func settled(t *testing.T, c *goredis.ClusterClient) {
	t.Helper()
	for range 300 {
		c.ReloadState(t.Context())
		if c.ForEachMaster(t.Context(), func(ctx context.Context, m *goredis.Client) error { return m.Ping(ctx).Err() }) == nil {
			return
		}
		pause(t, 50*time.Millisecond)
	}
	t.Fatal("the cluster does not settle")
}

func TestKeyspaceFollowsSentinel(t *testing.T) {
	const flags = "Eg$xemhlsz"
	primary := cachetest.RedisServer(t, "--notify-keyspace-events", flags)
	host, port, _ := net.SplitHostPort(primary.Addr())
	replica := cachetest.RedisServer(t, "--notify-keyspace-events", flags, "--replicaof", host+" "+port)
	sentinel := cachetest.RedisSentinel(t, "cache", primary.Addr())
	l := listen(t, []string{sentinel.Addr()}, redis.Options{Mode: redis.Sentinel, Master: "cache"}, redis.KeyspaceOptions{})
	l.recovers()
	l.sees("before", rebuild(t, dial(t, primary.Addr())))

	sees := func() bool {
		return strings.Contains(cachetest.Command(t, sentinel.Addr(), "INFO", "sentinel"), "slaves=1")
	}
	for range 600 { // Sentinel asks the primary for its replicas every ten seconds
		if sees() {
			break
		}
		pause(t, 50*time.Millisecond)
	}
	primary.Kill()
	l.until(func() bool { return l.tells(replica.Addr() + "#keyspace") })
	if l.all.Gaps == 0 {
		t.Error("no gap was counted though another server took over")
	}
	l.sees("after", rebuild(t, dial(t, replica.Addr())))

	wrong := listen(t, []string{sentinel.Addr()}, redis.Options{Mode: redis.Sentinel, Master: "other"}, redis.KeyspaceOptions{})
	if err := wrong.run(time.Second); err == nil || !strings.Contains(err.Error(), `no master "other"`) {
		t.Errorf("got %v, want that it is not known", err)
	}
}
