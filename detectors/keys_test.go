package detectors_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

type keyOption = func(*signal.KeyState)

// key is what two instances say of key 1 in cache feed, of the second before at.
func key(at time.Duration, change ...keyOption) signal.KeyState {
	k := signal.KeyState{TTL: minute, Window: &signal.Window{
		Source: signal.Source{Service: "shop"},
		Cache:  "feed", Key: signal.Key{ID: 1, Group: "feed:*"},
		Start: after(at - second), End: after(at),
		Shares: []signal.Share{
			{Source: signal.Source{Service: "shop", Instance: "a", Build: "v1"}},
			{Source: signal.Source{Service: "shop", Instance: "b", Build: "v1"}},
		},
	}}
	for _, f := range change {
		f(&k)
	}
	return k
}

func keyID(id signal.KeyID) keyOption { return func(k *signal.KeyState) { k.Window.Key.ID = id } }

func locks(l signal.Locks) keyOption { return func(k *signal.KeyState) { k.Window.Locks = l } }

func reads(n uint64) keyOption { return func(k *signal.KeyState) { k.Window.Lookups.Hits = n } }

// ran adds a recompute that ended well.
func ran(id uint64, from, to time.Duration, cause signal.Cause) keyOption {
	return func(k *signal.KeyState) {
		w := k.Window
		w.Intervals = append(w.Intervals, signal.Interval{ID: id, Start: after(from), End: after(to), Cause: cause, Outcome: signal.OutcomeOK})
		w.Recomputes.Started[cause]++
		w.Recomputes.Ended[cause][signal.OutcomeOK]++
		w.Busy += to - from
		w.BusyMax = max(w.BusyMax, to-from)
	}
}

// runs adds a recompute that runs.
func runs(id uint64, from time.Duration) keyOption {
	return func(k *signal.KeyState) {
		k.Window.Intervals = append(k.Window.Intervals, signal.Interval{ID: id, Start: after(from), Cause: signal.CauseExpired})
	}
}

// keyTick is a regular tick with states of keys.
func keyTick(at time.Duration, ks ...signal.KeyState) *signal.Tick {
	t := tick(at)
	t.Keys = ks
	return t
}

// in replaces the cache of every tick by feed, changed.
func in(ts ticks, change ...cacheOption) ticks {
	for _, t := range ts {
		t.Caches = []signal.CacheState{feed(change...)}
	}
	return ts
}

func claims(c signal.Claims) cacheOption { return func(s *signal.CacheState) { s.Claims = c } }

// paced lets a cache's recomputes of one tick take that long.
func paced(n int, d time.Duration) cacheOption {
	return func(c *signal.CacheState) {
		for range n {
			c.Work.Durations.Observe(d)
		}
	}
}

// paceTick is a tick at which n recomputes took d.
func paceTick(at time.Duration, n int, d time.Duration, change ...cacheOption) *signal.Tick {
	return with(tick(at), feed(append(change, paced(n, d))...))
}

// story is what a detector is shown, and what it must say of it.
type story struct {
	name  string
	ticks ticks
	want  []string
}

func tellAll(t *testing.T, make func() (detectors.Detector, error), stories []story) {
	t.Helper()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			if diff := cmp.Diff(s.want, play(made(t)(make()), s.ticks), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// lastOf shows ticks to d and returns the only finding of the last of them.
func lastOf(t *testing.T, d detectors.Detector, ts ticks) detectors.Finding {
	t.Helper()
	var fs []detectors.Finding
	for _, tk := range ts {
		fs = d.Observe(tk)
	}
	if len(fs) != 1 {
		t.Fatalf("%d findings, want 1: %+v", len(fs), fs)
	}
	return fs[0]
}

// unsure returns the limits of d.
func unsure(d detectors.Detector) (out []string) {
	for _, l := range d.(detectors.Limited).Limits() {
		out = append(out, l.Cache+": "+l.Reason)
	}
	return out
}
