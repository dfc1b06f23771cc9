package detectors_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newOrphanedLock() (detectors.Detector, error) {
	return detectors.NewOrphanedLock(detectors.OrphanedLockConfig{})
}

// parked is a tick at which readers wait for the lock of key 1.
func parked(at time.Duration, change ...keyOption) *signal.Tick {
	wait := func(k *signal.KeyState) {
		k.Window.Locks.Waiting, k.Window.Locks.WaitPeak = 3, 3
		for i := range k.Window.Shares {
			k.Window.Shares[i].MissPeak = 60
		}
	}
	return keyTick(at, key(at, append([]keyOption{wait}, change...)...))
}

// parkedFor is a tick a second at which readers wait, from and to included.
func parkedFor(from, to time.Duration, change ...keyOption) (out ticks) {
	for at := from; at <= to; at += second {
		out = append(out, parked(at, change...))
	}
	return out
}

func acquired(k *signal.KeyState) { k.Window.Locks.Acquired, k.Window.Locks.Attempts = 1, 1 }

func held(since time.Duration) keyOption {
	return func(k *signal.KeyState) { k.Window.Locks.Held, k.Window.Locks.HeldSince = 1, after(since) }
}

// everybody lets n instances wait.
func everybody(n int) keyOption {
	return func(k *signal.KeyState) {
		k.Window.Shares = nil
		for i := range n {
			k.Window.Shares = append(k.Window.Shares, signal.Share{Source: signal.Source{Service: "shop", Instance: fmt.Sprint(i)}, MissPeak: 9})
		}
	}
}

// fromServer is of a probe, which sees neither who holds a lock nor a recompute that
// runs.
func fromServer(k *signal.KeyState) {
	k.Window.Unknown |= signal.UnknownStarts | signal.UnknownLocks
	k.Window.Intervals = nil
}

func inferredStarts(k *signal.KeyState) { k.Window.Unknown |= signal.UnknownStarts }

// healthy is a wait that ends well: somebody took the lock and recomputed.
func healthy(at time.Duration) ticks {
	return slices.Concat(ticks{
		parked(at, acquired, runs(1, at-500*ms)),
		keyTick(at+second, key(at+second, ran(1, at-500*ms, at+100*ms, signal.CauseExpired), locks(signal.Locks{Holds: 1, Waits: 3}))),
	}, idle(at+2*second, at+8*second))
}

// usual is a minute in which recomputes took at most 1.7 s, and one wait for a
// lock ended well. What follows begins at 60s.
func usual() ticks {
	return slices.Concat(ticks{paceTick(0, 100, 1700*ms)}, healthy(2*second))
}

func TestOrphanedLock(t *testing.T) {
	// 1.7 s falls into a bucket that ends at 1.722 s.
	crash := func(change ...keyOption) ticks {
		return slices.Concat(ticks{parked(61*second, acquired, runs(2, 60500*ms))}, parkedFor(62*second, 65*second, change...))
	}
	tellAll(t, newOrphanedLock, []story{
		{"nobody waits, and it is quiet", slices.Concat(usual(), idle(61*second, 65*second)), nil},
		{"a wait that ends well is quiet", slices.Concat(usual(), healthy(61*second)), nil},
		{"a long wait for one that works is quiet", slices.Concat(usual(), parkedFor(61*second, 80*second, runs(2, 60*second))), nil},
		{"a holder that is not heard of again pages, once recomputes do not take that long", slices.Concat(usual(), crash()), []string{"1m3s page/1"}},
		{"a second sooner if all instances but one are heard to wait", in(slices.Concat(usual(), crash(everybody(4))), func(c *signal.CacheState) { c.Instances = 5 }, paced(20, 1700*ms)), []string{"1m3s page/2"}},
		{"not if two are missing", in(slices.Concat(usual(), parkedFor(61*second, 62*second, everybody(3))), func(c *signal.CacheState) { c.Instances = 5 }, paced(20, 1700*ms)), nil},
		{"and then the same of one that died before it could report", in(slices.Concat(usual(), parkedFor(61*second, 62*second, everybody(4))), func(c *signal.CacheState) { c.Instances = 5 }, paced(20, 1700*ms)), []string{"1m2s page/2"}},
		{"one silent second is a packet that came late", slices.Concat(usual(), crash()[:2],
			parkedFor(63*second, 63*second, runs(2, 60500*ms)), parkedFor(64*second, 64*second), parkedFor(65*second, 65*second, runs(2, 60500*ms))), nil},
		{"one that died before it could report pages if holders usually do", slices.Concat(usual(), parkedFor(61*second, 63*second)), []string{"1m3s page/1"}},
		{"and is a ticket if nothing is known of holders", slices.Concat(ticks{paceTick(0, 100, 1700*ms)}, parkedFor(61*second, 63*second)), []string{"1m3s ticket"}},
		{"and is left alone if holders often do not report", slices.Concat(ticks{paceTick(0, 100, 1700*ms)}, healthy(2*second),
			parkedFor(20*second, 20*second), idle(21*second, 30*second), parkedFor(61*second, 70*second)), nil},
		{"readers who try again and again wait too", slices.Concat(usual(), ticks{
			keyTick(61*second, key(61*second, locks(signal.Locks{Attempts: 9}), func(k *signal.KeyState) { k.Window.MissPeak = 2 })),
			keyTick(62*second, key(62*second, locks(signal.Locks{Attempts: 9}), func(k *signal.KeyState) { k.Window.MissPeak = 2 })),
			keyTick(63*second, key(63*second, locks(signal.Locks{Attempts: 9}), func(k *signal.KeyState) { k.Window.MissPeak = 2 })),
		}), []string{"1m3s page/2"}},
		{"a lock that is held by one who does nothing is a ticket", slices.Concat(usual(), parkedFor(61*second, 65*second, held(60*second))), []string{"1m3s ticket"}},
		{"a lock that only a probe tells of is a ticket, and pages when it is three times as old", slices.Concat(usual(),
			ticks{parked(61*second, acquired, fromServer)}, parkedFor(62*second, 75*second, fromServer)), []string{"1m3s ticket", "1m8s page/1"}},
		{"unless it could not be seen", slices.Concat(usual(), parkedFor(61*second, 65*second, held(60*second), inferredStarts)), nil},
		{"where recomputes are inferred, readers who wait are none", slices.Concat(usual(), crash(runs(9, 61*second), inferredStarts)), []string{"1m3s page/1"}},
		{"a lock that changes hands is young again", slices.Concat(usual(), parkedFor(61*second, 61*second, runs(2, 60*second)),
			ticks{parked(62*second, ran(2, 60*second, 61500*ms, signal.CauseExpired), acquired)}, parkedFor(63*second, 63*second)), nil},
		{"an early refresh is work, too", slices.Concat(usual(), parkedFor(61*second, 70*second, func(k *signal.KeyState) {
			k.Window.Intervals = []signal.Interval{{ID: 7, Start: after(60 * second), Cause: signal.CauseEarly}}
		})), nil},
		{"with few samples three times the longest is what it takes", slices.Concat(ticks{paceTick(0, 2, 400*ms)}, healthy(2*second), parkedFor(61*second, 63*second)), []string{"1m3s page/1"}},
		{"with none, half of the life of a lock", in(slices.Concat(healthy(2*second), parkedFor(61*second, 65*second)), claims(signal.Claims{LockTTL: 6 * second})), []string{"1m5s page/1"}},
		{"with none, and no such life, nothing", slices.Concat(healthy(2*second), parkedFor(61*second, 70*second)), nil},
		{"it clears five minutes after the last sign", slices.Concat(usual(), crash(), idle(66*second, 10*minute)), []string{"1m3s page/1", "6m5s cleared"}},
		{"nobody reports, and nothing is found", slices.Concat(usual(), func() ticks {
			ts := crash()
			for _, tk := range ts {
				with(tk, feed(silent))
			}
			return ts
		}()), nil},
		{"nothing is found at an urgent tick", slices.Concat(usual(), ticks{parked(61 * second), parked(62 * second), urgent(parked(63 * second))})[:len(usual())+1], nil},
	})
}

func TestOrphanedLockSaysWhatItKnows(t *testing.T) {
	d := made(t)(newOrphanedLock())
	ts := slices.Concat(usual(), ticks{parked(61*second, acquired, held(60500*ms), runs(2, 60500*ms))}, parkedFor(62*second, 64*second))
	f := lastOf(t, d, in(ts, claims(signal.Claims{LockTTL: 5 * second}), paced(20, 1700*ms)))
	want := detectors.Finding{
		Detector: "orphaned-lock", Service: "shop", Cache: "feed", Key: signal.Key{ID: 1, Group: "feed:*"}, Origin: "db",
		Severity: detectors.Page, Priority: 1, Onset: after(60500 * ms), Detected: after(64 * second), Advice: f.Advice,
		Summary: "feed:* in cache feed: up to 120 readers wait for a lock taken 3.5 s ago, and nobody recomputes.",
		Evidence: []detectors.Evidence{
			{Name: "lock.age", Value: 3.5, Unit: "s", Note: "since it was taken, or readers began to wait"},
			{Name: "recompute.longest", Value: f.Evidence[1].Value, Unit: "s", Note: "the 99.9th percentile of recomputes"},
			{Name: "readers", Value: 120, Unit: "{reader}", Note: "waiting, if every process had its worst moment at once"},
			{Name: "lock.ttl", Value: 5, Unit: "s", Note: "as declared: then it frees itself"},
			{Name: "idle", Value: 3, Unit: "s", Note: "without a sign of work"},
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("finding (-want +got):\n%s", diff)
	}
	if v := f.Evidence[1].Value; v < 1.7/1.1 || v > 1.7*1.1 {
		t.Errorf("the longest healthy recompute is %v s, want 1.7, give or take 10 %%", v)
	}
}

func TestOrphanedLockSaysWhatItCannotJudge(t *testing.T) {
	tests := []story{
		{"nothing to hold a wait against", slices.Concat(healthy(2*second), parkedFor(61*second, 63*second)), []string{
			"feed: Not enough data: readers wait for a lock, no recompute has been reported that says how long one takes, and how long a lock lives is not declared."}},
		{"holders that do not report", slices.Concat(usual(), parkedFor(20*second, 21*second), idle(22*second, 30*second)), []string{
			"feed: Some holders of its locks do not report: a lock whose holder nobody saw is not taken for orphaned."}},
		{"all is known", usual(), nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			d := made(t)(newOrphanedLock())
			play(d, tc.ticks)
			if diff := cmp.Diff(tc.want, unsure(d)); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}
