package detectors_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newLockLost() (detectors.Detector, error) {
	return detectors.NewLockLost(detectors.LockLostConfig{})
}

// holdersAtOnce is an episode of recomputes that each took a lock.
func holdersAtOnce(acquired uint64, ivs ...keyOption) signal.Episode {
	e := burst(0, 1, func(e *episode) {
		k := signal.KeyState{Window: e.Window}
		e.Window.Recomputes = signal.Recomputes{}
		for _, f := range ivs {
			f(&k)
		}
		e.Window.Locks.Acquired = acquired
		e.Window.End = after(20 * second)
	})
	return e
}

func TestLockLost(t *testing.T) {
	lost := func() *signal.Tick {
		return keyTick(second, key(second, locks(signal.Locks{Holds: 1, Lost: 1, HoldMax: 12 * second})))
	}
	declared := claims(signal.Claims{LockTTL: 5 * second})
	tellAll(t, newLockLost, []story{
		{"nothing happens, and it is quiet", idle(0, 10*second), nil},
		{"a hold that ends well is quiet", ticks{keyTick(second, key(second, locks(signal.Locks{Acquired: 1, Holds: 1, HoldMax: 12 * second})))}, nil},
		{"a lost hold is a ticket, at once", ticks{lost()}, []string{"1s ticket"}},
		{"each key is one", ticks{keyTick(second, key(second, keyID(3), locks(signal.Locks{Lost: 1})), key(second, keyID(2), locks(signal.Locks{Lost: 1})))},
			[]string{"1s feed/2 ticket", "1s feed/3 ticket"}},
		{"it clears after ten quiet minutes", slices.Concat(ticks{lost()}, idle(2*second, 20*minute)), []string{"1s ticket", "10m1s cleared"}},
		{"not while nobody reports", slices.Concat(ticks{lost()}, idle(2*second, 20*minute, feed(silent)), idle(20*minute+second, 31*minute)),
			[]string{"1s ticket", "30m0s cleared"}},
		{"two holders that overlap are a ticket", ticks{tick(21*second, holdersAtOnce(2, ran(1, 0, 12*second, signal.CauseExpired), ran(2, 10*second, 20*second, signal.CauseExpired)))},
			[]string{"21s ticket"}},
		{"by no more than clocks may be off they are quiet", ticks{tick(21*second, holdersAtOnce(2, ran(1, 0, 10100*ms, signal.CauseExpired), ran(2, 10*second, 20*second, signal.CauseExpired)))}, nil},
		{"by a millisecond more they are not", ticks{tick(21*second, holdersAtOnce(2, ran(1, 0, 10101*ms, signal.CauseExpired), ran(2, 10*second, 20*second, signal.CauseExpired)))},
			[]string{"21s ticket"}},
		{"one after the other is quiet", ticks{tick(21*second, holdersAtOnce(2, ran(1, 0, 10*second, signal.CauseExpired), ran(2, 10*second, 20*second, signal.CauseExpired)))}, nil},
		{"a reader who does without the lock is no holder", ticks{tick(21*second, holdersAtOnce(1, ran(1, 0, 12*second, signal.CauseExpired), ran(2, 10*second, 20*second, signal.CauseExpired)))}, nil},
		{"nor if he makes recomputes outnumber locks", ticks{tick(21*second, holdersAtOnce(2, ran(1, 0, 12*second, signal.CauseExpired), ran(2, 10*second, 20*second, signal.CauseExpired), ran(3, 9*second, 20*second, signal.CauseExpired)))}, nil},
		{"a holder that died never ended, and is no overlap", ticks{tick(21*second, holdersAtOnce(2, runs(1, 0), ran(2, 5*second, 6*second, signal.CauseExpired)))}, nil},
		{"recomputes that nearly outlive their lock are foretold", ticks{paceTick(second, 100, 4*second, declared)}, []string{"1s feed/0 ticket"}},
		{"not of fewer than a hundred", ticks{paceTick(second, 99, 4*second, declared)}, nil},
		{"not if they are far from it", ticks{paceTick(second, 100, 3*second, declared)}, nil},
		{"not if the life of a lock is not declared", ticks{paceTick(second, 100, 4*second)}, nil},
		{"nothing is found at an urgent tick", ticks{urgent(lost())}, nil},
	})
}

func TestLockLostSaysWhatItKnows(t *testing.T) {
	d := made(t)(newLockLost())
	f := lastOf(t, d, in(ticks{
		keyTick(second, key(second, locks(signal.Locks{Holds: 2, Lost: 1, HoldMax: 12 * second}))),
		keyTick(2*second, key(2*second, locks(signal.Locks{Holds: 3, Lost: 2, HoldMax: 11 * second}))),
	}, claims(signal.Claims{LockTTL: 10 * second})))
	want := detectors.Finding{
		Detector: "lock-lost", Service: "shop", Cache: "feed", Key: signal.Key{ID: 1, Group: "feed:*"}, Origin: "db",
		Severity: detectors.Ticket, Onset: after(0), Detected: after(second), Advice: f.Advice,
		Summary: "feed:* in cache feed: 2 locks expired before the recompute under it was done.",
		Evidence: []detectors.Evidence{
			{Name: "lost", Value: 2, Unit: "{lock}", Note: "expired, or somebody else's, when their holder was done"},
			{Name: "hold.max", Value: 11, Unit: "s", Note: "the longest of those that ended"},
			{Name: "lock.ttl", Value: 10, Unit: "s", Note: "as declared"},
			{Name: "total.lost", Value: 3, Unit: "{lock}", Note: "since the onset"},
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("finding (-want +got):\n%s", diff)
	}
}

func TestLockLostSaysWhatItCannotJudge(t *testing.T) {
	d := made(t)(newLockLost())
	d.Observe(in(idle(0, 0), claims(signal.Claims{Protection: []string{signal.ProtectLock}}))[0])
	want := []string{"feed: How long its locks live is not declared: that recomputes come close to it cannot be foretold."}
	if diff := cmp.Diff(want, unsure(d)); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	d.Observe(with(tick(second), feed(silent)))
	if diff := cmp.Diff([]string{"feed: No instance has reported lately."}, unsure(d)); diff != "" {
		t.Errorf("limits of a silent fleet (-want +got):\n%s", diff)
	}
}
