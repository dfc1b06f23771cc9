package fleet_test

import (
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestAWindowThatComesAgainIsRefusedHoweverLate(t *testing.T) {
	for _, after := range []time.Duration{0, 10 * time.Second, 59 * time.Second, 61 * time.Second, 64 * time.Second, 66 * time.Second, 10 * time.Minute} {
		f := newFleet(t, fleet.Options{})
		// It is from a clock that is as far ahead as is believed.
		again := func() []*signal.Window { return []*signal.Window{window(1, t0+4*s, t0+5*s, t0+4*s, t0+5*s)} }
		f.Add(t0, []*signal.Window{window(2, t0-s, t0, t0-s, t0)}, nil)
		f.Add(t0, again(), nil)
		for now := time.Duration(0); now < after; now += time.Second { // others go on meanwhile
			at := t0.Add(now)
			f.Add(at, []*signal.Window{window(2, at, at+1, at, at+1)}, nil)
			f.Tick(at)
		}
		before := f.Stats()
		f.Add(t0.Add(after), again(), nil)
		st := f.Stats()
		if st.Duplicate+st.Past != before.Duplicate+before.Past+1 {
			t.Errorf("after %v: %d duplicates and %d too old; want one more than %d and %d", after, st.Duplicate, st.Past, before.Duplicate, before.Past)
		}
	}
}

func TestASilentKeyIsForgottenToTheSecondWhoeverSweeps(t *testing.T) {
	for id := range signal.KeyID(64) { // one in every shard
		for _, c := range []struct {
			silent time.Duration
			known  bool
		}{{10 * time.Minute, true}, {10*time.Minute + 2*time.Second, false}} {
			f := newFleet(t, fleet.Options{})
			told := func(at signal.Nanos) []*signal.Window {
				w := window(1, at, at+s, at, at+ms)
				w.Key.ID = id
				w.Stores.Count = 1
				// Whoever recomputes it has not heard of it before.
				started := &w.Recomputes.Started
				started[signal.CauseCold], started[signal.CauseExpired] = started[signal.CauseExpired], 0
				return []*signal.Window{w}
			}
			f.Add(t0+s, told(t0), nil)
			at := t0.Add(time.Second + c.silent)
			for now := t0 + s; now < at; now += s {
				f.Tick(now)
			}
			f.Add(at, told(at-s), nil)
			if e := one(t, f.Tick(at)); e.KnownBefore != c.known {
				t.Fatalf("key %d, silent for %v: known before is %v", id, c.silent, e.KnownBefore)
			}
		}
	}
}

func TestNothingIsLeftOfKeysThatFellSilent(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	for id := range signal.KeyID(1000) {
		w := window(1, t0, t0+s, t0, t0+ms)
		w.Key.ID = id
		f.Add(t0+s, []*signal.Window{w}, nil)
	}
	for now := t0 + s; now < t0.Add(10*time.Minute+30*time.Second); now += s {
		f.Tick(now)
	}
	if n := f.Stats().Keys; n != 0 {
		t.Errorf("%d keys are remembered; want none", n)
	}
}
