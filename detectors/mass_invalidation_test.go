package detectors_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newMassInvalidation(t testing.TB, c detectors.MassInvalidationConfig) detectors.Detector {
	t.Helper()
	d, err := detectors.NewMassInvalidation(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMassInvalidationFires(t *testing.T) {
	roomy := waveShop()
	roomy.budget, roomy.ttl, roomy.jitter = 500, 20*minute, 10*minute
	ample := append(roomy.warm().run(2*minute), roomy.lose(1, signal.CauseEvicted).run(20*second)...)
	unheard := flushed(1, signal.CauseEvicted) // as a fleet whose instances do not know who stored what
	for _, tk := range unheard {
		for i := range tk.Episodes {
			r := &tk.Episodes[i].Window.Recomputes.Started
			r[signal.CauseCold], r[signal.CauseEvicted] = r[signal.CauseEvicted], 0
		}
	}
	tests := []struct {
		name  string
		ticks ticks
		want  string
	}{
		{"a second after a flush", flushed(1, signal.CauseEvicted)[:150], "2m1s page/1"},
		{"when keys are deleted by the thousand", flushed(1, signal.CauseInvalidated)[:150], "2m1s page/1"},
		{"when a node of three is lost", flushed(0.33, signal.CauseEvicted)[:150], "2m1s page/1"},
		{"when every process calls the keys cold and the fleet knows better", unheard[:150], "2m1s page/1"},
		{"with priority 2 if the origin copes", ample, "2m1s page/2"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff([]string{tc.want}, watchCache(newMassInvalidation(t, detectors.MassInvalidationConfig{}), tc.ticks)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMassInvalidationIsQuiet(t *testing.T) {
	small := waveShop()
	small.ttl, small.jitter = 20*minute, 10*minute
	edit := append(small.warm().run(2*minute), small.lose(0.08, signal.CauseInvalidated).run(minute)...)

	evicting := waveShop() // too small a cache: it loses values all the time
	evicting.ttl, evicting.budget = time.Hour, 800
	evicting.warm()
	var always ticks
	for range 240 {
		always = append(always, evicting.lose(0.1, signal.CauseEvicted).run(second)...)
	}

	renamed := waveShop()
	renamed.ttl = time.Hour
	deploy := renamed.warm().run(2 * minute)
	for i := range renamed.values {
		renamed.values[i] = value{}
	}
	deploy = append(deploy, renamed.run(30*second)...)

	missing := waveShop()
	missing.ttl = time.Hour
	walk := missing.warm().run(2 * minute)
	missing.missing, missing.values = true, nil
	walk = append(walk, missing.run(30*second)...)

	tests := []struct {
		name  string
		ticks ticks
	}{
		{"when keys expire together", waveShop().warm().run(100 * second)},
		{"when somebody deletes a few", edit},
		{"when a cache evicts all the time", always},
		{"when a deploy renames all keys", deploy},
		{"when readers begin to ask for what does not exist", walk},
		{"within the first minute", flushed(1, signal.CauseEvicted)[110:160]},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := watchCache(newMassInvalidation(t, detectors.MassInvalidationConfig{}), tc.ticks); got != nil {
				t.Errorf("it says %v", got)
			}
		})
	}
}

func TestMassInvalidationSaysWhatItKnows(t *testing.T) {
	ts := flushed(1, signal.CauseEvicted)[:125]
	for _, tk := range ts[120:] {
		tk.Caches = append(tk.Caches, signal.CacheState{Cache: "redis-feed", Instances: 1, Evicted: 200})
	}
	_, f := found(newMassInvalidation(t, detectors.MassInvalidationConfig{}), ts)
	if f.Cache != "feed" || f.Service != "shop" || f.Onset != after(2*minute) || f.Detected != after(2*minute+second) {
		t.Errorf("it is about %q of %q, from %v, seen at %v", f.Cache, f.Service, f.Onset.Sub(epoch), f.Detected.Sub(epoch))
	}
	for name, want := range map[string][2]float64{
		"lost": {800, 1000}, "lost.share": {1, 1}, "misses": {300, 500}, "misses.normal": {0.3, 0.4},
		"hit_ratio": {0, 0.3}, "server.evicted": {1000, 1000}, "budget": {8, 8}, "running": {500, 1000},
	} {
		if got := evidence(&f, name); got < want[0] || got > want[1] {
			t.Errorf("%s is %v, want %v to %v", name, got, want[0], want[1])
		}
	}
	if !strings.Contains(f.Summary, "keys were lost before their time; ") {
		t.Errorf("summary: %s", f.Summary)
	}
}

func TestMassInvalidationClears(t *testing.T) {
	got := watchCache(newMassInvalidation(t, detectors.MassInvalidationConfig{}), flushed(1, signal.CauseEvicted))
	if len(got) != 2 || !strings.HasSuffix(got[1], "cleared") {
		t.Fatalf("it says %v, want a page and its end", got)
	}
	if at, _ := time.ParseDuration(strings.Fields(got[1])[0]); at < 3*minute+45*second || at > 4*minute {
		t.Errorf("it clears at %v, want a minute after the refill is done at about 2m51s", at)
	}
}

func TestMassInvalidationSaysWhatItLacks(t *testing.T) {
	d := newMassInvalidation(t, detectors.MassInvalidationConfig{})
	ts := flushed(1, signal.CauseEvicted)
	watch(d, ts[:30])
	want := []string{"Not enough data: it has been watched for less than a minute, and how many misses are normal is not known."}
	if diff := cmp.Diff(want, limitsOf(d)); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	watch(d, ts[30:100])
	if got := limitsOf(d); got != nil {
		t.Errorf("limits after a minute: %v", got)
	}
	for _, tk := range ts[120:] {
		for i := range tk.Episodes {
			tk.Episodes[i].Due = 0
			tk.Episodes[i].Window.Recomputes.Started = [signal.NumCauses]uint64{signal.CauseCold: 1}
		}
	}
	watch(d, ts[100:130])
	want = []string{"Nobody knows whether the values that are gone expired or were lost."}
	if diff := cmp.Diff(want, limitsOf(d)); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}
