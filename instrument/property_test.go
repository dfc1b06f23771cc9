package instrument_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// TestAnyOrderOfCallsIsCountedExactly drives the monitor with whatever calls an
// application may make, and a plain count beside it.
func TestAnyOrderOfCallsIsCountedExactly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m, r, c := newMonitor(t, instrument.Options{MissTimeout: 5 * time.Second})
		keys := rapid.SampledFrom([]string{"a:1", "b:1", ""})
		var runs []instrument.Run
		var misses, starts, ends, stores, followers uint64
		inferable := map[string]int{}
		do := map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"miss": func(rt *rapid.T) {
				k := keys.Draw(rt, "key")
				m.ObserveMiss(t.Context(), k)
				inferable[k]++
				misses++
			},
			"begin": func(rt *rapid.T) {
				runs = append(runs, m.Begin(keys.Draw(rt, "key"), instrument.Start{}))
				starts++
			},
			"end": func(rt *rapid.T) {
				if len(runs) == 0 {
					return
				}
				runs[0].End(rapid.SampledFrom([]signal.Outcome{signal.OutcomeOK, signal.OutcomeFailed}).Draw(rt, "outcome"))
				runs = runs[1:]
				ends++
			},
			"store":  func(rt *rapid.T) { m.Store(keys.Draw(rt, "key"), instrument.Expiry{TTL: time.Second}); stores++ },
			"follow": func(rt *rapid.T) { m.Follow(keys.Draw(rt, "key")).Done(); followers++ },
			"step":   func(rt *rapid.T) { c.Step(time.Duration(rapid.IntRange(-10, 2000).Draw(rt, "ms")) * time.Millisecond) },
			"flush":  func(*rapid.T) { m.Flush() },
			"urgent": func(*rapid.T) { m.FlushUrgent() },
			"gone":   func(rt *rapid.T) { m.Invalidate(keys.Draw(rt, "key")) },
		}
		rt.Repeat(do)
		for _, run := range runs {
			run.End(signal.OutcomeOK)
			ends++
		}
		var got [5]uint64
		for _, g := range m.Snapshot().Groups {
			got[0] += g.Lookups.Misses
			got[1] += g.Recomputes.Starts()
			for o := range signal.NumOutcomes {
				got[2] += g.Recomputes.Ends(o)
			}
			got[3] += g.Stores
			got[4] += g.Coalesced
		}
		if want := [5]uint64{misses, starts, ends, stores, followers}; got != want {
			rt.Fatalf("misses, starts, ends, stores, followers %v; want %v", got, want)
		}
		for _, w := range r.windows {
			if w.End < w.Start || w.Busy < 0 || w.Duplicates > w.Recomputes.Starts() || int(w.InFlightPeak) > int(starts) || len(w.Intervals) > signal.MaxIntervals {
				rt.Fatalf("impossible window: %+v", w)
			}
		}
	})
}

// TestAClientHookAloneIsCountedExactly does the same with what a hook can call:
// whatever the monitor makes of the habits it sees, every recompute it starts it
// ends, and it never makes more of them than there were misses.
func TestAClientHookAloneIsCountedExactly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m, r, c := newMonitor(t, instrument.Options{MissTimeout: 2 * time.Second})
		var misses, stores uint64
		rt.Repeat(map[string]func(*rapid.T){
			"":      func(*rapid.T) {},
			"miss":  func(*rapid.T) { m.ObserveMiss(t.Context(), "k"); misses++ },
			"store": func(*rapid.T) { m.ObserveStore(t.Context(), "k", instrument.Expiry{TTL: time.Second}); stores++ },
			"both": func(*rapid.T) {
				m.ObserveMiss(t.Context(), "k")
				m.ObserveStore(t.Context(), "k", instrument.Expiry{TTL: time.Second})
				misses++
				stores++
			},
			"step":  func(rt *rapid.T) { c.Step(time.Duration(rapid.IntRange(0, 1500).Draw(rt, "ms")) * time.Millisecond) },
			"flush": func(*rapid.T) { m.Flush() },
		})
		c.Step(time.Minute) // whoever still waits gives up
		m.Flush()
		var g instrument.GroupTotals
		for _, x := range m.Snapshot().Groups {
			if x.Group == "k" {
				g = x
			}
		}
		var ends uint64
		for o := range signal.NumOutcomes {
			ends += g.Recomputes.Ends(o)
		}
		if starts := g.Recomputes.Starts(); starts != ends || starts > misses || g.Lookups.Misses != misses || g.Stores != stores {
			rt.Fatalf("misses %d of %d, stores %d of %d, starts %d, ends %d", g.Lookups.Misses, misses, g.Stores, stores, starts, ends)
		}
		if g.InFlightNow != 0 || g.MissNow != 0 {
			rt.Fatalf("in flight %d, waiting %d at the end", g.InFlightNow, g.MissNow)
		}
		_ = r
	})
}

func TestReadersWhoEachStoreAreSeenWhileTheyRecomputeTheNextTime(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	for range 10 {
		m.ObserveMiss(t.Context(), "k")
	}
	c.Step(400 * time.Millisecond)
	for range 10 {
		m.ObserveStore(t.Context(), "k", instrument.Expiry{TTL: time.Second})
	}
	m.Flush()
	c.Step(2 * time.Second)

	r.windows = nil
	for range 10 { // and the origin does not answer
		m.ObserveMiss(t.Context(), "k")
	}
	m.FlushUrgent()
	if r.urgent == 0 {
		t.Fatal("nothing was reported while the second dogpile built up")
	}
	if w := r.windows[0]; w.InFlightPeak != 10 || !w.Unknown.Has(signal.UnknownStarts) {
		t.Errorf("in flight %d, unknown %b; want 10, marked as inferred", w.InFlightPeak, w.Unknown)
	}
}

func TestFollowersKeepAHabitFromForming(t *testing.T) {
	m, r, c := newMonitor(t, instrument.Options{})
	for range 20 {
		m.ObserveMiss(t.Context(), "k")
		m.ObserveStore(t.Context(), "k", instrument.Expiry{TTL: time.Second})
		c.Step(2 * time.Second)
	}
	m.Follow("k").Done()
	m.Flush()
	r.windows, r.urgent = nil, 0
	for range 10 {
		m.ObserveMiss(t.Context(), "k")
	}
	m.FlushUrgent()
	m.Flush()
	if w := r.merged(t); r.urgent != 0 || w.InFlightPeak != 0 || w.MissPeak != 10 {
		t.Errorf("urgent %d, in flight %d, waiting %d; want 0, 0, 10: the application says who waits for whom", r.urgent, w.InFlightPeak, w.MissPeak)
	}
}

func FuzzPattern(f *testing.F) {
	for _, k := range []string{"", "feed:42", "v2:feed:home", "homepage", "alice@example.eu", "\x00\xff:", "{user:1}:x", strings.Repeat("a", 300)} {
		f.Add(k)
	}
	f.Fuzz(func(t *testing.T, key string) {
		g := instrument.Pattern(key)
		if g == "" || len(g) > 80 || !utf8.ValidString(g) {
			t.Fatalf("Pattern(%q) = %q", key, g)
		}
		if i := strings.IndexByte(g, '*'); i >= 0 && i != len(g)-1 {
			t.Fatalf("Pattern(%q) = %q: something after the star", key, g)
		}
	})
}

func TestPatternKeepsTheNameAndNothingElse(t *testing.T) {
	for key, want := range map[string]string{
		"feed:42":             "feed:*",
		"feed:home":           "feed:*",
		"user/7/profile":      "user/*",
		"session.abc":         "session.*",
		"v2:feed:home":        "v2:feed:*",
		"v2:feed":             "v2:feed",
		"v2:42":               "v2:*",
		"homepage":            "homepage",
		"front_page":          "front_page",
		"42":                  "*",
		"user42:cart":         "*",
		"alice@example.eu":    "*",
		"":                    "(empty)",
		":x":                  "*",
		"\n":                  "*",
		"фид:1":               "*",
		"</script>:1":         "*",
		"stampede-demo:front": "stampede-demo:*",
	} {
		if got := instrument.Pattern(key); got != want {
			t.Errorf("Pattern(%q) = %q; want %q", key, got, want)
		}
	}
}
