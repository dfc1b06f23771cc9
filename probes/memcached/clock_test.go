package memcached

import (
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestClockPutsInstantsRight(t *testing.T) {
	const s = signal.Nanos(time.Second)
	tests := []struct {
		name    string
		ahead   time.Duration // of the server's clock
		delays  []time.Duration
		wantOff time.Duration // of the last instant from the truth
	}{
		{"clocks that agree are left alone", 0, []time.Duration{900 * time.Millisecond, 10 * time.Millisecond, 500 * time.Millisecond}, 0},
		{"a line that comes at once", 0, []time.Duration{0}, 0},
		{"a clock that is an hour ahead is off by the shortest delay", time.Hour, []time.Duration{900 * time.Millisecond, 10 * time.Millisecond, 500 * time.Millisecond}, 10 * time.Millisecond},
		{"a clock that is an hour behind too", -time.Hour, []time.Duration{900 * time.Millisecond, 10 * time.Millisecond, 500 * time.Millisecond}, 10 * time.Millisecond},
		{"a clock that is a little behind cannot be told from a late line", -300 * time.Millisecond, []time.Duration{time.Millisecond}, -300 * time.Millisecond},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var c clock
			var got, truth signal.Nanos
			for i, d := range tc.delays {
				truth = signal.Nanos(1_000_000+i) * s
				got = c.local(truth.Add(tc.ahead), truth.Add(d))
			}
			if off := got.Sub(truth); off != tc.wantOff {
				t.Errorf("off by %v, want %v", off, tc.wantOff)
			}
		})
	}
}

func TestClockFollowsOneThatIsStepped(t *testing.T) {
	var c clock
	off := func(minute int, ahead time.Duration) time.Duration {
		truth := signal.Nanos(1000+minute) * signal.Nanos(time.Minute)
		return c.local(truth.Add(ahead), truth.Add(10*time.Millisecond)).Sub(truth)
	}
	for minute, want := range []time.Duration{0, 0, -time.Hour, 10 * time.Millisecond} {
		ahead := time.Duration(0)
		if minute >= 2 {
			ahead = -time.Hour // as if the server's clock were behind from then on
		}
		if got := off(minute, ahead); got != want {
			t.Errorf("in minute %d off by %v, want %v", minute, got, want)
		}
	}
}

func TestNothingHappensAfterItWasRead(t *testing.T) {
	var c clock
	seen := signal.Nanos(time.Hour)
	if got := c.local(seen.Add(-5*time.Second), seen); got > seen {
		t.Errorf("%v after it was read", got.Sub(seen))
	}
	if got := c.local(seen.Add(-time.Second), seen); got > seen {
		t.Errorf("%v after it was read", got.Sub(seen))
	}
}

func TestClockOfCountersIsNoFinerThanTheyAre(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for server, want := range map[int64]time.Duration{1_000_000: 0, 999_999: 0, 1_000_001: 0, 996_400: time.Hour, 1_000_010: -10 * time.Second} {
		n := counters{clock: uint64(server)}
		if got := n.ahead(now); got != want {
			t.Errorf("at %d: ahead by %v, want %v", server, got, want)
		}
	}
	for _, wrong := range []uint64{0, 1 << 63} {
		if got := (&counters{clock: wrong}).ahead(now); got != 0 {
			t.Errorf("at %d: ahead by %v, want nothing", wrong, got)
		}
	}
}
