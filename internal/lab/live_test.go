package lab_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
)

// sigmas is how far two runs of one scenario may differ by chance: five standard
// deviations, which one run in a million exceeds.
const sigmas = 5

// rates says what the scenarios below have in common.
const (
	readsPerSecond = 80.0
	recomputeTime  = 0.4
	instances      = 4
)

const shortRuns = `
name: NAME
duration: 20s
fleet: {instances: 4}
origins:
  db: {ORIGIN}
caches:
  feed: {origin: db, ttl: 3s, recompute: {fixed: 400ms}, client: {timeout: 1m}, CACHE}
workloads:
  - {cache: feed, rate: 80, KEYS}
events:
  - {at: 0s, do: warm, cache: feed, WARM}
`

// twice runs a scenario in virtual time and in real time, against a Redis, and
// holds one against the other. chancy are detectors of which it is a matter of
// chance, in virtual time too, whether they speak.
func twice(t *testing.T, name, origin, cache, keys, warm string, chancy ...string) (simulated, actual *lab.Result, found []alarm) {
	t.Helper()
	sc := parse(t, strings.NewReplacer("NAME", name, "ORIGIN", origin, "CACHE", cache, "KEYS", keys, "WARM", warm).Replace(shortRuns))
	simulated, actual = run(t, sc, lab.Options{}), run(t, sc, lab.Options{Redis: cachetest.Redis(t)})
	samePoisson(t, "reads", simulated.Truth["reads"], actual.Truth["reads"])
	return simulated, actual, sameAlarms(t, simulated, actual, chancy)
}

// samePoisson holds two counts of Poisson events of one rate against each other.
func samePoisson(t *testing.T, what string, a, b float64) {
	t.Helper()
	if math.Abs(a-b) > sigmas*math.Sqrt(a+b) {
		t.Errorf("%s: %v in virtual time and %v in real time: want them within %.1f", what, a, b, sigmas*math.Sqrt(a+b))
	}
}

// alarm is what somebody would hear of.
//
// Which of many keys is hit worst is a matter of chance, so that is left out.
type alarm struct{ Detector, Cache, Severity string }

// sameAlarms checks that both runs find the same, but for what is for information
// only, and returns it.
func sameAlarms(t *testing.T, simulated, actual *lab.Result, chancy []string) []alarm {
	t.Helper()
	alarms := func(r *lab.Result) []alarm {
		var all []alarm
		for _, f := range r.Findings {
			if a := (alarm{f.Detector, f.Cache, f.Severity}); a.Severity != "info" && !slices.Contains(all, a) && !slices.Contains(chancy, a.Detector) {
				all = append(all, a)
			}
		}
		slices.SortFunc(all, func(a, b alarm) int { return strings.Compare(a.Detector+a.Severity, b.Detector+b.Severity) })
		return all
	}
	want := alarms(simulated)
	if diff := cmp.Diff(want, alarms(actual)); diff != "" {
		t.Errorf("found in virtual time (-) and in real time (+):\n%s\nin real time, all of it: %+v", diff, actual.Findings)
	}
	return want
}

func TestANaiveHotKeyIsTheSameInVirtualAndInRealTime(t *testing.T) {
	t.Parallel()
	simulated, actual, found := twice(t, "naive", "concurrency: 16", "protect: none", "keys: 1", "keys: 1")
	for what, r := range map[string]*lab.Result{"virtual": simulated, "real": actual} {
		n, f := r.Truth["bursts"], r.Truth
		// Everybody who comes while the first recompute runs joins it: Poisson,
		// over as long as that took. In real time that is no less than it should
		// be, and no more than the longest time in which there was no value.
		low, top := readsPerSecond*recomputeTime, readsPerSecond*f["refill_seconds"]
		got, want := f["recomputes_per_cycle"]-1, []float64{low - sigmas*math.Sqrt(low/n), top + sigmas*math.Sqrt(top/n)}
		if n < 2 || got < want[0] || got > want[1] {
			t.Errorf("in %s time, %.1f joined the first recompute on average of %v bursts: want %.1f to %.1f, and 2 bursts or more", what, got, n, want[0], want[1])
		}
		if f["misses"] < f["recomputes"] {
			t.Errorf("in %s time, %v misses made %v recomputes", what, f["misses"], f["recomputes"])
		}
	}
	if diff := cmp.Diff([]alarm{{"hot-key-expiry", "feed", "page"}}, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestSingleFlightIsTheSameInVirtualAndInRealTime(t *testing.T) {
	t.Parallel()
	simulated, actual, found := twice(t, "single-flight", "concurrency: 0", "protect: singleflight", "keys: 1", "keys: 1")
	for what, r := range map[string]*lab.Result{"virtual": simulated, "real": actual} {
		// In real time, who missed just before a value came may find that its
		// flight has landed, and start another: at most one in each process.
		f := r.Truth
		if d := f["recomputes_per_cycle"]; f["bursts"] < 2 || d < 1 || d > instances+1 || f["peak_concurrency"] > 2*instances {
			t.Errorf("in %s time, %v recomputes in each of %v bursts, and %v at once: want one for each of %d instances", what, d, f["bursts"], f["peak_concurrency"], instances)
		}
		// Of some 33 who miss, all but one in each process wait.
		if share := f["deduplicated_share"]; share < 0.7 {
			t.Errorf("in %s time, %.2f of the misses were spared a recompute: want most", what, share)
		}
	}
	if len(found) > 0 {
		t.Errorf("found, though each process recomputes once: %+v", found)
	}
}

func TestSynchronizedExpiryUnderLocksIsTheSameInVirtualAndInRealTime(t *testing.T) {
	t.Parallel()
	const keys = 60
	simulated, actual, found := twice(t, "synchronized", "concurrency: 2", "protect: lock, lock: {ttl: 30s}", "keys: 60", "ttl: 3s", "lock-convoy")
	for what, r := range map[string]*lab.Result{"virtual": simulated, "real": actual} {
		f := r.Truth
		if f["peak_concurrency"] != 1 {
			t.Errorf("in %s time, %v recomputes of one key at once: want one", what, f["peak_concurrency"])
		}
		// Two at a time take 12 s for 60 keys, the first of which expire again.
		if n := f["attempts"]; n < keys || n > 3*keys {
			t.Errorf("in %s time, %v recomputes: want each key's, and few of them again", what, n)
		}
		if !slices.ContainsFunc(r.Onsets, func(o rig.Onset) bool { return o.Detector == "synchronized-expiry" }) {
			t.Errorf("in %s time, the origin never owed more than 2 s of work", what)
		}
	}
	if diff := cmp.Diff([]alarm{{"synchronized-expiry", "feed", "page"}}, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestAScenarioThatNeedsASimulatorIsAnErrorInRealTime(t *testing.T) {
	sc := parse(t, variant("1s", "", "0s"))
	if _, err := lab.Run(t.Context(), sc, lab.Options{Redis: "127.0.0.1:1"}); err == nil || !strings.Contains(err.Error(), "runs only in virtual time") {
		t.Errorf("the error is %v", err)
	}
}
