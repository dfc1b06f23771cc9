package detectors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// BenchmarkAll is what a tick with so many active keys costs all detectors
// together, second after second: either each key is recomputed once, under a
// lock, or each is in trouble, recomputed five times at once.
func BenchmarkAll(b *testing.B) {
	for _, peak := range []int{1, 5} {
		for _, keys := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("peak=%d/keys=%d", peak, keys), func(b *testing.B) {
				all, err := detectors.All(detectors.Config{})
				if err != nil {
					b.Fatal(err)
				}
				tk := busy(keys, peak)
				found := 0
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					move(tk, second)
					b.StartTimer()
					for _, d := range all {
						found += len(d.Observe(tk))
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/tick")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/key")
				b.ReportMetric(float64(found)/float64(b.N), "findings/tick")
			})
		}
	}
}

// busy is a tick in which every key of one cache has an episode of peak
// recomputes and a state.
func busy(keys, peak int) *signal.Tick {
	tk := with(tick(second), feed(func(c *signal.CacheState) {
		n := uint64(keys)
		c.Lookups = signal.Lookups{Hits: 10 * n, Misses: n * uint64(peak)}
		c.MissedKeys, c.MissTop, c.Misses = keys, uint64(peak), n*uint64(peak)
		c.Work.Recomputes.Started[signal.CauseExpired] = n * uint64(peak)
		c.Work.Recomputes.Ended[signal.CauseExpired][signal.OutcomeOK] = n * uint64(peak)
		c.Work.Busy = time.Duration(keys*peak) * 400 * ms
		c.Work.Stores = n * uint64(peak)
	}))
	for i := range keys {
		id := signal.KeyID(i + 1)
		tk.Episodes = append(tk.Episodes, burst(0, peak, ofKey(id)))
		k := key(second, keyID(id), locks(signal.Locks{Attempts: uint64(peak), Acquired: 1, Waits: 1, WaitSum: ms, WaitMax: ms}), ran(uint64(i+1), 500*ms, 900*ms, signal.CauseExpired))
		tk.Keys = append(tk.Keys, k)
	}
	return tk
}

// move makes tk the tick d later, in which the same happens again.
func move(tk *signal.Tick, d time.Duration) {
	tk.At = tk.At.Add(d)
	for i := range tk.Episodes {
		e := &tk.Episodes[i]
		e.Started, e.Onset = e.Started.Add(d), e.Onset.Add(d)
		e.Window.Shift(d)
	}
	for i := range tk.Keys {
		tk.Keys[i].Window.Shift(d)
	}
}
