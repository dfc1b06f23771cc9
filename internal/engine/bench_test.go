package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// BenchmarkSecondOfAFleet is what one second of a fleet costs after decoding:
// every instance tells of 20 active keys, 16 of them its own and 4 that all
// share, and of itself; then comes the tick. It reports the share of one core
// that takes.
func BenchmarkSecondOfAFleet(b *testing.B) {
	for _, instances := range []int{100, 1000} {
		b.Run(fmt.Sprintf("instances=%d", instances), func(b *testing.B) {
			f, err := fleet.New(fleet.Options{})
			if err != nil {
				b.Fatal(err)
			}
			watch, err := detectors.All(detectors.Config{})
			if err != nil {
				b.Fatal(err)
			}
			now := signal.Nanos(1_700_000_000 * time.Second)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				now += signal.Nanos(time.Second)
				ws, vs := second(instances, now)
				b.StartTimer()
				for i := range ws {
					f.Add(now, ws[i], vs[i])
				}
				t := f.Tick(now)
				for _, d := range watch {
					d.Observe(t)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "cores")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*instances*20), "ns/window")
		})
	}
}

// second returns what each instance says of the second before now.
func second(instances int, now signal.Nanos) (ws [][]*signal.Window, vs [][]*signal.Vitals) {
	const keys, shared = 20, 4
	for i := range instances {
		src := signal.Source{Service: "app", Instance: fmt.Sprint(i)}
		var mine []*signal.Window
		for k := range keys {
			id := signal.KeyID(k)
			if k >= shared {
				id = signal.KeyID(shared + i*keys + k)
			}
			start := now - signal.Nanos(500*time.Millisecond)
			w := &signal.Window{
				Source: src, Cache: "feed", Key: signal.Key{ID: id, Group: "feed:*"},
				Start: now - signal.Nanos(time.Second), End: now, MissPeak: 1, InFlightPeak: 1,
				Intervals: []signal.Interval{{ID: uint64(now) + uint64(i*keys+k), Start: start, End: start + signal.Nanos(100*time.Millisecond), Cause: signal.CauseExpired, Outcome: signal.OutcomeOK}},
			}
			w.Recomputes.Started[signal.CauseExpired] = 1
			w.Recomputes.Ended[signal.CauseExpired][signal.OutcomeOK] = 1
			w.Stores.Count = 1
			mine = append(mine, w)
		}
		ws = append(ws, mine)
		vs = append(vs, []*signal.Vitals{{Source: src, Cache: "feed", At: now, Uptime: time.Hour}})
	}
	return ws, vs
}
