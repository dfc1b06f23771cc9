package detectors_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestHotKeyExpiryDoesNotDependOnOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := expiry{MaxKeys: 100} // so that it has to forget
	a, b := newHotKeyExpiry(t, c), newHotKeyExpiry(t, c)
	found := 0
	for i := range 200 {
		at := time.Duration(i) * 2 * second
		tk := tick(at + second)
		tk.Urgent = i%3 == 2
		for key := range 80 {
			if p := rng.IntN(30); p > 20 {
				tk.Episodes = append(tk.Episodes, burst(at, p-20, ofKey(signal.KeyID(rng.IntN(1000)*100+key))))
			} else if p == 0 && key < 20 {
				tk.Episodes = append(tk.Episodes, burst(at, 15+rng.IntN(10), ofKey(signal.KeyID(key))))
			}
		}
		first := a.Observe(tk)
		rng.Shuffle(len(tk.Episodes), func(i, j int) {
			tk.Episodes[i], tk.Episodes[j] = tk.Episodes[j], tk.Episodes[i]
		})
		if diff := cmp.Diff(first, b.Observe(tk)); diff != "" {
			t.Fatalf("tick %d, shuffled (-in order +shuffled):\n%s", i, diff)
		}
		found += len(first)
	}
	if found == 0 || detectors.Remembered(a) > 100 {
		t.Errorf("%d findings, %d keys remembered: the test does not test", found, detectors.Remembered(a))
	}
}

func TestHotKeyExpiryLeavesTheTickAlone(t *testing.T) {
	make := func() *signal.Tick { return tick(second, burst(0, 20, ofKey(2)), burst(0, 20, live), burst(0, 1)) }
	tk := make()
	newHotKeyExpiry(t, expiry{}).Observe(tk)
	if diff := cmp.Diff(make(), tk); diff != "" {
		t.Errorf("tick (-before +after):\n%s", diff)
	}
}

func TestHotKeyExpiryIsBounded(t *testing.T) {
	flood := func(d detectors.Detector, peak int) (most int) {
		for i := range 100 {
			at := time.Duration(i) * second
			tk := tick(at + second)
			for key := range 100 {
				tk.Episodes = append(tk.Episodes, burst(at, peak, ofKey(signal.KeyID(i*100+key))))
			}
			d.Observe(tk)
			most = max(most, detectors.Remembered(d))
		}
		return most
	}
	t.Run("keys that never run many at once are not remembered", func(t *testing.T) {
		if most := flood(newHotKeyExpiry(t, expiry{}), 4); most != 0 {
			t.Errorf("%d keys are remembered, want none", most)
		}
	})
	t.Run("others are forgotten, the longest idle first", func(t *testing.T) {
		d := newHotKeyExpiry(t, expiry{MaxKeys: 500})
		if most := flood(d, 5); most < 400 || most > 500 {
			t.Errorf("%d keys are remembered, want up to 500", most)
		}
		again := []*signal.Tick{
			tick(101*second, burst(100*second, 5, ofKey(9_999)), burst(100*second, 5, ofKey(9_000))),
			tick(111*second, burst(110*second, 5, ofKey(9_999)), burst(110*second, 5, ofKey(9_000))),
		}
		if diff := cmp.Diff([]string{"1m51s feed/9999 ticket"}, play(d, again)); diff != "" {
			t.Errorf("findings (-want +got): only the key of late is remembered to have recurred\n%s", diff)
		}
	})
	t.Run("but none with a finding, and what there is no room for is said", func(t *testing.T) {
		d := newHotKeyExpiry(t, expiry{MaxKeys: 500})
		if most := flood(d, 20); most != 500 {
			t.Errorf("%d keys are remembered, want 500", most)
		}
		want := []detectors.Limit{{Cache: "feed", Reason: "500 keys have a finding: there is no room for more."}}
		if diff := cmp.Diff(want, d.(detectors.Limited).Limits()); diff != "" {
			t.Errorf("limits (-want +got):\n%s", diff)
		}
		if fs := d.Observe(tick(101 * second)); len(fs) != 500 || fs[0].Key.ID != 0 || fs[499].Key.ID != 499 {
			t.Errorf("%d findings, want those of the first 500 keys", len(fs))
		}
	})
	t.Run("and idle ones are forgotten after an hour", func(t *testing.T) {
		d := newHotKeyExpiry(t, expiry{})
		play(d, ticks{tick(second, burst(0, 5)), tick(30 * minute)})
		if n := detectors.Remembered(d); n != 1 {
			t.Errorf("%d keys are remembered, want 1", n)
		}
		play(d, ticks{tick(62 * minute)})
		if n := detectors.Remembered(d); n != 0 {
			t.Errorf("%d keys are remembered, want none", n)
		}
	})
}

// history is what a model of findings knows of one key.
type history struct {
	open     bool
	severity detectors.Severity
	priority int
}

func TestHotKeyExpiryKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d, err := detectors.NewHotKeyExpiry(expiry{ClearAfter: 5 * second})
		if err != nil {
			rt.Fatal(err)
		}
		known := map[signal.KeyID]history{}
		at := time.Duration(0)
		for range rapid.IntRange(1, 60).Draw(rt, "ticks") {
			at += time.Duration(rapid.IntRange(1, 4000).Draw(rt, "pause")) * ms
			tk := tick(at)
			tk.Urgent = rapid.Bool().Draw(rt, "urgent")
			if rapid.IntRange(0, 4).Draw(rt, "silent") == 0 {
				tk.Caches[0] = feed(silent)
			}
			shown := map[signal.KeyID]int{}
			for key := range signal.KeyID(3) {
				if peak := rapid.IntRange(0, 40).Draw(rt, "peak"); peak < 30 {
					started := at - time.Duration(rapid.IntRange(0, 15_000).Draw(rt, "age"))*ms
					tk.Episodes = append(tk.Episodes, burst(started, peak, ofKey(key), ttl(second), func(e *episode) {
						e.Final = rapid.Bool().Draw(rt, "final")
					}))
					shown[key] = peak
				}
			}
			holdToPromises(rt, known, tk, d.Observe(tk), shown)
		}
	})
}

// holdToPromises fails if what was found at one tick breaks the contract of a
// detector, or what this one promises.
func holdToPromises(t *rapid.T, known map[signal.KeyID]history, tk *signal.Tick, fs []detectors.Finding, shown map[signal.KeyID]int) {
	told := map[signal.KeyID]bool{}
	for _, f := range fs {
		h := known[f.Key.ID]
		peak, _ := f.Get("peak")
		duplicates, _ := f.Get("total.duplicates")
		wasted, _ := f.Get("total.wasted")
		switch {
		case told[f.Key.ID]:
			t.Fatalf("key %d is told twice", f.Key.ID)
		case f.Cleared && (!h.open || tk.Urgent || tk.Caches[0].Instances == 0):
			t.Fatalf("key %d clears: was open %v, urgent %v, %d instances", f.Key.ID, h.open, tk.Urgent, tk.Caches[0].Instances)
		case h.open && (f.Severity < h.severity || (h.priority > 0 && f.Priority > h.priority)):
			t.Fatalf("key %d is less severe than it was: %v", f.Key.ID, stateOf(&f))
		case (f.Severity == detectors.Page) != (f.Priority == 1 || f.Priority == 2):
			t.Fatalf("key %d has severity %v and priority %d", f.Key.ID, f.Severity, f.Priority)
		case !h.open && shown[f.Key.ID] < 5:
			t.Fatalf("key %d is raised by an episode of %d", f.Key.ID, shown[f.Key.ID])
		case !h.open && f.Severity == detectors.Page && shown[f.Key.ID] < 20:
			t.Fatalf("key %d pages at %d", f.Key.ID, shown[f.Key.ID])
		case tk.Urgent && h == history{true, f.Severity, f.Priority}:
			t.Fatalf("key %d is repeated at an urgent tick", f.Key.ID)
		case f.Onset > tk.At || f.Detected > tk.At || duplicates < 0 || wasted < 0 || peak < 0:
			t.Fatalf("key %d makes no sense: %+v", f.Key.ID, f)
		}
		told[f.Key.ID] = true
		known[f.Key.ID] = history{!f.Cleared, f.Severity, f.Priority}
	}
	for key, h := range known {
		if h.open && !tk.Urgent && !told[key] {
			t.Fatalf("key %d is open and not told", key)
		}
	}
}

func BenchmarkHotKeyExpiry(b *testing.B) {
	for _, peak := range []int{1, 5, 20} {
		b.Run(fmt.Sprintf("100k episodes of %d", peak), func(b *testing.B) {
			d := newHotKeyExpiry(b, expiry{})
			tk := tick(second)
			for key := range signal.KeyID(100_000) {
				tk.Episodes = append(tk.Episodes, burst(0, peak, ofKey(key)))
			}
			b.ReportAllocs()
			for b.Loop() {
				d.Observe(tk)
			}
		})
	}
}
