package goredis_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
)

func Example() {
	server, err := miniredis.Run()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	monitor, err := instrument.New("feed", instrument.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer monitor.Close()
	hook, err := goredis.NewHook(monitor, goredis.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	rdb.AddHook(hook)

	// The code of the application stays as it is.
	ctx := context.Background()
	if _, err := rdb.Get(ctx, "feed:42").Result(); err == redis.Nil {
		value := "made at great cost"
		rdb.Set(ctx, "feed:42", value, time.Minute)
	}
	rdb.Get(ctx, "feed:42")

	for _, g := range monitor.Snapshot().Groups {
		if g.Lookups.Total() > 0 {
			fmt.Println(g.Group, "hits:", g.Lookups.Hits, "misses:", g.Lookups.Misses, "recomputes:", g.Recomputes.Starts())
		}
	}
	// Output: feed:* hits: 1 misses: 1 recomputes: 1
}

// Say which keys are locks, and a lock's figures stand beside the recomputes it
// guards.
func ExampleOptions_lockKey() {
	options := goredis.Options{
		LockKey: func(key string) (guards string, ok bool) { return strings.CutPrefix(key, "lock:") },
	}
	guards, ok := options.LockKey("lock:feed:42")
	fmt.Println(guards, ok)
	// Output: feed:42 true
}
