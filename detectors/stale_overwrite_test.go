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

func newStaleOverwrite() (detectors.Detector, error) {
	return detectors.NewStaleOverwrite(detectors.StaleOverwriteConfig{})
}

func invalidated(at time.Duration) keyOption {
	return func(k *signal.KeyState) { k.Window.Invalidations, k.Window.InvalidatedAt = 1, after(at) }
}

func overtaken(n uint64) keyOption { return func(k *signal.KeyState) { k.Overtaken = n } }

func stored(n uint64) keyOption { return func(k *signal.KeyState) { k.Window.Stores.Count = n } }

func staleStores(n uint64) keyOption {
	return func(k *signal.KeyState) { k.Window.Stores.Count, k.Window.Stores.Stale = n, n }
}

// episodeOf is a final episode with what the options of a key say.
func episodeOf(started time.Duration, change ...keyOption) signal.Episode {
	return burst(started, 1, func(e *episode) {
		e.Window.Recomputes = signal.Recomputes{}
		k := signal.KeyState{Window: e.Window}
		for _, f := range change {
			f(&k)
		}
		for _, iv := range e.Window.Intervals {
			e.Window.End = max(e.Window.End, iv.End)
		}
	})
}

func TestStaleOverwrite(t *testing.T) {
	slow := ran(1, 0, 2*second, signal.CauseExpired)
	tellAll(t, newStaleOverwrite, []story{
		{"nothing happens, and it is quiet", idle(0, 5*second), nil},
		{"an invalidation alone is quiet", ticks{keyTick(second, key(second, invalidated(500*ms)))}, nil},
		{"a process that says so is a ticket", ticks{keyTick(second, key(second, staleStores(1)))}, []string{"1s ticket"}},
		{"an invalidation by one instance in the middle of another's recompute is a ticket",
			ticks{keyTick(2*second, key(2*second, slow, invalidated(second), stored(1)))}, []string{"2s ticket"}},
		{"also if they are told at different ticks",
			ticks{keyTick(second, key(second, invalidated(900*ms))), keyTick(2*second, key(2*second, slow, stored(1)))}, []string{"2s ticket"}},
		{"also if an episode tells", ticks{tick(3*second, episodeOf(0, slow, invalidated(second), stored(1)))}, []string{"3s ticket"}},
		{"an early refresh can do it, too", ticks{keyTick(2*second, key(2*second, ran(1, 0, 2*second, signal.CauseEarly), invalidated(second), stored(1)))}, []string{"2s ticket"}},
		{"one that began after the invalidation is quiet", ticks{keyTick(2*second, key(2*second, slow, invalidated(-second), stored(1)))}, nil},
		{"by no more than clocks may be off it is quiet", ticks{keyTick(2*second, key(2*second, slow, invalidated(100*ms), stored(1)))}, nil},
		{"by a millisecond more it is not", ticks{keyTick(2*second, key(2*second, slow, invalidated(101*ms), stored(1)))}, []string{"2s ticket"}},
		{"clocks that were put right by a lot are trusted by as much less", ticks{tick(3*second, func() signal.Episode {
			e := episodeOf(0, slow, invalidated(second), stored(1))
			e.Offset = -900 * ms
			return e
		}())}, nil},
		{"one that stored nothing is quiet", ticks{keyTick(2*second, key(2*second, slow, invalidated(second)))}, nil},
		{"if only one of two stored it may have been the other", ticks{keyTick(2*second, key(2*second, slow, ran(2, 1200*ms, 1900*ms, signal.CauseExpired), invalidated(second), stored(1)))}, nil},
		{"if both were suspect one of them it was", ticks{keyTick(2*second, key(2*second, slow, ran(2, 500*ms, 1900*ms, signal.CauseExpired), invalidated(second), stored(1)))}, []string{"2s ticket"}},
		{"one that runs or failed is quiet", ticks{keyTick(2*second, key(2*second, runs(1, 0), invalidated(second), stored(1)))}, nil},
		{"a value of a lower version than the one that was there is a ticket", ticks{keyTick(second, key(second, overtaken(1)))}, []string{"1s ticket"}},
		{"it clears after ten minutes", slices.Concat(ticks{keyTick(second, key(second, staleStores(1)))}, idle(2*second, 20*minute)), []string{"1s ticket", "10m1s cleared"}},
		{"what is long over raises nothing", ticks{tick(minute, episodeOf(0, slow, invalidated(second), stored(1)))}, nil},
		{"nothing is found at an urgent tick", ticks{urgent(tick(3*second, episodeOf(0, slow, invalidated(second), stored(1))))}, nil},
	})
}

func TestStaleOverwriteOfWhatIsCriticalPages(t *testing.T) {
	d := made(t)(detectors.NewStaleOverwrite(detectors.StaleOverwriteConfig{CriticalGroups: []string{"price:*"}}))
	price := func(k *signal.KeyState) { k.Window.Key.Group = "price:*" }
	got := play(d, ticks{keyTick(second, key(second, staleStores(1)), key(second, keyID(2), price, staleStores(1)))})
	if diff := cmp.Diff([]string{"1s ticket", "1s feed/2 page/2"}, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestStaleOverwriteCountsEachOnce(t *testing.T) {
	slow := ran(1, 0, 2*second, signal.CauseExpired)
	f := lastOf(t, made(t)(newStaleOverwrite()), ticks{
		keyTick(2*second, key(2*second, slow, invalidated(second), staleStores(1))), // by both accounts
		tick(3*second, episodeOf(0, slow, invalidated(second), staleStores(1))),     // again
		keyTick(5*second, key(5*second, staleStores(2))),
	})
	want := []detectors.Evidence{
		{Name: "stale", Value: 2, Unit: "{value}", Note: "written from data that had changed since it was read"},
		{Name: "stale.within", Value: 2, Unit: "{value}", Note: "by one process's own account"},
		{Name: "ttl", Value: 60, Unit: "s", Note: "how long a stale value may live"},
		{Name: "total.stale", Value: 3, Unit: "{value}", Note: "since the onset"},
	}
	if diff := cmp.Diff(want, f.Evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	if want := "feed:* in cache feed: 2 values stored although the key had been invalidated since the recompute began."; f.Summary != want {
		t.Errorf("summary %q, want %q", f.Summary, want)
	}
}

func TestStaleOverwriteSaysHowItKnows(t *testing.T) {
	f := lastOf(t, made(t)(newStaleOverwrite()), ticks{keyTick(second, key(second, staleStores(1), overtaken(2)))})
	want := []detectors.Evidence{
		{Name: "stale", Value: 2, Unit: "{value}", Note: "written from data that had changed since it was read"},
		{Name: "stale.within", Value: 1, Unit: "{value}", Note: "by one process's own account"},
		{Name: "stale.versions", Value: 2, Unit: "{value}", Note: "of a lower version than one that was there"},
		{Name: "ttl", Value: 60, Unit: "s", Note: "how long a stale value may live"},
		{Name: "total.stale", Value: 2, Unit: "{value}", Note: "since the onset"},
	}
	if diff := cmp.Diff(want, f.Evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	if want := "feed:* in cache feed: 2 values stored over one of a newer version."; f.Summary != want {
		t.Errorf("summary %q, want %q", f.Summary, want)
	}
}

func TestStaleOverwriteIsBounded(t *testing.T) {
	d := made(t)(detectors.NewStaleOverwrite(detectors.StaleOverwriteConfig{MaxKeys: 100}))
	for i := range 50 {
		at := time.Duration(i) * second
		tk := tick(at)
		for n := range 50 {
			tk.Keys = append(tk.Keys, key(at, keyID(signal.KeyID(50*i+n)), invalidated(at)))
		}
		d.Observe(tk)
		if n := detectors.Noted(d); n > 100 {
			t.Fatalf("%d keys are remembered, want 100 at most", n)
		}
	}
	if n := detectors.Noted(d); n < 90 {
		t.Errorf("%d keys are remembered, want most of 100", n)
	}
	d.Observe(tick(10 * minute))
	if n := detectors.Noted(d); n != 0 {
		t.Errorf("%d keys are remembered ten minutes later, want none", n)
	}
}

func TestStaleOverwriteRefusesTooManyGroups(t *testing.T) {
	c := detectors.StaleOverwriteConfig{CriticalGroups: make([]string, 1001)}
	want := "critical_groups has 1001 entries: want at most 1000"
	if _, err := detectors.NewStaleOverwrite(c); fmt.Sprint(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
