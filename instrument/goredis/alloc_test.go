package goredis_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
)

// healthy are commands that find what they look for, which is what a cache does
// most of the time.
var healthy = []struct {
	name string
	cmd  redis.Cmder
}{
	{"GET", str("get", "feed:12345678")},
	{"GET in capitals", anything("v", "GET", "feed:12345678")},
	{"GETEX", str("getex", "feed:12345678")},
	{"MGET", list([]any{"v", "w"}, "mget", "feed:1", "feed:2")},
	{"HGET", str("hget", "feed:12345678", "f")},
	{"HMGET", list([]any{"v", nil}, "hmget", "feed:12345678", "f", "g")},
	{"HGETALL", hash(map[string]string{"f": "v"}, "hgetall", "feed:12345678")},
	{"a command of no interest", number(1, "zadd", "feed:12345678", 1, "v")},
}

func TestHealthyCacheAllocatesNothing(t *testing.T) {
	for mode, o := range map[string]goredis.Options{"guessed": {}, "declared": {LockKey: isLock}} {
		w := newWatch(t, o)
		ctx := t.Context()
		process := w.hook.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
		pipeline := w.hook.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return nil })
		for _, tc := range healthy {
			t.Run(tc.name+", "+mode, func(t *testing.T) {
				if n := testing.AllocsPerRun(1000, func() { process(ctx, tc.cmd) }); n != 0 {
					t.Errorf("%v allocations per command, want none", n)
				}
				cmds := []redis.Cmder{tc.cmd}
				if n := testing.AllocsPerRun(1000, func() { pipeline(ctx, cmds) }); n != 0 {
					t.Errorf("%v allocations per pipeline, want none", n)
				}
			})
		}
	}
}
