package fleet_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// wrote is a window in which instance n stored a value of a version at at, to
// live for ttl.
func wrote(n int, version uint64, at signal.Nanos, ttl time.Duration) *signal.Window {
	w := &signal.Window{Source: source(n), Cache: "feed", Key: signal.Key{ID: 1, Group: "feed:*"}, Start: at - 500*ms, End: at + 10*ms}
	w.Stores = signal.Stores{Count: 1, ExpiryMin: at.Add(ttl), ExpiryMax: at.Add(ttl)}
	w.Stores.Versions.Note(version, at)
	return w
}

func dropped(n int, at signal.Nanos) *signal.Window {
	return &signal.Window{Source: source(n), Cache: "feed", Key: signal.Key{ID: 1, Group: "feed:*"}, Start: at - 500*ms, End: at + 10*ms, Invalidations: 1, InvalidatedAt: at}
}

func TestAValueWrittenOverANewerOneIsFoundInAnyOrder(t *testing.T) {
	merged := wrote(1, 2, t0+s, time.Minute)
	merged.Merge(wrote(2, 1, t0+2*s, time.Minute))
	tests := []struct {
		name    string
		windows []*signal.Window
		want    uint64
	}{
		{"versions that grow are as they should be", []*signal.Window{wrote(1, 1, t0+s, time.Minute), wrote(2, 2, t0+2*s, time.Minute)}, 0},
		{"an older one after a newer one is overtaken", []*signal.Window{wrote(1, 2, t0+s, time.Minute), wrote(2, 1, t0+2*s, time.Minute)}, 1},
		{"in one process too", []*signal.Window{wrote(1, 2, t0+s, time.Minute), wrote(1, 1, t0+2*s, time.Minute)}, 1},
		{"and in a window that was merged elsewhere", []*signal.Window{merged}, 1},
		{"the same again is no older", []*signal.Window{wrote(1, 2, t0+s, time.Minute), wrote(2, 2, t0+2*s, time.Minute)}, 0},
		{"each is counted once, though newer ones came before and after", []*signal.Window{
			wrote(1, 3, t0+s, time.Minute), wrote(2, 2, t0+2*s, time.Minute), wrote(3, 1, t0+3*s, time.Minute), wrote(4, 4, t0+4*s, time.Minute)}, 2},
		{"instants that are closer than clocks prove nothing", []*signal.Window{wrote(1, 2, t0+s, time.Minute), wrote(2, 1, t0+s+100*ms, time.Minute)}, 0},
		{"over a newer one that has expired nothing is lost", []*signal.Window{wrote(1, 2, t0+s, 500*time.Millisecond), wrote(2, 1, t0+2*s, time.Minute)}, 0},
		{"after a deletion versions may begin anew", []*signal.Window{wrote(1, 2, t0+s, time.Minute), dropped(3, t0+1500*ms), wrote(2, 1, t0+2*s, time.Minute)}, 0},
		{"but not before it", []*signal.Window{wrote(1, 2, t0+s, time.Minute), dropped(3, t0+2500*ms), wrote(2, 1, t0+2*s, time.Minute)}, 1},
		{"a version of zero is none", []*signal.Window{wrote(1, 2, t0+s, time.Minute), wrote(2, 0, t0+2*s, time.Minute)}, 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 1))
			for range 24 {
				rng.Shuffle(len(tc.windows), func(i, j int) { tc.windows[i], tc.windows[j] = tc.windows[j], tc.windows[i] })
				f := newFleet(t, fleet.Options{})
				for _, w := range tc.windows {
					c := *w
					f.Add(t0+5*s, []*signal.Window{&c}, nil)
				}
				if got := overtaken(f.Tick(t0 + 5*s)); got != tc.want {
					t.Fatalf("%d values were overtaken; want %d", got, tc.want)
				}
				if again := overtaken(f.Tick(t0 + 6*s)); again != 0 {
					t.Fatalf("%d values were overtaken once more", again)
				}
			}
		})
	}
}

func TestAValueThatWasOvertakenIsToldOfWhenItIsKnown(t *testing.T) {
	newer, older := wrote(1, 2, t0+s, time.Minute), wrote(2, 1, t0+2*s, time.Minute)
	for _, order := range [][]*signal.Window{{newer, older}, {older, newer}} {
		f := newFleet(t, fleet.Options{})
		for i, want := range []uint64{0, 1} {
			w := *order[i]
			now := t0 + signal.Nanos(3+i)*s
			f.Add(now, []*signal.Window{&w}, nil)
			if got := overtaken(f.Tick(now)); got != want {
				t.Errorf("with %d of two windows %d values were overtaken; want %d", i+1, got, want)
			}
		}
	}
}

func overtaken(t *signal.Tick) (n uint64) {
	for _, k := range t.Keys {
		n += k.Overtaken
	}
	return n
}
