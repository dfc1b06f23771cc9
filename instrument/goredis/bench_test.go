package goredis_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
)

// benchProcess returns the hook's chain over a server that answers err at no
// cost.
func benchProcess(b *testing.B, answer error) redis.ProcessHook {
	b.Helper()
	m, err := instrument.New("feed", instrument.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	hook, err := goredis.NewHook(m, goredis.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	return hook.ProcessHook(func(context.Context, redis.Cmder) error { return answer })
}

func BenchmarkFound(b *testing.B) {
	for _, tc := range healthy {
		b.Run(tc.name, func(b *testing.B) {
			ctx, process := b.Context(), benchProcess(b, nil)
			for b.Loop() {
				process(ctx, tc.cmd)
			}
		})
	}
}

func BenchmarkMissThenStore(b *testing.B) {
	ctx, answer := b.Context(), error(nil)
	m, err := instrument.New("feed", instrument.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	hook, err := goredis.NewHook(m, goredis.Options{})
	if err != nil {
		b.Fatal(err)
	}
	process := hook.ProcessHook(func(context.Context, redis.Cmder) error { return answer })
	get, set := str("get", "feed:12345678"), status("set", "feed:12345678", "v", "ex", int64(60))
	b.ReportAllocs()
	for b.Loop() {
		answer = redis.Nil
		process(ctx, get)
		answer = nil
		process(ctx, set)
	}
}

func BenchmarkMGetOf500(b *testing.B) {
	args, values := []any{"mget"}, []any{}
	for i := range 500 {
		args, values = append(args, fmt.Sprintf("feed:%d", i)), append(values, "v")
	}
	ctx, process, cmd := b.Context(), benchProcess(b, nil), list(values, args...)
	for b.Loop() {
		process(ctx, cmd)
	}
}
