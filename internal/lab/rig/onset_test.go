package rig_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// at is an instant of a run, in seconds.
func at(seconds float64) int64 { return int64(seconds * float64(time.Second)) }

// stretch is what is wanted: seconds, and the end of the run if it lasts.
func stretch(detector, key string, from, to float64, lasting bool) rig.Onset {
	return rig.Onset{Detector: detector, Cache: "feed", Key: key, At: time.Duration(at(from)), End: time.Duration(at(to)), Lasting: lasting}
}

func TestTroubleBeginsAndEnds(t *testing.T) {
	const end = 1000
	provoked := rig.Start{Provoked: true, Known: true}
	for _, c := range []struct {
		name string
		do   func(a *rig.Account)
		of   string // only stretches of this kind are looked at
		want []rig.Onset
	}{
		{"with what is seen of it, and what comes soon after is the same", func(a *rig.Account) {
			for _, s := range []float64{100, 105, 114, 200} {
				a.Attempt(at(s), "feed", 2)
			}
		}, "retry-storm", []rig.Onset{stretch("retry-storm", "", 100, 114, false), stretch("retry-storm", "", 200, 200, false)}},
		{"or not before the run does, if that ends too soon to tell", func(a *rig.Account) {
			a.Attempt(at(995), "feed", 2)
		}, "retry-storm", []rig.Onset{stretch("retry-storm", "", 995, end, true)}},
		{"with the last time recomputes of a key overlap, once a burst", func(a *rig.Account) {
			var s rig.Story
			for _, b := range []float64{100, 200} {
				a.Begin(at(b), "feed", "feed:0", &s, provoked)
				a.Begin(at(b+1), "feed", "feed:0", &s, provoked)
				a.End(at(b+2), "feed", "feed:0", &s, time.Second, true, true)
				a.Begin(at(b+3), "feed", "feed:0", &s, provoked)
				a.End(at(b+4), "feed", "feed:0", &s, time.Second, true, true)
				a.End(at(b+9), "feed", "feed:0", &s, time.Second, true, true)
			}
		}, "hot-key-expiry", []rig.Onset{stretch("hot-key-expiry", "feed:0", 101, 104, false), stretch("hot-key-expiry", "feed:0", 201, 204, false)}},
		{"unless they still do when the run ends", func(a *rig.Account) {
			var s rig.Story
			a.Begin(at(100), "feed", "feed:0", &s, provoked)
			a.Begin(at(101), "feed", "feed:0", &s, provoked)
		}, "process-local-coalescing", []rig.Onset{stretch("process-local-coalescing", "feed:0", 101, end, true)}},
		{"with the burst, if a process doubles its own work", func(a *rig.Account) {
			var s rig.Story
			a.Begin(at(100), "feed", "feed:0", &s, provoked)
			a.Begin(at(101), "feed", "feed:0", &s, rig.Start{Provoked: true, Doubled: true})
			a.End(at(102), "feed", "feed:0", &s, time.Second, true, true)
			a.End(at(130), "feed", "feed:0", &s, time.Second, true, true)
		}, "coalescing-bypass", []rig.Onset{stretch("coalescing-bypass", "feed:0", 101, 130, false)}},
		{"when an origin has caught up", func(a *rig.Account) {
			a.Queued(at(100), "feed", 10, 3*time.Second)
			a.Worked(at(130), "feed", 2500*time.Millisecond)
			a.Worked(at(140), "feed", 2*time.Second)
			a.Worked(at(150), "feed", time.Second)
		}, "overload", []rig.Onset{stretch("overload", "", 100, 140, false)}},
		{"when the last reader waits no more for a lock", func(a *rig.Account) {
			a.Parked(at(100), "feed", "feed:0", 1)
			a.Parked(at(101), "feed", "feed:0", 2)
			a.Unparked(at(110), "feed", "feed:0", 1)
			a.Unparked(at(120), "feed", "feed:0", 0)
		}, "lock-convoy", []rig.Onset{stretch("lock-convoy", "feed:0", 100, 120, false)}},
		{"when the time of a dead holder's lock is over", func(a *rig.Account) {
			a.Orphaned(at(100), "feed", "feed:0")
			a.LockExpired(at(160), "feed", "feed:0", true, 3)
		}, "orphaned-lock", []rig.Onset{stretch("orphaned-lock", "feed:0", 100, 160, false)}},
		{"when a holder that has lost its lock is done", func(a *rig.Account) {
			a.LockExpired(at(100), "feed", "feed:0", false, 3)
			a.LockLost(at(150), "feed", "feed:0")
		}, "lock-lost", []rig.Onset{stretch("lock-lost", "feed:0", 100, 150, false)}},
		{"when another value is written over one that should not have been", func(a *rig.Account) {
			v := rig.Value{Known: true, Typical: time.Minute, Born: at(90), Previous: at(95)}
			a.Store(at(100), "feed", "feed:0", v)
			v.Born = at(150)
			a.Store(at(160), "feed", "feed:0", v)
			a.Store(at(170), "feed", "feed:0", v)
		}, "stale-overwrite", []rig.Onset{stretch("stale-overwrite", "feed:0", 100, 160, false)}},
		{"when a value is made as fast as usual again", func(a *rig.Account) {
			v := rig.Value{Known: true, Typical: time.Second, Born: at(90)}
			a.Store(at(100), "feed", "feed:0", v)
			v.Born = at(149)
			a.Store(at(150), "feed", "feed:0", v)
		}, "delta-poisoning", []rig.Onset{stretch("delta-poisoning", "feed:0", 100, 150, false)}},
		{"when a cache has back what it lost", func(a *rig.Account) {
			a.Fault(at(100), &scenario.Event{Do: scenario.DoFlush, Cache: "feed"})
			a.Restored(at(130), "feed")
		}, "mass-invalidation", []rig.Onset{stretch("mass-invalidation", "", 100, 130, false)}},
		{"never, if it is how the cache is used", func(a *rig.Account) {
			a.Store(at(100), "feed", "feed:0", rig.Value{Typical: time.Second})
			a.Store(at(500), "feed", "feed:0", rig.Value{Typical: time.Second})
		}, "underdosed-jitter", []rig.Onset{stretch("underdosed-jitter", "", 100, end, true)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := rig.NewAccount(end * time.Second)
			c.do(a)
			var got []rig.Onset
			for _, o := range a.Onsets(at(end)) {
				if o.Detector == c.of {
					got = append(got, o)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTroubleThatComesAgainAndAgainTakesBoundedMemory(t *testing.T) {
	const most = 100_000
	a := rig.NewAccount(time.Hour)
	for i := range 2 * most {
		a.Attempt(at(float64(i*20)), "feed", 2)
	}
	a.Orphaned(at(1), "feed", "feed:0")
	got := a.Onsets(at(1e9))
	if len(got) != most+1 || got[most].Detector != "orphaned-lock" {
		t.Errorf("%d stretches, want %d, and the first of another kind nevertheless", len(got), most)
	}
}
