package score_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/score"
)

const everything = `
name: everything
duration: 100s
fleet: {clock_skew: 5s}
origins: {db: {concurrency: 8}}
caches:
  a:
    origin: db
    ttl: 60s
    jitter: {spread: 10s}
    sweep: {every: 40s, phase: 20s}
    recompute: {p50: 1s, p99: 2s}
    protect: [xfetch, lock]
    xfetch: {beta: 2, clamp: 4s}
    lock: {ttl: 8s}
    lease: {every: 12s}
    stale_grace: 16s
    client: {timeout: 20s, backoff: 400ms, cache_errors: 4s, hedge: 800ms}
workloads: [{cache: a, rate: 10}]
events:
  - {at: 4s, do: warm, cache: a, over: 8s, ttl: 12s}
  - {at: 20s, do: load, factor: 3, for: 24s}
expect: [{detector: hot-key-expiry, cache: a, within: 2s, after: 40s}]
forbid: [overload]
truth: {reads: {mean: 1000, tolerance: 1}}
`

// An error in milliseconds here would be one in a test there.
func TestAShiftMovesEveryTimeAndRateByOneFactor(t *testing.T) {
	sc := parse(t, everything)
	slow := score.Shift{Name: "slow", Time: 1.25}.Apply(sc)
	if diff := cmp.Diff(parse(t, everything), sc); diff != "" {
		t.Fatalf("the scenario has changed (-before +after):\n%s", diff)
	}
	want := parse(t, everything)
	want.Duration, want.Truth = 125*time.Second, nil
	a := want.Caches["a"]
	a.TTL, a.Jitter.Spread, a.StaleGrace = 75*time.Second, 12500*time.Millisecond, 20*time.Second
	a.Recompute = scenario.Recompute{P50: 1250 * time.Millisecond, P99: 2500 * time.Millisecond}
	a.XFetch.Clamp, a.Lock.TTL, a.Lease.Every = 5*time.Second, 10*time.Second, 15*time.Second
	a.Client.Timeout, a.Client.Backoff = 25*time.Second, 500*time.Millisecond
	a.Sweep = scenario.Sweep{Every: 50 * time.Second, Phase: 25 * time.Second}
	a.Client.CacheErrors, a.Client.Hedge = 5*time.Second, time.Second
	want.Caches["a"] = a
	want.Workloads[0].Rate = 8
	want.Events[0].At, want.Events[0].Over, want.Events[0].TTL = 5*time.Second, 10*time.Second, 15*time.Second
	want.Events[1].At, want.Events[1].For = 25*time.Second, 30*time.Second
	want.Expect[0].Within, want.Expect[0].After = 2500*time.Millisecond, 50*time.Second
	if diff := cmp.Diff(want, slow); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFasterPaceDoesNotAskForFasterDetection(t *testing.T) {
	fast := score.Shift{Name: "fast", Time: 0.8}.Apply(parse(t, everything))
	if fast.Expect[0].Within != 2*time.Second || fast.Workloads[0].Rate != 12.5 {
		t.Errorf("within %v at %v reads per second, want 2s at 12.5", fast.Expect[0].Within, fast.Workloads[0].Rate)
	}
}

func TestWithoutAShiftTheScenarioIsAsItIs(t *testing.T) {
	sc := parse(t, everything)
	if diff := cmp.Diff(sc, score.Shifts()[0].Apply(sc)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeldOutAndTuningSeedsDoNotMeet(t *testing.T) {
	if diff := cmp.Diff([]uint64{1001, 1002}, score.HeldOut(2)); diff != "" {
		t.Errorf("held out (-want +got):\n%s", diff)
	}
	tuning := score.Tuning(5000)
	if len(tuning) != score.MaxTuningSeeds || tuning[0] != 1 || tuning[len(tuning)-1] >= score.HeldOut(1)[0] {
		t.Errorf("tuning: %d seeds, from %d to %d", len(tuning), tuning[0], tuning[len(tuning)-1])
	}
}
