package benchmarks_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
)

// TestHeapStaysUnderItsBoundInAFloodOfMissingKeys feeds the hook five million
// keys that are missed once and never stored, as a crawler or an attack does,
// and prints the heap that the monitor and the hook take.
func TestHeapStaysUnderItsBoundInAFloodOfMissingKeys(t *testing.T) {
	const (
		keys  = 5_000_000
		bound = 16 << 20 // instrument.Options.MaxBytes by default
	)
	before := heap()
	m, err := instrument.New("feed", instrument.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	hook, err := goredis.NewHook(m, goredis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	process := hook.ProcessHook(func(context.Context, redis.Cmder) error { return redis.Nil })
	for i := range keys {
		process(context.Background(), get(fmt.Sprintf("feed:%d:page:%d", i, i%97)))
		if (i+1)%(keys/10) == 0 {
			used := heap() - before
			fmt.Printf("%8d keys missed: heap %5.2f MiB of %d MiB\n", i+1, float64(used)/(1<<20), bound>>20)
			if used > bound {
				t.Errorf("after %d keys the heap is %d bytes, over the bound of %d", i+1, used, bound)
			}
		}
	}
	s := m.Snapshot()
	misses := uint64(0)
	for _, g := range s.Groups {
		misses += g.Lookups.Misses
	}
	fmt.Printf("tracked %d, overflowed %d, misses counted %d\n", s.Tracked, s.Overflowed, misses)
	if misses != keys {
		t.Errorf("misses counted: %d, want %d", misses, keys)
	}
	if s.Overflowed == 0 {
		t.Error("no overflow was counted")
	}
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
