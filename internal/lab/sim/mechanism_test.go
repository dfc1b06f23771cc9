package sim_test

import (
	"fmt"
	"math"
	"testing"
)

// keys is 1,000 keys at 1,000 reads/s that take 50 ms; what is given replaces or
// adds to it.
func keys(duration, origin, cache, events string) string {
	return fmt.Sprintf(`
name: keys
duration: %s
fleet: {instances: 4}
origins:
  db: {%s}
caches:
  feed: {origin: db, recompute: {fixed: 50ms}, %s}
workloads:
  - {cache: feed, keys: 1000, rate: 1000}
events:
  - {at: 0s, do: warm, cache: feed}
%s`, duration, origin, cache, events)
}

func TestASweepUndoesTheJitter(t *testing.T) {
	const ttl = "protect: singleflight, ttl: 100s, jitter: {spread: 50s, shape: symmetric}"
	// 10 keys a second come due in the one, and 10 s of them at each sweep in the
	// other, all of which are read again within a few seconds.
	prompt := figures(t, keys("10m", "concurrency: 2", ttl, ""))
	swept := figures(t, keys("10m", "concurrency: 2", ttl+", sweep: {every: 10s, phase: 5s}", ""))
	near(t, "values due per second", prompt["due_per_second"], 10, 0.03, 4)
	if prompt["queue_peak"] > 25 || swept["queue_peak"] < 40 {
		t.Errorf("at most %v wait without sweeps and %v with them: want a few, and dozens", prompt["queue_peak"], swept["queue_peak"])
	}
}

func TestReadersBeyondTheWaitersOfASingleFlightRecompute(t *testing.T) {
	const one = "protect: singleflight, singleflight: {waiters: %d}"
	for waiters, want := range map[int]float64{0: 20, 1: 100, 5: 40} {
		f := figures(t, hotKey("20m", "30s", "concurrency: 0", fmt.Sprintf(one, waiters), ""))
		// Of the 121 readers of a burst, 6 come to each of the 20 instances: one
		// leads, some wait, the others pass.
		if got := f["recomputes_per_cycle"]; math.Abs(got-want) > 0.15*want {
			t.Errorf("%d waiters: %v recomputes per cycle: want about %v", waiters, got, want)
		}
	}
}

func TestALockThatIsLeftLastsForItsTime(t *testing.T) {
	const lock = "protect: lock, lock: {ttl: 5s, release: %s}, client: {timeout: 1s}"
	slow := "  - {at: 29s, do: slow, origin: db, factor: 10, for: 2s}\n"
	for release, want := range map[string]float64{"always": 0, "on_success": 1} {
		f := figures(t, hotKey("58s", "30s", "concurrency: 8", fmt.Sprintf(lock, release), slow))
		if f["locks_left"] != want || f["peak_concurrency"] != 1 {
			t.Errorf("release %s: %v locks left and %v at once: want %v and 1", release, f["locks_left"], f["peak_concurrency"], want)
		}
		// Whoever misses while it lasts waits for a second in vain, but for those
		// of the last second who see the end of the next recompute.
		if want == 1 {
			near(t, "readers in vain", f["reads"]*(1-f["goodput"]), 300*4.4, math.Sqrt(300*4.4), 4)
		}
	}
}

func TestWhoDoesNotLookAgainTakesTheLockInTurn(t *testing.T) {
	const lock = "protect: lock, lock: {ttl: 5s, recheck: false, release: %s}, client: {timeout: 1h}"
	for release, wait := range map[string]float64{"always": 0.4 * 120, "never": 5 * 120} {
		f := figures(t, hotKey("15m", "1h", "concurrency: 8", fmt.Sprintf(lock, release), "  - {at: 60s, do: flush, cache: feed}\n"))
		// 120 readers come while the first recomputes, and all have their turn.
		near(t, "parked readers", f["parked_peak"], 120, math.Sqrt(120), 4)
		if got := f["wait_max_seconds"]; math.Abs(got-wait) > 0.4*wait {
			t.Errorf("release %s: the longest wait is %v s: want about %v", release, got, wait)
		}
	}
}

func TestAFailureThatIsStoredIsServedInPlaceOfTheValue(t *testing.T) {
	const errs = "ttl: 30s, protect: singleflight, client: {timeout: 200ms, cache_errors: %s}"
	fail := "  - {at: 60s, do: fail, origin: db, share: 1, for: 10s}\n"
	plain := figures(t, keys("2m", "concurrency: 100", fmt.Sprintf(errs, "0s"), fail))
	stored := figures(t, keys("2m", "concurrency: 100", fmt.Sprintf(errs, "8s"), fail))
	if plain["failures_served"] != 0 || stored["failures_served"] < 5000 {
		t.Errorf("%v and %v stored failures served: want none, and thousands", plain["failures_served"], stored["failures_served"])
	}
	if plain["attempts_failed"] < 2*stored["attempts_failed"] {
		t.Errorf("%v failed attempts, and %v with failures stored: want far fewer", plain["attempts_failed"], stored["attempts_failed"])
	}
	if stored["goodput_end"] != 1 {
		t.Errorf("goodput at the end is %v: want all", stored["goodput_end"])
	}
}

func TestAHedgedCallTakesTheFirstAnswer(t *testing.T) {
	text := func(hedge string) string {
		return fmt.Sprintf(`
name: hedge
duration: 5m
origins:
  db: {concurrency: 0}
caches:
  feed: {origin: db, ttl: 10s, recompute: {p50: 50ms, p99: 2s}, client: {timeout: 10s, hedge: %s}}
workloads:
  - {cache: feed, keys: 1000, rate: 200}
`, hedge)
	}
	plain, hedged := figures(t, text("0s")), figures(t, text("200ms"))
	if plain["hedges"] != 0 || hedged["hedges"] < 100 {
		t.Errorf("%v and %v hedges: want none, and hundreds", plain["hedges"], hedged["hedges"])
	}
	if hedged["attempts_per_request"] != 1 || hedged["peak_concurrency"] > plain["peak_concurrency"] {
		t.Errorf("%v attempts per request and %v at once: want a hedge to be neither an attempt nor a recompute", hedged["attempts_per_request"], hedged["peak_concurrency"])
	}
	if hedged["wait_max_seconds"] > 0.7*plain["wait_max_seconds"] {
		t.Errorf("the longest wait is %v s with hedges and %v without: want it to be shorter", hedged["wait_max_seconds"], plain["wait_max_seconds"])
	}
}

func TestAnOriginThatIsToldStopsWorkingForThoseWhoGaveUp(t *testing.T) {
	const text = `
name: cancel
duration: 2m
origins:
  db: {concurrency: 10, cancel: %v}
caches:
  feed: {origin: db, ttl: 60s, recompute: {fixed: 100ms}, client: {timeout: 1s, fill_late: true}}
workloads:
  - {cache: feed, keys: 5000000, rate: 200}
`
	kept, cancelled := figures(t, fmt.Sprintf(text, false)), figures(t, fmt.Sprintf(text, true))
	// 200 a second wait for a second each.
	if kept["queue_peak"] < 10000 || cancelled["queue_peak"] > 300 {
		t.Errorf("at most %v wait, and %v if they can be cancelled: want a hundred a second more and more, and 200", kept["queue_peak"], cancelled["queue_peak"])
	}
	if kept["late_fills"] == 0 || cancelled["late_fills"] != 0 {
		t.Errorf("%v and %v late fills: want some, and none where work is cancelled", kept["late_fills"], cancelled["late_fills"])
	}
}

func TestLoadFollowsTheRolloutOfABuildThatDoesNotCoalesce(t *testing.T) {
	f := figures(t, hotKey("12m", "20s", "concurrency: 0", "protect: singleflight", "  - {at: 1m, do: deploy, build: v2, over: 10m, protect: none}\n"))
	if c := f["rollout_correlation"]; c < 0.9 {
		t.Errorf("the correlation is %v: want nearly 1", c)
	}
	same := figures(t, hotKey("12m", "20s", "concurrency: 0", "protect: none", "  - {at: 1m, do: deploy, build: v2, over: 10m}\n"))
	if c := same["rollout_correlation"]; math.Abs(c) > 0.7 {
		t.Errorf("the correlation of a build that changes nothing is %v: want none", c)
	}
}
