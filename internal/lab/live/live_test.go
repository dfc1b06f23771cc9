package live_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/live"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// watch runs a scenario until its monitors have said enough: no test depends on
// how fast the machine is.
type watch struct {
	last map[string]*signal.Vitals
	stop context.CancelFunc
	// enough reports whether it is, given what all have said so far and how
	// long the latest has been up.
	enough func(said live.Tally, uptime time.Duration) bool
}

func (w *watch) take(r rig.Report) {
	for _, v := range r.Vitals {
		w.last[v.Instance+"/"+v.Cache] = v
		if w.enough(w.sum(), v.Uptime) {
			w.stop()
		}
	}
}

// sum adds up what the monitors said last, in the terms of the rig.
func (w *watch) sum() live.Tally {
	var t live.Tally
	for _, v := range w.last {
		t.Hits += v.Lookups.Hits
		t.Misses += v.Lookups.Misses
		t.Stale += v.Lookups.Stale
		t.Requests += v.Retries.Requests
		t.Attempts += v.Retries.Attempts
		t.Early += v.Early
		t.Follows += v.Coalesced
		t.Stores += v.Stores
	}
	return t
}

// runUntil runs sc against the server at addr until the monitors have said
// enough, and returns the rig and what they have said at the end.
func runUntil(t *testing.T, sc *scenario.Scenario, addr string, enough func(live.Tally, time.Duration) bool) (*live.Rig, live.Tally) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := &watch{last: map[string]*signal.Vitals{}, stop: stop, enough: enough}
	r, err := live.New(ctx, sc, live.Options{Redis: addr, Report: w.take})
	if err != nil {
		t.Errorf("%s: %v", sc.About, err)
		return &live.Rig{}, live.Tally{}
	}
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%s: the error is %v: want that of a run that is cancelled", sc.About, err)
	}
	return r, w.sum()
}

func TestMonitorsCountExactlyWhatTheFleetDid(t *testing.T) {
	t.Parallel()
	variants := map[string]struct{ origin, cache, events string }{
		"nothing protects":                      {"concurrency: 8", "protect: none", ""},
		"single-flight":                         {"concurrency: 8", "protect: singleflight", ""},
		"single-flight that gives up":           {"concurrency: 1", "protect: singleflight, client: {timeout: 150ms}", ""},
		"XFetch":                                {"concurrency: 8", "protect: xfetch", ""},
		"refresh-ahead":                         {"concurrency: 8", "protect: refresh_ahead", ""},
		"a lock":                                {"concurrency: 8", "protect: lock", ""},
		"a lock that others do not wait for":    {"concurrency: 8", "protect: lock, lock: {wait: not_found}", ""},
		"a lock behind single-flight":           {"concurrency: 8", "protect: [singleflight, lock]", ""},
		"a lock that is too short, and fenced":  {"concurrency: 8", "protect: lock, lock: {ttl: 100ms, fenced: true}", ""},
		"a lease with the old value":            {"concurrency: 8", "protect: lease, lease: {every: 400ms}, stale_grace: 5s", ""},
		"the old value while a new one is made": {"concurrency: 8", "protect: swr, stale_grace: 5s", ""},
		"slots that look again":                 {"concurrency: 2, recheck: true", "protect: none", ""},
		"late results that are kept":            {"concurrency: 1", "client: {timeout: 300ms, fill_late: true}", ""},
		"failures, and retries": {"concurrency: 8", "client: {attempts: 3, backoff: 20ms, delete_on_error: true}",
			"  - {at: 1s, do: fail, origin: db, share: 0.5, for: 1s}"},
		"an origin that sheds": {"concurrency: 1, queue: shed, queue_limit: 2", "protect: none", ""},
		"no such thing":        {"concurrency: 0", "negative: 1", ""},
		"losses and deletions": {"concurrency: 8", "protect: [xfetch, lock]",
			"  - {at: 500ms, do: flush, cache: feed}\n  - {at: 1s, do: invalidate, cache: feed}\n  - {at: 1500ms, do: evict, share: 1, cache: feed}"},
	}
	// All at once: each waits most of the time.
	addr := cachetest.Redis(t)
	var all sync.WaitGroup
	for name, v := range variants {
		sc := hotKey(t, name, v.origin, v.cache, v.events)
		all.Go(func() {
			r, said := runUntil(t, sc, addr, func(x live.Tally, uptime time.Duration) bool {
				return uptime > 3*time.Second && x.Hits+x.Misses+x.Stale > 200 && x.Attempts > 2
			})
			if diff := cmp.Diff(r.Tally(), said); diff != "" {
				t.Errorf("%s: what the fleet did (-) and what its monitors said (+):\n%s", name, diff)
			}
		})
	}
	all.Wait()
}

func TestKeysOfOthersAreLeftAloneAndItsOwnDoNotStay(t *testing.T) {
	t.Parallel()
	addr := cachetest.Redis(t)
	rdb := client(t, addr)
	if err := rdb.Set(t.Context(), "somebody's", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	sc := hotKey(t, "a lease", "concurrency: 0", "protect: lease, stale_grace: 5s", "  - {at: 500ms, do: flush, cache: feed}")
	runUntil(t, sc, addr, func(x live.Tally, _ time.Duration) bool { return x.Misses > 0 })
	if diff := cmp.Diff([]string{"somebody's"}, left(t, rdb)); diff != "" {
		t.Errorf("keys on the server afterwards (-want +got):\n%s", diff)
	}
}

func TestEachLossTakesItsShareOfTheCache(t *testing.T) {
	t.Parallel()
	const text = `
name: loss
about: LOSS
duration: 1h
origins:
  db: {concurrency: 0}
caches:
  feed: {origin: db, ttl: 1h, recompute: {fixed: 1ms}}
workloads:
  - {cache: feed, keys: 40, rate: 100}
events:
  - {at: 0s, do: warm, cache: feed}
  - {at: 1s, EVENT}
`
	addr := cachetest.Redis(t)
	var all sync.WaitGroup
	for loss, want := range map[string]struct{ low, top float64 }{
		"do: flush, cache: feed":                        {39, 40},
		"do: evict, cache: feed, share: 0.5":            {4, 36}, // five standard deviations
		"do: node_loss, cache: feed, share: 0.5":        {4, 36},
		"do: invalidate, cache: feed, key: \"feed:3\"":  {1, 1},
		"do: warm, cache: feed, keys: 7, over: 1s":      {0, 0},
		"do: load, cache: feed, factor: 0.5, for: 10ms": {0, 0},
		"do: slow, origin: db, factor: 2, for: 10ms":    {0, 0},
		"do: shed, origin: db, for: 10ms":               {0, 0},
	} {
		sc := parse(t, strings.NewReplacer("LOSS", strings.NewReplacer(": ", " ", "\"", "").Replace(loss), "EVENT", loss).Replace(text))
		all.Go(func() {
			seen := uint64(0) // reads, when the first of the loss was
			r, _ := runUntil(t, sc, addr, func(x live.Tally, uptime time.Duration) bool {
				if seen == 0 && (x.Misses > 0 || want.low == 0 && uptime > 2*time.Second) {
					seen = x.Hits
				}
				return seen > 0 && x.Hits > seen+400 // each key some ten times
			})
			// Readers who miss at one moment make one burst; one who was late
			// to act on its miss may make another.
			if n := r.Figures()["bursts"]; n < want.low || n > want.top+2 {
				t.Errorf("%s: keys were recomputed %v times: want %v to %v", loss, n, want.low, want.top)
			}
		})
	}
	all.Wait()
}

func TestAHolderThatDiesLeavesItsLockAndOthersWaitForIt(t *testing.T) {
	t.Parallel()
	addr := cachetest.Redis(t)
	sc := hotKey(t, "a crash", "concurrency: 0", "protect: lock, lock: {ttl: 1s}", "  - {at: 500ms, do: kill_holder, cache: feed, down: 500ms}")
	// Nobody hears of the attempt of the process that dies.
	r, _ := runUntil(t, sc, addr, func(x live.Tally, _ time.Duration) bool { return x.Attempts >= 2 })
	orphaned := 0
	for _, o := range r.Onsets() {
		if o.Detector == "orphaned-lock" {
			orphaned++
		}
	}
	if parked := r.Figures()["parked_at_release"]; orphaned != 1 || parked < 1 {
		t.Errorf("%d locks orphaned, and %v readers parked when it was over: want 1, and some", orphaned, parked)
	}
	if keys := left(t, client(t, addr)); len(keys) > 0 {
		t.Errorf("left on the server: %q", keys)
	}
}

func TestAServerThatIsNotThereIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	// Nobody listens on port 1.
	_, err := live.New(t.Context(), hotKey(t, "no server", "concurrency: 0", "protect: none", ""), live.Options{Redis: "127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "reach redis at 127.0.0.1:1") {
		t.Errorf("the error is %v", err)
	}
}

func TestAServerThatGoesAwayEndsTheRun(t *testing.T) {
	t.Parallel()
	addr := cachetest.Redis(t)
	r, err := live.New(t.Context(), hotKey(t, "it ends early", "concurrency: 0", "protect: none", ""), live.Options{Redis: addr})
	if err != nil {
		t.Fatal(err)
	}
	// It never answers that: it goes.
	_ = client(t, addr).ShutdownNoSave(t.Context()).Err()
	if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `run scenario "hot-key"`) || !strings.Contains(err.Error(), addr) {
		t.Errorf("the error is %v: want one that names the scenario and the server", err)
	}
}

func TestARunThatIsCancelledSaysSoAndCleansUp(t *testing.T) {
	t.Parallel()
	addr := cachetest.Redis(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := live.New(ctx, hotKey(t, "it ends early", "concurrency: 0", "protect: lock", ""), live.Options{Redis: addr})
	if err != nil {
		t.Fatal(err)
	}
	r.After(500*time.Millisecond, cancel)
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v: want one that is context.Canceled", err)
	}
	if keys := left(t, client(t, addr)); len(keys) > 0 {
		t.Errorf("left on the server: %q", keys)
	}
}
