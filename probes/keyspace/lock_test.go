package keyspace_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/probes/keyspace"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestLockPatterns(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "*", "{key}", "lock", "a*b*", "lock:{key}*", "*{key}", "{key}{key}"} {
		if _, err := keyspace.ParseLockPattern(s); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
	for _, s := range []string{"lock:*", "*:lock", "lock:{key}", "{key}:lock", "lock:{{key}}", "a*b"} {
		if _, err := keyspace.ParseLockPattern(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	const lock = "lock:feed:1"
	tests := []struct {
		name string
		tell func(*rig)
		want signal.Locks
	}{
		{"taken and released", func(r *rig) {
			r.see(0, 1, keyspace.Store, lock)
			r.see(1*ms, 1, keyspace.Expire, lock) // as SET with a time to live does
			r.see(400*ms, 1, keyspace.Store, "feed:1")
			r.see(401*ms, 1, keyspace.Delete, lock)
		}, signal.Locks{Attempts: 1, Acquired: 1, Holds: 1, HoldSum: 401 * ms, HoldMax: 401 * ms}},
		{"expired before the key was stored: lost", func(r *rig) {
			r.see(0, 1, keyspace.Store, lock)
			r.see(500*ms, 1, keyspace.Expired, lock)
		}, signal.Locks{Attempts: 1, Acquired: 1, Holds: 1, HoldSum: 500 * ms, HoldMax: 500 * ms, Lost: 1}},
		{"left to expire after the key was stored: not lost", func(r *rig) {
			r.see(0, 1, keyspace.Store, lock)
			r.see(400*ms, 1, keyspace.Store, "feed:1")
			r.see(500*ms, 1, keyspace.Expired, lock)
		}, signal.Locks{Attempts: 1, Acquired: 1, Holds: 1, HoldSum: 500 * ms, HoldMax: 500 * ms}},
		{"held, and readers go on missing: they wait", func(r *rig) {
			r.see(0, 1, keyspace.Store, lock)
			for i := range time.Duration(9) { // five readers, looking again every 50 ms
				r.see(10*ms+i*50*ms, 5, keyspace.Miss, "feed:1")
			}
		}, signal.Locks{Attempts: 1, Acquired: 1, Waiting: 10, WaitPeak: 10}},
		{"renewed: somebody holds it who is alive", func(r *rig) {
			r.see(0, 1, keyspace.Store, lock)
			r.see(300*ms, 1, keyspace.Expire, lock)
			r.see(310*ms, 1, keyspace.Miss, "feed:1")
		}, signal.Locks{Attempts: 1, Acquired: 1, Held: 1, HeldSince: t0, Waiting: 1, WaitPeak: 1}},
		{"a hash that counts holders is taken once", func(r *rig) {
			r.see(0, 3, keyspace.Change, lock)
			r.see(20*ms, 1, keyspace.Delete, lock)
		}, signal.Locks{Attempts: 1, Acquired: 1, Holds: 1, HoldSum: 20 * ms, HoldMax: 20 * ms}},
		{"released though nobody saw it taken: nothing", func(r *rig) {
			r.see(0, 1, keyspace.Miss, "feed:1")
			r.see(20*ms, 1, keyspace.Delete, lock)
		}, signal.Locks{}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, locks("lock:{key}"))
			tc.tell(r)
			r.flush(510 * ms)
			if diff := cmp.Diff(tc.want, r.merged("feed:*").Locks); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARecomputeUnderALockBeginsWhenItIsTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t, locks("lock:{key}"))
	r.see(0, 3, keyspace.Miss, "feed:1")
	for i := range time.Duration(3) { // nobody looks again once it is his turn
		r.see(10*ms+i*200*ms, 1, keyspace.Store, "lock:feed:1")
		r.see(200*ms+i*200*ms, 1, keyspace.Store, "feed:1")
		r.see(201*ms+i*200*ms, 1, keyspace.Delete, "lock:feed:1")
	}
	r.flush(700 * ms)
	w := r.merged("feed:*")
	if w.InFlightPeak != 1 || w.Duplicates != 2 || w.WhileFresh != 2 || signal.Sweep(w.Intervals, w.End).Peak != 1 {
		t.Errorf("%s: want one after the other, two of them in vain", digest(w))
	}
}

func TestALockThatNamesNoKeyIsToldOfItself(t *testing.T) {
	t.Parallel()
	r := newRig(t, locks("mutex:*"))
	r.see(0, 1, keyspace.Store, "mutex:feed")
	r.see(300*ms, 1, keyspace.Expired, "mutex:feed")
	r.flush(400 * ms)
	if w := r.merged("mutex:*"); w.Locks.Lost != 1 || w.Stores.Count != 0 {
		t.Errorf("locks %+v, %d stores", w.Locks, w.Stores.Count)
	}
}

func TestWaitingForALockIsNoLookUpOfWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	r := newRig(t, locks("lock:{key}"))
	r.see(0, 1, keyspace.Store, "lock:feed:1")
	r.see(10*ms, 50, keyspace.Miss, "feed:1")
	r.flush(90 * time.Second)
	if n := r.counts.Work.Recomputes.Ended[signal.CauseNegative][signal.OutcomeOK]; n != 0 {
		t.Errorf("%d misses are said to have found nothing, and a lock is held", n)
	}
}
