package detectors_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newExcess() (detectors.Detector, error) {
	return detectors.NewEarlyRefreshExcess(detectors.EarlyRefreshExcessConfig{})
}

func newIneffective() (detectors.Detector, error) {
	return detectors.NewEarlyRefreshIneffective(detectors.EarlyRefreshIneffectiveConfig{})
}

// xfetch is a claim with that beta; 0: not declared.
func xfetch(beta float64) cacheOption {
	return claims(signal.Claims{Protection: []string{signal.ProtectXFetch}, Beta: beta})
}

// refreshed is a tick at which n readers refreshed key 1 early, lead before its
// expiry each, of 300 reads that two instances saw.
func refreshed(at time.Duration, n int, lead time.Duration, change ...keyOption) *signal.Tick {
	all := []keyOption{reads(300), func(k *signal.KeyState) {
		w := k.Window
		w.Early = signal.Early{Count: uint64(n), LeadSum: time.Duration(n) * lead, LeadMax: lead, DeltaMax: 400 * ms}
	}}
	for i := range n {
		all = append(all, ran(uint64(at)+uint64(i), at-500*ms, at-100*ms, signal.CauseEarly))
	}
	return keyTick(at, key(at, append(all, change...)...))
}

// lives is as many lives of key 1, a minute each, that were refreshed early by
// those numbers of readers; by 0: that expired.
func lives(from time.Duration, starts ...int) (out ticks) {
	for i, n := range starts {
		at := from + time.Duration(i+1)*minute
		if n > 0 {
			out = append(out, refreshed(at, n, 2*second))
			continue
		}
		out = append(out, tick(at, burst(at-second, 1, func(e *episode) {
			e.Window.Lookups.Hits = 300
		})))
	}
	return out
}

// late is lives in which the origin was slow, the first after so many minutes:
// refreshed by those numbers of readers, whose recomputes took 1.8 s.
func late(from int, starts ...int) (out ticks) {
	for i, n := range starts {
		at := time.Duration(from+i+1) * minute
		out = append(out, refreshed(at, n, 2*second, func(k *signal.KeyState) { k.Window.Busy = time.Duration(n) * 1800 * ms }))
	}
	return out
}

func fleetOf(n int) cacheOption { return func(c *signal.CacheState) { c.Instances = n } }

// ahead is a claim of refresh-ahead with that ratio.
func ahead(ratio float64) cacheOption {
	return claims(signal.Claims{Protection: []string{signal.ProtectRefreshAhead}, RefreshAhead: ratio})
}

func repeat(n, times int) (out []int) {
	for range times {
		out = append(out, n)
	}
	return out
}

func TestEarlyRefreshExcess(t *testing.T) {
	far := func(n int, lead time.Duration) (out ticks) {
		for i := range n {
			at := time.Duration(i+1) * minute
			out = append(out, refreshed(at, 4, lead))
		}
		return out
	}
	// always is a value of 20 s that is refreshed every second.
	var always ticks
	for at := second; at <= 3*minute; at += second {
		always = append(always, refreshed(at, 2, 19*second, func(k *signal.KeyState) { k.TTL = 20 * second }))
	}
	tellAll(t, newExcess, []story{
		{"nothing happens, and it is quiet", idle(0, 5*second, feed(xfetch(1))), nil},
		{"as many as theory predicts are quiet", in(lives(0, repeat(3, 60)...), xfetch(1)), nil},
		{"5 a life are quiet at beta 1, which explains twice 2.7", in(lives(0, repeat(5, 60)...), xfetch(1)), nil},
		{"6 are a ticket, after twenty lives", in(lives(0, repeat(6, 30)...), xfetch(1)), []string{"20m0s ticket"}},
		{"at beta 2 it takes 4", in(lives(0, repeat(4, 30)...), xfetch(2)), []string{"20m0s ticket"}},
		{"at beta 0.5 it takes 15", in(lives(0, repeat(14, 30)...), xfetch(0.5)), nil},
		{"a beta that is not declared is 1", in(lives(0, repeat(6, 30)...), xfetch(0)), []string{"20m0s ticket"}},
		{"lives that expired do not count", in(lives(0, slices.Concat(repeat(6, 10), repeat(0, 30))...), xfetch(1)), nil},
		{"without a claim one an instance is meant, and a few more", in(lives(0, repeat(8, 30)...), fleetOf(4)), nil},
		{"but not 9 of 4", in(lives(0, repeat(9, 30)...), fleetOf(4)), []string{"20m0s ticket"}},
		{"the same with refresh-ahead", in(lives(0, repeat(8, 30)...), fleetOf(4), ahead(0.2)), nil},
		{"where 9 of 4 are too many", in(lives(0, repeat(9, 30)...), fleetOf(4), ahead(0.2)), []string{"20m0s ticket"}},
		{"a slow recompute brings many, and says nothing of the others", in(slices.Concat(lives(0, repeat(3, 15)...), late(16, 90), lives(16*minute, repeat(3, 30)...)), xfetch(1)), nil},
		{"if all are slow they count", in(late(0, repeat(90, 30)...), xfetch(1)), []string{"20m0s ticket"}},
		{"a lead of a quarter of the life is quiet", in(far(20, 15*second), xfetch(1)), nil},
		{"a longer one is a ticket, after five lives and twenty refreshes", in(far(20, 15*second+100*ms), xfetch(1)), []string{"5m0s ticket"}},
		{"a quarter of the life is quiet without a claim, too", in(far(20, 15*second)), nil},
		{"and more than that a ticket", in(far(20, 15*second+100*ms)), []string{"5m0s ticket"}},
		{"refresh-ahead may have the lead it claims", in(far(20, 24*second), ahead(0.4)), nil},
		{"but not more by a tenth", in(far(20, 27*second), ahead(0.4)), []string{"5m0s ticket"}},
		{"a lead of half the life is meant if it is claimed", in(far(20, 30*second), ahead(0.9)), nil},
		{"more is thrown away whatever is claimed", in(far(20, 31*second), ahead(0.9)), []string{"5m0s ticket"}},
		{"a value that is refreshed all the time has lives all the same", in(always, xfetch(10)), []string{"1m21s ticket"}},
		{"it clears after half an hour", slices.Concat(in(lives(0, repeat(6, 20)...), xfetch(1)), idle(20*minute+second, 60*minute, feed(xfetch(1)))), []string{"20m0s ticket", "50m0s cleared"}},
	})
}

func TestEarlyRefreshIneffective(t *testing.T) {
	seldom := func(n int) (out ticks) { // one read a minute, which finds nothing
		for i := range n {
			at := time.Duration(i+1) * minute
			out = append(out, tick(at, burst(at-second, 1, func(e *episode) { e.Window.Lookups.Misses = 1 })))
		}
		return out
	}
	mixed := func(expired, early int) []int { return slices.Concat(repeat(0, expired), repeat(3, early)) }
	tellAll(t, newIneffective, []story{
		{"nothing happens, and it is quiet", idle(0, 5*second, feed(xfetch(1))), nil},
		{"a key that is refreshed is quiet", in(lives(0, repeat(3, 60)...), xfetch(1)), nil},
		{"one that always expires is a ticket, after twenty lives", in(lives(0, repeat(0, 30)...), xfetch(1)), []string{"20m0s ticket"}},
		{"nineteen are too few", in(lives(0, repeat(0, 19)...), xfetch(1)), nil},
		{"11 of 20 are a ticket", in(lives(0, mixed(11, 9)...), xfetch(1)), []string{"20m0s ticket"}},
		{"10 of 20 may be chance", in(lives(0, mixed(10, 10)...), xfetch(1)), nil},
		{"a tenth of many is quiet", in(lives(0, slices.Concat(repeat(3, 27), repeat(0, 3), repeat(3, 30))...), xfetch(1)), nil},
		{"without the claim nothing is found", in(lives(0, repeat(0, 30)...)), nil},
		{"with a small beta theory promises nothing", in(lives(0, repeat(0, 30)...), xfetch(0.01)), nil},
		{"keys that are seldom read are information on the cache", in(seldom(30), xfetch(1)), []string{"20m0s feed/0 info"}},
		{"evictions are no expiries", in(func() ticks {
			ts := lives(0, repeat(0, 30)...)
			for _, tk := range ts {
				s := &tk.Episodes[0].Window.Recomputes.Started
				s[signal.CauseEvicted], s[signal.CauseExpired] = s[signal.CauseExpired], 0
			}
			return ts
		}(), xfetch(1)), nil},
		{"it clears after half an hour", slices.Concat(in(lives(0, repeat(0, 20)...), xfetch(1)), idle(20*minute+second, 60*minute, feed(xfetch(1)))), []string{"20m0s ticket", "50m0s cleared"}},
	})
}

// TestEarlyRefreshFollowsTheory plays XFetch itself, at several rates.
func TestEarlyRefreshFollowsTheory(t *testing.T) {
	const delta, beta, life = 0.4, 1.0, 60.0
	for _, rate := range []float64{0.05, 10, 50, 300} {
		rng := rand.New(rand.NewPCG(uint64(rate*100), 1))
		var ts ticks
		at, id := time.Duration(0), uint64(0)
		for range 120 {
			// The first reader whose luck has it, in the last 8 s, and those
			// who follow while it recomputes; or the first after the expiry.
			now, starts, done, lead := max(0, life-8), 0, math.Inf(1), 0.0
			for now < min(done, life) {
				now += rng.ExpFloat64() / rate
				if left := life - now; left > 0 && now < done && -delta*beta*math.Log(1-rng.Float64()) >= left {
					if starts++; starts == 1 {
						done, lead = now+delta, left
					}
				}
			}
			at += time.Duration(min(now, done) * float64(second))
			id++
			if starts > 0 {
				ts = append(ts, refreshed(at, starts, time.Duration(lead*float64(second)), reads(uint64(rate*2))))
			} else {
				ts = append(ts, tick(at, burst(at-second, 1, func(e *episode) { e.Window.Lookups.Misses = uint64(max(1, rate)) })))
			}
		}
		for _, d := range []detectors.Detector{made(t)(newExcess()), made(t)(newIneffective())} {
			for _, f := range play(d, in(ts, xfetch(beta))) {
				if !strings.HasSuffix(f, "info") || rate*beta*delta >= 1 {
					t.Errorf("at %v reads/s %s says %s", rate, d.Doc().ID, f)
				}
			}
		}
	}
}

func TestEarlyRefreshSaysWhatItKnows(t *testing.T) {
	excess := lastOf(t, made(t)(newExcess()), in(lives(0, repeat(6, 20)...), xfetch(1)))
	if want := "feed:* in cache feed: 6.0 early refreshes a life; XFetch explains 2.7."; excess.Summary != want {
		t.Errorf("summary %q, want %q", excess.Summary, want)
	}
	want := []detectors.Evidence{
		{Name: "starts", Value: 6, Unit: "{recompute}", Note: "a life that was refreshed early; a ticket above 5.4"},
		{Name: "starts.theory", Value: math.E, Unit: "{recompute}", Note: "e^(1/beta)"},
		{Name: "lead", Value: 2, Unit: "s", Note: "before the expiry, on average"},
		{Name: "ttl", Value: 60, Unit: "s"},
		{Name: "beta", Value: 1, Unit: "1", Note: "as declared"},
		{Name: "recompute.mean", Value: 0.4, Unit: "s"},
		{Name: "cycles", Value: 20, Unit: "{cycle}", Note: "with an early refresh"},
	}
	if diff := cmp.Diff(want, excess.Evidence); diff != "" {
		t.Errorf("evidence of excess (-want +got):\n%s", diff)
	}
	f := lastOf(t, made(t)(newIneffective()), in(lives(0, repeat(0, 20)...), xfetch(0)))
	if want := "feed:* in cache feed: 20 of its last 20 lives ended in an expiry; with XFetch theory allows less than 0.1 %."; f.Summary != want {
		t.Errorf("summary %q, want %q", f.Summary, want)
	}
	if share, _ := f.Get("expired.share"); share != 1 {
		t.Errorf("share of expiries %v, want 1", share)
	}
	if reach, _ := f.Get("reach"); reach < 100 || reach > 150 {
		t.Errorf("reach %v, want about 300 reads/s times 0.4 s", reach)
	}
}

func TestEarlyRefreshSaysWhatItCannotJudge(t *testing.T) {
	undeclared := func(c *signal.CacheState) { c.Work.Early = 1 }
	const unknownBeta = "feed: The beta of its XFetch is not declared: it is taken to be 1."
	tests := []struct {
		name                string
		cache               []cacheOption
		excess, ineffective []string
	}{
		{"nothing is claimed", []cacheOption{undeclared},
			[]string{"feed: Values are refreshed early, and how is not declared: as many as there are instances are taken for meant. Claim xfetch and its beta, or refresh_ahead and its ratio."},
			[]string{"feed: Not enough data: values are refreshed early, and how is not declared. Claim xfetch and its beta."}},
		{"a beta is not", []cacheOption{undeclared, xfetch(0)}, []string{unknownBeta}, []string{unknownBeta}},
		{"a ratio is not", []cacheOption{undeclared, ahead(0)},
			[]string{"feed: The ratio of its refresh-ahead is not declared: a lead of a quarter of the life is the most that is taken for meant."}, nil},
		{"all is", []cacheOption{undeclared, ahead(0.2)}, nil, nil},
	}
	for _, tc := range tests {
		for _, x := range []struct {
			detectors.Detector
			want []string
		}{{made(t)(newExcess()), tc.excess}, {made(t)(newIneffective()), tc.ineffective}} {
			x.Observe(in(idle(0, 0), tc.cache...)[0])
			if diff := cmp.Diff(x.want, unsure(x.Detector)); diff != "" {
				t.Errorf("%s: %s: limits (-want +got):\n%s", x.Doc().ID, tc.name, diff)
			}
		}
	}
}
