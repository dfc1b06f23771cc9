package redis_test

import (
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/probetest"
	"github.com/stampede-exporter/stampede-exporter/probes/redis"
)

// maker makes a probe of the server at addr.
type maker = func(addr string, o redis.Options) (probes.Probe, error)

// TestProbesKeepTheContract holds every probe of a Redis to what runners count
// on.
func TestProbesKeepTheContract(t *testing.T) {
	kinds := map[string]struct {
		make maker
		keys int
	}{
		"info": {func(addr string, o redis.Options) (probes.Probe, error) { return redis.Info([]string{addr}, "feed", o) }, 0},
		"keyspace": {func(addr string, o redis.Options) (probes.Probe, error) {
			return redis.Keyspace([]string{addr}, "feed", o, redis.KeyspaceOptions{RawKeys: true})
		}, len(probetest.HostileKeys())},
		"expiry": {func(addr string, o redis.Options) (probes.Probe, error) {
			return redis.Expiry([]string{addr}, "feed", o, redis.ExpiryOptions{})
		}, 0},
		"hotkeys": {func(addr string, o redis.Options) (probes.Probe, error) {
			return redis.HotKeys([]string{addr}, "feed", o, redis.HotKeysOptions{})
		}, 0},
	}
	for name, p := range kinds {
		t.Run(name, func(t *testing.T) {
			s := cachetest.RedisServer(t, "--notify-keyspace-events", "Eg$xemhlsz", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lfu")
			locked := cachetest.RedisWith(t, "--requirepass", "another")
			probetest.Run(t, probetest.Case{
				New: func(t testing.TB) probes.Probe { return made(t, p.make, s.Addr(), redis.Options{}) },
				At:  func(t testing.TB, addr string) probes.Probe { return made(t, p.make, addr, redis.Options{}) },
				WrongPassword: func(t testing.TB, pw string) probes.Probe {
					return made(t, p.make, locked, redis.Options{Password: pw})
				},
				Break:   func(testing.TB) { s.Kill() },
				Repair:  func(testing.TB) { s.Restart() },
				Clients: func(t testing.TB) int { return clients(t, s.Addr()) },
				Touch:   func(t testing.TB, key []byte) { touch(t, s.Addr(), string(key)) },
				Keys:    p.keys,
			})
		})
	}
}

func made(t testing.TB, make maker, addr string, o redis.Options) probes.Probe {
	t.Helper()
	p, err := make(addr, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// clients returns how many connections a server counts, without that of who
// asks.
func clients(t testing.TB, addr string) int {
	return strings.Count(cachetest.Command(t, addr, "CLIENT", "LIST"), "\n") - 1
}

func touch(t testing.TB, addr, key string) {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	defer c.Close()
	_ = c.Get(t.Context(), key).Err() // it is not there
	if err := c.Set(t.Context(), key, "x", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
}
