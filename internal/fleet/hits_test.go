package fleet_test

import (
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// TestMissesOfWhoSeesNoHitsCountOnlyAlone has a probe that is told of misses, and
// one that counts all reads of the same server.
func TestMissesOfWhoSeesNoHitsCountOnlyAlone(t *testing.T) {
	t.Parallel()
	const at = signal.Nanos(1_790_000_000_000_000_000)
	events := func(misses uint64) *signal.Vitals {
		return &signal.Vitals{Source: signal.Source{Service: "redis", Instance: "a:1#keyspace"}, Cache: "feed",
			Lookups: signal.Lookups{Misses: misses}, Probe: true, Watch: true, Unknown: signal.UnknownHits}
	}
	counts := func(hits, misses uint64) *signal.Vitals {
		return &signal.Vitals{Source: signal.Source{Service: "redis", Instance: "a:1"}, Cache: "feed",
			Uptime: time.Hour, Lookups: signal.Lookups{Hits: hits, Misses: misses}, Probe: true}
	}
	tests := []struct {
		name        string
		first, then []*signal.Vitals
		want        signal.Lookups
		unknown     signal.Unknown
	}{
		{"alone they are all there is, and no hit ratio", []*signal.Vitals{events(10)}, []*signal.Vitals{events(15)}, signal.Lookups{Misses: 5}, signal.UnknownHits},
		{"beside the whole account they would count twice", []*signal.Vitals{events(10), counts(100, 20)}, []*signal.Vitals{events(15), counts(190, 26)}, signal.Lookups{Hits: 90, Misses: 6}, 0},
		{"while nothing happens too", []*signal.Vitals{events(10)}, []*signal.Vitals{events(10)}, signal.Lookups{}, signal.UnknownHits},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f, err := fleet.New(fleet.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var tick *signal.Tick
			for i, vs := range [][]*signal.Vitals{tc.first, tc.then} {
				now := at.Add(time.Duration(i) * time.Second)
				for _, v := range vs {
					v.At = now
				}
				f.Add(now, nil, vs)
				tick = f.Tick(now)
			}
			c := tick.Caches[0]
			if c.Lookups != tc.want || c.Unknown != tc.unknown || c.Watching != 1 {
				t.Errorf("got %+v, unknown %b, %d watching; want %+v, unknown %b, one", c.Lookups, c.Unknown, c.Watching, tc.want, tc.unknown)
			}
		})
	}
}
