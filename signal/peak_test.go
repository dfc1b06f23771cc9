package signal_test

import (
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestPeakLastsThreeFixedWindows(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) signal.Nanos { return signal.Nanos(1_700_000_000_000_000_000).Add(d) } // a window begins here
	var p signal.Peak
	if v := p.Value(at(0)); v != 0 {
		t.Errorf("it begins at %d, want 0", v)
	}
	p.Observe(at(9*time.Second), 7)
	p.Observe(at(9500*time.Millisecond), 3)
	p.Observe(at(10*time.Second), 5)
	for _, tc := range []struct {
		after time.Duration
		want  uint32
	}{
		{10 * time.Second, 7}, {29999 * time.Millisecond, 7}, // however often it is read
		{30 * time.Second, 5}, {39999 * time.Millisecond, 5},
		{40 * time.Second, 0}, {time.Hour, 0},
	} {
		for range 2 {
			if v := p.Value(at(tc.after)); v != tc.want {
				t.Errorf("after %v it is %d, want %d", tc.after, v, tc.want)
			}
		}
	}
	p.Observe(at(time.Hour), 4)
	p.Observe(at(0), 6) // the clock was set back: it counts for now
	if v := p.Value(at(time.Hour)); v != 6 {
		t.Errorf("it is %d, want 6", v)
	}
}
