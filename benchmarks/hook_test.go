package benchmarks_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/extra/redisotel/v9"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
)

// hooks are what is compared. Every row is the same client with the same stub
// in place of a server, so a hook's cost is its row less the row of noop.
var hooks = []struct {
	name    string
	install func(testing.TB, *redis.Client)
}{
	{"noop", func(_ testing.TB, rdb *redis.Client) { rdb.AddHook(noop{}) }},
	{"stampede", func(t testing.TB, rdb *redis.Client) { rdb.AddHook(newHook(t)) }},
	{"redisotel-metrics", func(t testing.TB, rdb *redis.Client) {
		provider := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
		t.Cleanup(func() { provider.Shutdown(context.Background()) })
		if err := redisotel.InstrumentMetrics(rdb, redisotel.WithMeterProvider(provider)); err != nil {
			t.Fatal(err)
		}
	}},
	{"redisotel-tracing", func(t testing.TB, rdb *redis.Client) {
		provider := trace.NewTracerProvider(trace.WithBatcher(tracetest.NewNoopExporter()))
		t.Cleanup(func() { provider.Shutdown(context.Background()) })
		if err := redisotel.InstrumentTracing(rdb, redisotel.WithTracerProvider(provider)); err != nil {
			t.Fatal(err)
		}
	}},
}

func newHook(t testing.TB) *goredis.Hook {
	t.Helper()
	m, err := instrument.New("feed", instrument.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	hook, err := goredis.NewHook(m, goredis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return hook
}

// noop is a hook that does nothing.
type noop struct{}

func (noop) DialHook(next redis.DialHook) redis.DialHook { return next }
func (noop) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return next(ctx, cmd) }
}
func (noop) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return next(ctx, cmds) }
}

// stub is the innermost hook: it answers at once in place of a server, a GET
// with answer and anything else with success.
type stub struct{ answer error }

func (stub) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
}
func (s stub) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		if _, ok := cmd.(*redis.StringCmd); ok {
			return s.answer
		}
		return nil
	}
}
func (stub) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error { return nil }
}

// newClient returns a client with the hook under test around a stub.
func newClient(t testing.TB, install func(testing.TB, *redis.Client), answer error) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:0"})
	t.Cleanup(func() { rdb.Close() })
	install(t, rdb)
	rdb.AddHook(stub{answer})
	return rdb
}

func get(key string) redis.Cmder {
	return redis.NewStringCmd(context.Background(), "get", key)
}

func set(key string) redis.Cmder {
	cmd := redis.NewStatusCmd(context.Background(), "set", key, "value", "ex", int64(60))
	cmd.SetVal("OK")
	return cmd
}

const hotKey = "feed:12345678"

// BenchmarkHit reads a key that is there, which nobody has missed or stored
// lately: what a healthy cache does most of the time.
func BenchmarkHit(b *testing.B) {
	each(b, nil, func(rdb *redis.Client) func() {
		cmd := get(hotKey)
		return func() { rdb.Process(context.Background(), cmd) }
	})
}

// BenchmarkHitTracked reads one hot key that was stored lately, so that it is
// counted by itself.
func BenchmarkHitTracked(b *testing.B) {
	each(b, nil, func(rdb *redis.Client) func() {
		rdb.Process(context.Background(), set(hotKey))
		cmd := get(hotKey)
		return func() { rdb.Process(context.Background(), cmd) }
	})
}

// BenchmarkMissStore misses one hot key and stores it: every goroutine
// recomputes the same value, the worst moment for the service. One operation is
// both commands.
func BenchmarkMissStore(b *testing.B) {
	each(b, redis.Nil, func(rdb *redis.Client) func() {
		miss, store := get(hotKey), set(hotKey)
		return func() {
			rdb.Process(context.Background(), miss)
			rdb.Process(context.Background(), store)
		}
	})
}

// BenchmarkMissStoreSpread is [BenchmarkMissStore] with keys that differ.
func BenchmarkMissStoreSpread(b *testing.B) {
	var next atomic.Uint64
	each(b, redis.Nil, func(rdb *redis.Client) func() {
		const n = 256
		first := int(next.Add(n))
		var misses, stores [n]redis.Cmder
		for i := range n {
			key := fmt.Sprintf("feed:%d", (first+i)%8192)
			misses[i], stores[i] = get(key), set(key)
		}
		i := 0
		return func() {
			rdb.Process(context.Background(), misses[i%n])
			rdb.Process(context.Background(), stores[i%n])
			i++
		}
	})
}

// BenchmarkMiss misses one hot key. The stores that resolve the misses are not
// measured.
func BenchmarkMiss(b *testing.B) {
	for _, h := range hooks {
		b.Run("goroutines=1/hook="+h.name, func(b *testing.B) {
			rdb := newClient(b, h.install, redis.Nil)
			miss, store := get(hotKey), set(hotKey)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				rdb.Process(context.Background(), miss)
				if n%1024 < 1023 {
					continue
				}
				b.StopTimer()
				for range 1024 {
					rdb.Process(context.Background(), store)
				}
				b.StartTimer()
			}
		})
	}
}

// each runs an operation with each hook and 1, 8 and 64 goroutines. setUp makes
// the operation for one goroutine. With several goroutines, a figure is the wall
// time that all of them together take for one operation.
func each(b *testing.B, answer error, setUp func(*redis.Client) func()) {
	for _, goroutines := range []int{1, 8, 64} {
		for _, h := range hooks {
			b.Run(fmt.Sprintf("goroutines=%d/hook=%s", goroutines, h.name), func(b *testing.B) {
				rdb := newClient(b, h.install, answer)
				b.ReportAllocs()
				if goroutines == 1 {
					op := setUp(rdb)
					for b.Loop() {
						op()
					}
					return
				}
				perProcessor := max(1, goroutines/runtime.GOMAXPROCS(0))
				ops := make(chan func(), perProcessor*runtime.GOMAXPROCS(0))
				for range cap(ops) {
					ops <- setUp(rdb)
				}
				b.SetParallelism(perProcessor)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					op := <-ops
					for pb.Next() {
						op()
					}
				})
			})
		}
	}
}
