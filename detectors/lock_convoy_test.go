package detectors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newLockConvoy() (detectors.Detector, error) {
	return detectors.NewLockConvoy(detectors.LockConvoyConfig{})
}

// waited is a tick at which that many of 300 readers of key 1 ended a wait of at
// most longest, behind a recompute of took, and looked again.
func waited(at time.Duration, n uint64, longest, took time.Duration, change ...keyOption) *signal.Tick {
	all := []keyOption{locks(signal.Locks{Waits: n, WaitSum: time.Duration(n) * longest / 2, WaitMax: longest, WaitPeak: 20}), reads(300 + n)}
	if took > 0 {
		all = append(all, ran(uint64(at), at-took, at, signal.CauseExpired))
	}
	return keyTick(at, key(at, append(all, change...)...))
}

// slowLock is a minute of a key whose recompute takes that many seconds: all who
// read it in that time wait, and the wait of each second is told as it ends.
func slowLock(from time.Duration, long int, change ...keyOption) (out ticks) {
	took := time.Duration(long) * second
	for i := range long {
		last, d := i == long-1, time.Duration(0)
		if last {
			d = took
		}
		at := from + time.Duration(i+1)*second
		if !last {
			out = append(out, keyTick(at, key(at, append([]keyOption{locks(signal.Locks{Waiting: 15, WaitPeak: 15}), reads(300)}, change...)...)))
			continue
		}
		out = append(out, waited(at, uint64(300*long), took, d, append(change, reads(300+uint64(300*long)))...))
	}
	return out
}

func TestLockConvoy(t *testing.T) {
	tellAll(t, newLockConvoy, []story{
		{"nothing happens, and it is quiet", idle(0, 5*second), nil},
		{"a lock that does what it is for is quiet: 120 of 18,000 reads waited", ticks{waited(second, 120, 400*ms, 400*ms)}, nil},
		{"a recompute of 2 s a minute holds up a thirtieth of the readers, and is quiet", slowLock(0, 2), nil},
		{"one of 4 s a fifteenth, and is a ticket", slowLock(0, 4), []string{"4s ticket"}},
		{"readers who take their turns to recompute are a ticket", func() (out ticks) {
			for i := range 12 {
				at := time.Duration(i+1) * second
				out = append(out, waited(at, 100, at, 100*ms))
			}
			return out
		}(), []string{"10s ticket"}}, // a third of the readers in 10 of 60 seconds
		{"waits that are short against a recompute are quiet", func() (out ticks) {
			for i := range 30 {
				at := time.Duration(i+1) * second
				out = append(out, waited(at, 100, 700*ms, 900*ms))
			}
			return out
		}(), nil},
		{"nineteen waits are too few", func() (out ticks) {
			for i := range 19 {
				at := time.Duration(i+1) * second
				out = append(out, waited(at, 1, 3*second, 3*second, reads(1)))
			}
			return out
		}(), nil},
		{"the twentieth makes a ticket", func() (out ticks) {
			for i := range 20 {
				at := time.Duration(i+1) * second
				out = append(out, waited(at, 1, 3*second, 3*second, reads(1)))
			}
			return out
		}(), []string{"20s ticket"}},
		{"fifty waiting in one process do not page", slowLock(0, 4, func(k *signal.KeyState) { k.Window.Locks.WaitPeak = 50 }), []string{"4s ticket"}},
		{"one more does", slowLock(0, 4, func(k *signal.KeyState) { k.Window.Locks.WaitPeak = 51 }), []string{"4s page/2"}},
		{"with no recompute that ended, the cache's median counts", slices.Concat(ticks{paceTick(0, 20, 3*second)}, in(ticks{
			waited(10*second, 900, 3*second, 0), waited(11*second, 900, 3*second, 0), waited(12*second, 900, 3*second, 0),
		})), []string{"12s ticket"}},
		{"with none of the cache either, nothing", ticks{waited(10*second, 900, 3*second, 0), waited(11*second, 900, 3*second, 0), waited(12*second, 900, 3*second, 0)}, nil},
		{"it clears five minutes after the last", slices.Concat(slowLock(0, 4), idle(5*second, 20*minute)), []string{"4s ticket", "5m4s cleared"}},
		{"later for a key that lives for longer", slices.Concat(slowLock(0, 4, func(k *signal.KeyState) { k.TTL = 5 * minute }), idle(5*second, 20*minute)), []string{"4s ticket", "10m4s cleared"}},
		{"a page does not become a ticket", slices.Concat(slowLock(0, 4, func(k *signal.KeyState) { k.Window.Locks.WaitPeak = 51 }), idle(5*second, 60*second), slowLock(2*minute, 4)), []string{"4s page/2"}},
	})
}

func TestLockConvoySaysWhatItKnows(t *testing.T) {
	f := lastOf(t, made(t)(newLockConvoy()), slowLock(0, 4))
	want := detectors.Finding{
		Detector: "lock-convoy", Service: "shop", Cache: "feed", Key: signal.Key{ID: 1, Group: "feed:*"}, Origin: "db",
		Severity: detectors.Ticket, Onset: after(0), Detected: after(4 * second), Advice: f.Advice,
		Summary: "feed:* in cache feed: 7 % of its readers waited for a lock in the last minute, up to 4.0 s; a recompute takes 4.0 s.",
		Evidence: []detectors.Evidence{
			{Name: "share", Value: 4.0 / 60, Unit: "1", Note: "of reads waited, in 60 s; a ticket from 0.05"},
			{Name: "wait.p99", Value: 4, Unit: "s", Note: "at most"},
			{Name: "recompute", Value: 4, Unit: "s", Note: "of the key, on average"},
			{Name: "waiting.peak", Value: 20, Unit: "{reader}", Note: "at one instant in one process; pages above 50"},
			{Name: "waits", Value: 1200, Unit: "{wait}", Note: "that ended, in 60 s"},
			{Name: "wait.total", Value: 2400, Unit: "s", Note: "of readers' time, in 60 s"},
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("finding (-want +got):\n%s", diff)
	}
}

func TestLockConvoySaysWhatItCannotJudge(t *testing.T) {
	d := made(t)(newLockConvoy())
	play(d, ticks{waited(10*second, 900, 3*second, 0), waited(11*second, 900, 3*second, 0), waited(12*second, 900, 3*second, 0)})
	want := []string{"feed: Not enough data: readers wait for a lock, and fewer than 20 recomputes have been reported that could say whether for long."}
	if diff := cmp.Diff(want, unsure(d)); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}
