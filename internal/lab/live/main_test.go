package live_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

func TestMain(m *testing.M) {
	logging.Disable() // servers that are not there are what some tests are about
	goleak.VerifyTestMain(m)
}

// hotKey is a scenario without an end about one key that four instances read. What
// is given of the origin, the cache and the events is part of it.
func hotKey(t *testing.T, about, origin, cache, events string) *scenario.Scenario {
	t.Helper()
	return parse(t, strings.NewReplacer("ABOUT", about, "ORIGIN", origin, "CACHE", cache, "EVENTS", events).Replace(`
name: hot-key
about: ABOUT
duration: 1h
fleet: {instances: 4}
origins:
  db: {ORIGIN}
caches:
  feed: {origin: db, ttl: 1s, recompute: {fixed: 200ms}, CACHE}
workloads:
  - {cache: feed, rate: 50}
events:
  - {at: 0s, do: warm, cache: feed}
EVENTS
`))
}

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	sc, err := scenario.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// client is one of somebody else's.
func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	t.Cleanup(func() {
		if err := rdb.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Error(err)
		}
	})
	return rdb
}

// left returns the keys on the server.
func left(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	keys, err := rdb.Keys(context.Background(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
