package instrument_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func benchMonitor(b *testing.B) *instrument.Monitor {
	b.Helper()
	m, err := instrument.New("feed", instrument.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	b.ReportAllocs()
	return m
}

func BenchmarkHit(b *testing.B) {
	b.Run("untracked", func(b *testing.B) {
		m := benchMonitor(b)
		for b.Loop() {
			m.Hit("feed:12345678")
		}
	})
	b.Run("tracked", func(b *testing.B) {
		m := benchMonitor(b)
		m.Store("feed:12345678", instrument.Expiry{TTL: time.Minute})
		for b.Loop() {
			m.Hit("feed:12345678")
		}
	})
}

func BenchmarkMiss(b *testing.B) {
	b.Run("one key", func(b *testing.B) {
		m := benchMonitor(b)
		for b.Loop() {
			m.ObserveMiss(b.Context(), "feed:1")
			m.Begin("feed:1", instrument.Start{}).End(signal.OutcomeOK)
		}
	})
	b.Run("miss only", func(b *testing.B) {
		m := benchMonitor(b)
		for b.Loop() {
			m.Miss("feed:1").Done()
		}
	})
	b.Run("distinct keys", func(b *testing.B) {
		m := benchMonitor(b)
		keys := make([]string, 1<<20)
		for i := range keys {
			keys[i] = "feed:" + strconv.Itoa(i)
		}
		i := 0
		for b.Loop() {
			m.ObserveMiss(b.Context(), keys[i%len(keys)])
			i++
		}
	})
}

func BenchmarkManyMissOneKey(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
			m := benchMonitor(b)
			b.SetParallelism(n)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					m.ObserveMiss(b.Context(), "feed:1")
					m.ObserveStore(b.Context(), "feed:1", instrument.Expiry{TTL: time.Minute})
				}
			})
		})
	}
}

// BenchmarkFlush is a flush of a monitor that knows so many keys, on a few of
// which something happened since the last one.
func BenchmarkFlush(b *testing.B) {
	for _, known := range []int{1_000, 50_000} {
		b.Run(fmt.Sprintf("known=%d/active=100", known), func(b *testing.B) {
			m, err := instrument.New("feed", instrument.Options{MaxKeys: known, MaxBytes: 1 << 30, Interval: -1})
			if err != nil {
				b.Fatal(err)
			}
			keys := make([]string, known)
			for i := range keys {
				keys[i] = fmt.Sprint("feed:", i)
				m.Store(keys[i], instrument.Expiry{TTL: time.Hour})
			}
			m.Flush()
			b.ReportAllocs()
			for b.Loop() {
				for _, key := range keys[:100] {
					m.Hit(key)
				}
				m.Flush()
			}
		})
	}
}
