package goredis_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// client is what the clients of one and of many servers have in common.
type client interface {
	redis.Cmdable
	AddHook(redis.Hook)
	Close() error
}

func TestClientsOfManyServersAreCountedOnce(t *testing.T) {
	tests := []struct {
		name string
		make func(*testing.T) client
	}{
		{"cluster of three", func(t *testing.T) client { return redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster(t)}) }},
		{"ring of two", func(t *testing.T) client {
			return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": cachetest.Redis(t), "b": cachetest.Redis(t)}})
		}},
		{"behind Sentinel", func(t *testing.T) client {
			return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "main", SentinelAddrs: []string{sentinel(t)}})
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWatch(t, goredis.Options{})
			rdb := hooked(t, tc.make(t), w)
			const keys = 50 // enough to be on every server
			for i := range keys {
				readThrough(t, rdb, w, fmt.Sprintf("feed:%d", i))
			}
			if _, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				for i := range 2 * keys {
					p.Get(t.Context(), fmt.Sprintf("feed:%d", i))
				}
				return nil
			}); err != redis.Nil {
				t.Errorf("pipeline: %v, want the nil reply of its first miss", err)
			}
			if _, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
				p.Set(t.Context(), "{tx}a", "v", time.Minute)
				p.Get(t.Context(), "{tx}a")
				p.Get(t.Context(), "{tx}b")
				return nil
			}); err != redis.Nil {
				t.Errorf("transaction: %v, want the nil reply of its miss", err)
			}

			want := signal.Lookups{Hits: keys + keys + 1, Misses: keys + keys + 1}
			if diff := cmp.Diff(want, w.lookups()); diff != "" {
				t.Errorf("lookups (-want +got):\n%s", diff)
			}
			got := w.key("feed:7")
			if got.Recomputes.Starts() != 1 || got.Busy != time.Second || got.Stores.TTLMax != time.Minute {
				t.Errorf("recomputes %d, busy %v, TTL %v; want 1, 1s, 1m0s", got.Recomputes.Starts(), got.Busy, got.Stores.TTLMax)
			}
		})
	}
}

// readThrough misses key, spends a second on it, stores it and finds it.
func readThrough(t *testing.T, rdb client, w *watch, key string) {
	t.Helper()
	if err := rdb.Get(t.Context(), key).Err(); err != redis.Nil {
		t.Errorf("get %s: %v, want nil reply", key, err)
	}
	w.clock.Step(time.Second)
	if err := rdb.Set(t.Context(), key, "v", time.Minute).Err(); err != nil {
		t.Errorf("set %s: %v", key, err)
	}
	if err := rdb.Get(t.Context(), key).Err(); err != nil {
		t.Errorf("get %s: %v", key, err)
	}
}

func TestRedirectedCommandIsOneLookup(t *testing.T) {
	w := newWatch(t, goredis.Options{})
	addrs := cluster(t)
	rdb := hooked(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs}), w)
	var sent counter
	rdb.OnNewNode(func(node *redis.Client) { node.AddHook(&sent) })
	const key = "k"
	if err := rdb.Get(t.Context(), key).Err(); err != redis.Nil {
		t.Fatal(err)
	}

	// Move the key's slot to another server behind the client's back.
	owner, err := rdb.MasterForKey(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	heir := addrs[0]
	if heir == owner.Options().Addr {
		heir = addrs[1]
	}
	slot := rdb.ClusterKeySlot(t.Context(), key).Val()
	id := plainClient(t, heir).Do(t.Context(), "CLUSTER", "MYID").Val()
	for _, addr := range addrs {
		must(t, plainClient(t, addr).Do(t.Context(), "CLUSTER", "SETSLOT", slot, "NODE", id))
	}

	before := sent.gets.Load()
	if err := rdb.Get(t.Context(), key).Err(); err != redis.Nil {
		t.Fatal(err)
	}
	if n := sent.gets.Load() - before; n != 2 {
		t.Errorf("the second lookup was sent %d times, want 2: it was not redirected", n)
	}
	if diff := cmp.Diff(signal.Lookups{Misses: 2}, w.lookups()); diff != "" {
		t.Errorf("lookups (-want +got):\n%s", diff)
	}
}

// counter is a hook that counts the lookups that are sent to a server.
type counter struct{ gets atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "get" {
			c.gets.Add(1)
		}
		return next(ctx, cmd)
	}
}
func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
