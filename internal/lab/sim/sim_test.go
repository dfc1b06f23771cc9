package sim_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/sim"
)

// figures runs a scenario that nobody watches.
func figures(t *testing.T, text string) map[string]float64 {
	t.Helper()
	return run(t, text, sim.Options{}).Figures()
}

func run(t *testing.T, text string, o sim.Options) *sim.Sim {
	t.Helper()
	sc, err := scenario.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(sc, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

// hotKey is one key at 300 reads/s that takes 400 ms; what is given replaces or
// adds to it.
func hotKey(duration, ttl, origin, cache, more string) string {
	return fmt.Sprintf(`
name: hot-key
duration: %s
fleet: {instances: 20}
origins:
  db: {%s}
caches:
  feed: {origin: db, ttl: %s, recompute: {fixed: 400ms}, %s}
workloads:
  - {cache: feed, keys: 1, rate: 300}
events:
  - {at: 0s, do: warm, cache: feed}
%s`, duration, origin, ttl, cache, more)
}

// near fails unless v is within sigmas standard errors of want.
func near(t *testing.T, what string, v, want, stderr, sigmas float64) {
	t.Helper()
	if math.Abs(v-want) > sigmas*stderr {
		t.Errorf("%s is %.4g: want %.4g, give or take %.2g", what, v, want, sigmas*stderr)
	}
}

func TestANaiveHotKeyMakesOnePlusPoissonRecomputesPerCycle(t *testing.T) {
	f := figures(t, hotKey("20m", "4s", "concurrency: 0", "protect: none", ""))
	n := f["bursts"]
	if n < 250 {
		t.Fatalf("%v cycles: want enough for a mean", n)
	}
	near(t, "recomputes per cycle", f["recomputes_per_cycle"], 121, math.Sqrt(120/n), 4)
	near(t, "the coefficient", f["coefficient"], 1, math.Sqrt(120/n)/120, 4)
	if f["recomputes_per_cycle_max"] != f["peak_concurrency"] {
		t.Errorf("%v in one cycle and %v at once: without a queue they are the same", f["recomputes_per_cycle_max"], f["peak_concurrency"])
	}
}

func TestXFetchStartersFollowTheGeometricLaw(t *testing.T) {
	for _, beta := range []float64{1, 1.5, 2} {
		f := figures(t, hotKey("90m", "12s", "concurrency: 0", fmt.Sprintf("protect: xfetch, xfetch: {beta: %v}", beta), ""))
		n, mean := f["bursts"], math.Exp(1/beta)
		// A geometric law with that mean has variance mean*(mean-1).
		near(t, fmt.Sprintf("starters per cycle with beta %v", beta), f["recomputes_per_cycle"], mean, math.Sqrt(mean*(mean-1)/n), 4)
		few := 1 - math.Pow(1-1/mean, 3)
		near(t, fmt.Sprintf("the share of cycles of at most 3 with beta %v", beta), f["starters_share_le_3"], few, math.Sqrt(few*(1-few)/n), 4)
		// The lead of the first is about beta*delta*(ln(rate*beta*delta) + 0.577).
		lead := beta * 0.4 * (math.Log(300*beta*0.4) + 0.5772)
		if got := f["mean_lead_seconds"]; got < 0.7*lead || got > 1.1*lead {
			t.Errorf("the mean lead with beta %v is %.3g s: want about %.3g, less what later starters take off it", beta, got, lead)
		}
		if f["expired_miss_share"] != 0 {
			t.Errorf("with beta %v the share of cycles that ended in a miss is %v: want none", beta, f["expired_miss_share"])
		}
	}
}

func TestXFetchDoesNothingForAColdKey(t *testing.T) {
	text := strings.Replace(hotKey("120h", "60s", "concurrency: 0", "protect: xfetch", ""), "rate: 300", "rate: 0.016667", 1)
	f := figures(t, text)
	want := math.Exp(-0.016667 * 0.4)
	near(t, "the share of cycles that end in a miss", f["expired_miss_share"], want, math.Sqrt(want*(1-want)/f["bursts"]), 4)
}

func TestASynchronizedExpiryRefillsAtThePaceOfTheOrigin(t *testing.T) {
	const text = `
name: sync
duration: 30m
origins:
  db: {concurrency: 8, recheck: %v}
caches:
  feed: {origin: db, ttl: 2h, recompute: {fixed: 400ms}, protect: %s, client: {timeout: 2h}}
workloads:
  - {cache: feed, keys: 1000, rate: 500}
events:
  - {at: 0s, do: warm, cache: feed, ttl: 60s}
`
	f := figures(t, fmt.Sprintf(text, true, "singleflight"))
	if f["recomputes"] != 1000 || math.Abs(f["refill_seconds"]-50) > 0.4 || math.Abs(f["origin_busy_seconds"]-50) > 0.4 {
		t.Errorf("coalesced: %v recomputes in %v s, %v of them busy: want 1000 in 50 s", f["recomputes"], f["refill_seconds"], f["origin_busy_seconds"])
	}
	f = figures(t, fmt.Sprintf(text, false, "none"))
	// All reads of a key that is not filled yet come to about 24 a key.
	near(t, "recomputes without coalescing", f["recomputes"], 24000, 500, 3)
	near(t, "busy seconds without coalescing", f["origin_busy_seconds"], 1200, 25, 3)
	// The last key is first read when 1,000 exponential times of mean 2 s are
	// over: ln(1000)+0.577 of them, with a deviation of pi/sqrt(6) of them. Each
	// second of that is 25 s of queue, less what is hit by then.
	near(t, "the last fill", f["refill_seconds"], 289, 25*2*math.Pi/math.Sqrt(6), 3)
}

func TestDuplicatesOutliveTheFreshValueUnlessWhoeverGetsASlotLooksAgain(t *testing.T) {
	f := figures(t, hotKey("10m", "60s", "concurrency: 8", "client: {timeout: 1m}", ""))
	rounds := math.Ceil(f["recomputes_per_cycle_max"] / 8)
	if want := 0.4 * rounds; math.Abs(f["wait_max_seconds"]-want) > 0.4 {
		t.Errorf("the longest wait is %v s: want %v, for %v rounds of 8", f["wait_max_seconds"], want, rounds)
	}
	f = figures(t, hotKey("10m", "60s", "concurrency: 8, recheck: true", "client: {timeout: 1m}", ""))
	if f["recomputes_per_cycle"] != 8 || f["wait_max_seconds"] > 0.43 {
		t.Errorf("%v per cycle, and a wait of %v s: want 8, and at most 0.43", f["recomputes_per_cycle"], f["wait_max_seconds"])
	}
}

func TestEachProtectionReducesTheCoefficientAsTheorySays(t *testing.T) {
	for name, c := range map[string]struct {
		cache    string
		low, top float64
	}{
		"none: one": {"protect: none", 0.97, 1.03},
		"single-flight: at most one per instance":      {"protect: singleflight", 0.14, 0.16},
		"XFetch: e-1 of 120":                           {"protect: xfetch", 0.011, 0.018},
		"refresh-ahead: at most one per instance":      {"protect: refresh_ahead", 0, 0.16},
		"a lock: zero":                                 {"protect: lock, client: {timeout: 10s}", 0, 0},
		"a lock behind single-flight: zero":            {"protect: [singleflight, lock], client: {timeout: 10s}", 0, 0},
		"a lease with the old value: zero":             {"protect: lease, lease: {every: 2s}, stale_grace: 60s", 0, 0},
		"stale while revalidating: one per instance":   {"protect: swr, stale_grace: 60s", 0.13, 0.16},
		"XFetch behind a lock: zero":                   {"protect: [xfetch, lock], client: {timeout: 10s}", 0, 0},
		"early refresh behind single-flight: few":      {"protect: [xfetch, singleflight]", 0.005, 0.018},
		"a lock where others do without: zero":         {"protect: lock, lock: {wait: not_found}", 0, 0},
		"a lock where others take the old one: zero":   {"protect: lock, lock: {wait: stale}, stale_grace: 60s", 0, 0},
		"refresh-ahead behind a lock: zero":            {"protect: [refresh_ahead, lock], client: {timeout: 10s}", 0, 0},
		"stale while revalidating, under a lock: zero": {"protect: [swr, lock], stale_grace: 60s", 0, 0},
	} {
		f := figures(t, hotKey("12m", "4s", "concurrency: 0", c.cache, ""))
		if s := f["coefficient"]; f["bursts"] < 150 || s < c.low || s > c.top {
			t.Errorf("%s: the coefficient over %v cycles is %.4g: want %v to %v", name, f["bursts"], s, c.low, c.top)
		}
	}
}

func TestACrashedHolderParksRateTimesLockTTL(t *testing.T) {
	f := figures(t, hotKey("3m", "60s", "concurrency: 8", "protect: lock, lock: {ttl: 5s}, client: {timeout: 30s}",
		"  - {at: 30s, do: kill_holder, cache: feed}\n"))
	near(t, "readers parked at the release", f["parked_at_release"], 1500, math.Sqrt(1500), 3)
	if f["peak_concurrency"] != 1 {
		t.Errorf("%v recomputes at once: want one", f["peak_concurrency"])
	}
}

func TestALockThatIsTooShortLetsASecondHolderIn(t *testing.T) {
	const cache = "protect: lock, lock: {ttl: 10s, fenced: %v}, client: {timeout: 60s}"
	slow := "  - {at: 25s, do: slow, origin: db, factor: 30, for: 7s}\n"
	for fenced, stale := range map[bool]float64{false: 1, true: 0} {
		f := figures(t, hotKey("50s", "30s", "concurrency: 8", fmt.Sprintf(cache, fenced), slow))
		if f["locks_lost"] < 1 || f["peak_concurrency"] != 2 || f["stale_writes"] != stale {
			t.Errorf("fenced %v: %v locks lost, %v at once, %v stale writes: want at least 1, 2 and %v", fenced, f["locks_lost"], f["peak_concurrency"], f["stale_writes"], stale)
		}
	}
}

func TestALeaseIsGivenOutOncePerPeriod(t *testing.T) {
	f := figures(t, hotKey("100s", "100ms", "concurrency: 0", "protect: lease, lease: {every: 10s}, stale_grace: 1h", ""))
	if f["recomputes"] > 11 {
		t.Errorf("%v recomputes in 100 s: want one per 10 s", f["recomputes"])
	}
}

func TestRetriesMultiplyAttemptsOnlyAsFarAsTheyAreAllowed(t *testing.T) {
	f := figures(t, `
name: retries
duration: 1m
fleet: {instances: 4}
origins:
  db: {concurrency: 0}
caches:
  feed: {origin: db, ttl: 60s, recompute: {fixed: 10ms}, client: {timeout: 1s, attempts: 3, backoff: 10ms}}
workloads:
  - {cache: feed, keys: 5000000, rate: 100, arrivals: even}
events:
  - {at: 0s, do: fail, origin: db, share: 1, for: 3m}
`)
	if a := f["attempts_per_request"]; math.Abs(a-3) > 0.01 || f["goodput"] != 0 {
		t.Errorf("%v attempts a request and a goodput of %v: want 3 and none", a, f["goodput"])
	}
}

func TestSheddingRefusesWhatItCannotServeInTime(t *testing.T) {
	const text = `
name: overload
duration: 2m
origins:
  db: {concurrency: 10, queue: %s}
caches:
  feed: {origin: db, ttl: 60s, recompute: {fixed: 100ms}, client: {timeout: 1s}}
workloads:
  - {cache: feed, keys: 5000000, rate: 200}
`
	queued, shed := figures(t, fmt.Sprintf(text, "fifo")), figures(t, fmt.Sprintf(text, "shed"))
	if queued["goodput"] > 0.1 || shed["goodput"] < 0.45 || shed["refused"] == 0 {
		t.Errorf("goodput at twice the capacity is %v with a queue and %v with shedding: want next to none, and half", queued["goodput"], shed["goodput"])
	}
}

func TestLateResultsFillTheCacheOnlyIfTheClientLetsThem(t *testing.T) {
	const cache = "client: {timeout: 300ms, fill_late: %v}"
	for late, want := range map[bool]bool{true: true, false: false} {
		f := figures(t, hotKey("2m", "10s", "concurrency: 0", fmt.Sprintf(cache, late), ""))
		if got := f["late_fills"] > 0; got != want {
			t.Errorf("fill_late %v: %v late fills", late, f["late_fills"])
		}
	}
}

func TestTheSameSeedIsTheSameRunAndAnotherIsAnother(t *testing.T) {
	text := hotKey("5m", "20s", "concurrency: 8", "protect: xfetch", "")
	a, b, c := run(t, text, sim.Options{}).Figures(), run(t, text, sim.Options{Seed: 1}).Figures(), run(t, text, sim.Options{Seed: 2}).Figures()
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("one seed, two runs:\n%v\n%v", a, b)
	}
	if fmt.Sprint(a) == fmt.Sprint(c) {
		t.Error("two seeds, one run")
	}
}

func TestArrivalsDoNotDependOnTheProtection(t *testing.T) {
	a := figures(t, hotKey("5m", "20s", "concurrency: 8", "protect: none", ""))
	b := figures(t, hotKey("5m", "20s", "concurrency: 8", "protect: [singleflight, lock]", ""))
	if a["reads"] != b["reads"] {
		t.Errorf("%v reads and %v", a["reads"], b["reads"])
	}
}

func TestEachLossTakesItsShareOfTheCache(t *testing.T) {
	const text = `
name: loss
duration: 100s
origins:
  db: {concurrency: 0}
caches:
  feed: {origin: db, ttl: 1h, recompute: {fixed: 1ms}}
workloads:
  - {cache: feed, keys: 2000, rate: 2000}
events:
  - {at: 0s, do: warm, cache: feed}
  - {at: 1s, %s}
`
	for loss, want := range map[string]float64{
		"do: flush, cache: feed": 1, "do: evict, share: 0.3, cache: feed": 0.3, "do: node_loss, share: 0.25, cache: feed": 0.25,
		"do: invalidate, cache: feed, key: \"feed:3\"": 1 / 2000.0,
	} {
		f := figures(t, fmt.Sprintf(text, loss))
		near(t, loss, f["misses"]/2000, want, math.Sqrt(want*(1-want)/2000)+0.002, 4)
	}
}

func TestNegativeKeysAreNeverStored(t *testing.T) {
	f := figures(t, `
name: penetration
duration: 60s
origins:
  db: {concurrency: 0}
caches:
  feed: {origin: db, ttl: 1h, recompute: {fixed: 1ms}, negative: 0.5}
workloads:
  - {cache: feed, keys: 100, rate: 1000}
`)
	if h := f["hit_ratio"]; h < 0.35 || h > 0.65 || f["negative"] == 0 {
		t.Errorf("the hit ratio is %v: want that of the half that exists", h)
	}
}
