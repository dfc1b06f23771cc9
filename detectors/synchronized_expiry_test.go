package detectors_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newSynchronizedExpiry(t testing.TB, c detectors.SynchronizedExpiryConfig) detectors.Detector {
	t.Helper()
	d, err := detectors.NewSynchronizedExpiry(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// limitsOf returns the reasons d gives for not judging feed fully.
func limitsOf(d detectors.Detector) []string {
	var out []string
	for _, l := range d.(detectors.Limited).Limits() {
		if l.Cache == "feed" {
			out = append(out, l.Reason)
		}
	}
	return out
}

func TestSynchronizedExpiryFires(t *testing.T) {
	slow := waveShop()
	slow.timeout = 49 * second
	patient := waveShop()
	patient.timeout = minute
	naive := waveShop()
	naive.naive = true
	spread := waveShop()
	spread.jitter = 12 * second
	tests := []struct {
		name string
		s    *shop
		want string
	}{
		{"when 1,000 keys expire at once, after two windows", waveShop(), "1m9s page/2"},
		{"with priority 1 if clients give up before the refill is done", slow, "1m9s page/1"},
		{"with priority 2 if they wait for longer", patient, "1m9s page/2"},
		{"without deduplication, though few misses are of a key of their own", naive, "1m9s page/2"},
		{"when they are spread over too little", spread, "1m10s page/2"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			ts := tc.s.warm().run(85 * second)
			if diff := cmp.Diff([]string{tc.want}, watchCache(newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{}), ts)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// watchCache is watch for a detector whose findings have no key.
func watchCache(d detectors.Detector, all ...ticks) []string {
	var out []string
	for _, s := range watch(d, all...) {
		out = append(out, strings.Replace(s, " feed/0 ", " ", 1))
	}
	return out
}

func TestSynchronizedExpiryIsQuiet(t *testing.T) {
	jittered := waveShop()
	jittered.jitter = 75 * second
	few := waveShop()
	few.keys = 150
	roomy := waveShop()
	roomy.budget = 800
	cold := waveShop()
	batch := waveShop()
	batch.batch = 500
	undeclared := waveShop()
	undeclared.undeclared = true
	nothing := waveShop()
	nothing.missing, nothing.reads = true, 60
	tests := []struct {
		name  string
		ticks ticks
	}{
		{"while expiries are spread as they should be", jittered.warm().run(4 * minute)},
		{"when fewer keys expire than two windows take", few.open().warm().run(3 * minute)},
		{"when the origin is up to it", roomy.warm().run(3 * minute)},
		{"when a fleet fills a cold cache", cold.run(50 * second)},
		{"when one call recomputes all the keys of a batch", batch.warm().run(3 * minute)},
		{"when nobody said what the origin can do", undeclared.warm().run(2 * minute)},
		{"when readers ask for what does not exist", nothing.run(2 * minute)},
		{"when the cache is flushed", flushed(1, signal.CauseEvicted)},
		{"when its keys are deleted", flushed(1, signal.CauseInvalidated)},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := watchCache(newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{}), tc.ticks); got != nil {
				t.Errorf("it says %v", got)
			}
		})
	}
}

// flushed is a cache that loses a share of its values after two minutes in
// which few expired.
func flushed(share float64, cause signal.Cause) ticks {
	s := waveShop()
	s.ttl, s.jitter = 20*minute, 10*minute
	ts := s.warm().run(2 * minute)
	return append(ts, s.lose(share, cause).run(3*minute)...)
}

func TestSynchronizedExpiryTellsOverloadFromAWave(t *testing.T) {
	s := waveShop()
	s.ttl, s.jitter = 20*second, 20*second // 1,000 keys, 30 s: 33 a second, and 20 are served
	if got := watchCache(newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{}), s.run(2*minute), s.run(2*minute)); got != nil {
		t.Errorf("keys that expire all the time are taken for a wave: %v", got)
	}
}

func TestSynchronizedExpirySaysWhatItKnows(t *testing.T) {
	s := waveShop()
	s.timeout = 5 * second
	d := newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{})
	f, _ := found(d, s.warm().run(80*second))
	if f.Cache != "feed" || f.Service != "shop" || f.Key != (signal.Key{}) || f.Onset != after(minute) {
		t.Errorf("it is about %q of %q, key %v, from %v", f.Cache, f.Service, f.Key, f.Onset.Sub(epoch))
	}
	for name, want := range map[string][2]float64{
		"keys": {950, 1000}, "demand": {8, 10}, "refill": {47, 53}, "timeout": {5, 5}, "budget": {8, 8},
		"recompute.mean": {0.38, 0.43}, "expired": {1, 1}, "top": {0, 0.05}, "spread.required": {59, 66},
		"spread.observed": {0.9, 1.1}, "deadlines": {1000, 1000}, "ttl": {60, 60},
	} {
		if got := evidence(&f, name); got < want[0] || got > want[1] {
			t.Errorf("%s is %v, want %v to %v", name, got, want[0], want[1])
		}
	}
	if f.Evidence[0].Name != "keys" || !strings.HasPrefix(f.Summary, "Cache feed: 1000 keys, most of them feed:*, expired together; origin db refills ") {
		t.Errorf("first evidence %q, summary %q", f.Evidence[0].Name, f.Summary)
	}
	if strings.Contains(f.Summary, "too small") {
		t.Errorf("the origin is called too small: %s", f.Summary)
	}
}

func TestSynchronizedExpirySaysIfTheOriginIsTooSmall(t *testing.T) {
	s := waveShop()
	s.ttl = 45 * second // and 50 s to refill
	f, _ := found(newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{}), s.warm().run(minute))
	if !strings.HasSuffix(f.Summary, "They live for 45 s: the origin is too small for them, and no jitter helps.") {
		t.Errorf("summary: %s", f.Summary)
	}
}

func TestSynchronizedExpiryClears(t *testing.T) {
	s := waveShop().warm()
	s.ttl = time.Hour // what is stored from now on stays
	wave := s.run(75 * second)
	rest := s.run(3 * minute)
	got := watchCache(newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{}), wave, rest)
	if len(got) != 2 || got[0] != "1m9s page/2" || !strings.HasSuffix(got[1], "cleared") {
		t.Fatalf("it says %v, want a page and its end", got)
	}
	if at, _ := time.ParseDuration(strings.Fields(got[1])[0]); at < 2*minute+45*second || at > 3*minute {
		t.Errorf("it clears at %v, want a minute after the refill is done at about 1m50s", at)
	}
	silence := func(long time.Duration) (out ticks) {
		for at := 75 * second; at < long; at += second {
			out = append(out, with(tick(at+second), feed(silent)))
		}
		return out
	}
	if got := watchCache(newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{}), wave, silence(20*minute)); len(got) != 1 {
		t.Errorf("it says %v, want a page that silence does not end", got)
	}
}

func TestSynchronizedExpirySaysWhatItLacks(t *testing.T) {
	undeclared, fresh := waveShop(), waveShop()
	undeclared.undeclared = true
	tests := []struct {
		name string
		s    *shop
		want []string
	}{
		{"a budget", undeclared, []string{"Not enough data: what its origin can run at once is not declared. Declare origins.NAME.concurrency and caches.feed.origin."}},
		{"the origin's recompute time", fresh, []string{"Not enough data: how long origin db takes for a recompute shows after 20 of them while it is free, or in some seconds while it is saturated; until then it can be declared as origins.db.recompute."}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			d := newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{})
			watch(d, tc.s.warm().run(5*second))
			if diff := cmp.Diff(tc.want, limitsOf(d)); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("that too while most recomputes are given up, which says nothing of the origin", func(t *testing.T) {
		ts := waveShop().warm().run(90 * second)
		for _, tk := range ts {
			ended := &tk.Caches[0].Work.Recomputes.Ended[signal.CauseExpired]
			ended[signal.OutcomeTimedOut], ended[signal.OutcomeOK] = ended[signal.OutcomeOK], 1
			tk.Caches[0].Work.Durations = signal.Durations{}
		}
		d := newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{})
		if got := watchCache(d, ts); got != nil {
			t.Errorf("it says %v", got)
		}
		if diff := cmp.Diff(tests[1].want, limitsOf(d)); diff != "" {
			t.Errorf("limits (-want +got):\n%s", diff)
		}
	})
	t.Run("and nothing once it knows", func(t *testing.T) {
		d := newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{})
		watch(d, waveShop().warm().run(70*second))
		if got := limitsOf(d); got != nil {
			t.Errorf("limits %v", got)
		}
	})
}

func TestSynchronizedExpiryIgnoresUrgentTicks(t *testing.T) {
	ts := waveShop().warm().run(80 * second)
	d := newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{})
	var got []string
	for _, tk := range ts {
		hasty := &signal.Tick{At: tk.At.Add(-100 * ms), Urgent: true, Episodes: tk.Episodes, Caches: tk.Caches}
		if fs := d.Observe(hasty); fs != nil {
			t.Fatalf("it says %v", fs)
		}
		got = slices.Concat(got, watchCache(d, ticks{tk}))
	}
	if got[0] != "1m9s page/2" {
		t.Errorf("it says %v", got[0])
	}
}

func TestSynchronizedExpirySharesAnOrigin(t *testing.T) {
	ts := waveShop().warm().run(80 * second)
	for _, tk := range ts {
		other := feed(func(c *signal.CacheState) { c.Cache = "other" })
		tk.Caches = append([]signal.CacheState{other}, tk.Caches...)
	}
	f, _ := found(newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{}), ts)
	if f.Cache != "feed" {
		t.Errorf("the finding is on %q, want the cache with the keys", f.Cache)
	}
}

func TestSynchronizedExpiryCountsAKeyOnce(t *testing.T) {
	ts := waveShop().warm().run(80 * second)
	for i, tk := range ts {
		if i%2 == 0 {
			continue
		}
		// A key that waits for its turn begins a new episode now and then.
		for j := range tk.Episodes {
			if e := &tk.Episodes[j]; !e.Final {
				was := *e
				was.Final = true
				tk.Episodes = append(tk.Episodes, was)
			}
		}
	}
	_, f := found(newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{}), ts)
	if got := evidence(&f, "keys"); got < 950 || got > 1000 {
		t.Errorf("keys is %v, want at most the 1,000 there are", got)
	}
}

func TestSynchronizedExpirySeesAQueueInFrontOfRecomputes(t *testing.T) {
	ts := waveShop().warm().run(80 * second)
	for _, tk := range ts {
		c := &tk.Caches[0]
		if c.Running > budget { // the others wait before they begin
			c.Running = budget
			c.Work.Busy = time.Duration(c.Work.Recomputes.Ends(signal.OutcomeOK)) * 400 * ms
		}
	}
	if diff := cmp.Diff([]string{"1m9s page/2"}, watchCache(newSynchronizedExpiry(t, detectors.SynchronizedExpiryConfig{}), ts)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
