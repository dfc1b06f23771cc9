package detectors_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// onlyProbed makes ticks what probes alone know of a cache: deadlines by group,
// and of its origin what the operator declares.
func onlyProbed(ts ticks, change ...cacheOption) ticks {
	for _, tk := range ts {
		c := &tk.Caches[0]
		c.Service, c.Instances, c.Probes = "redis", 0, 2
		c.Work = signal.Work{}
		c.Origin.Recompute = 400 * ms
		for i := range c.Expiries {
			c.Expiries[i].Group = "feed:*"
		}
		for _, f := range change {
			f(c)
		}
	}
	return ts
}

func TestWhatProbesKnowIsEnoughForAForecast(t *testing.T) {
	f, _ := found(newExpiryForecast(t, detectors.ExpiryForecastConfig{}), onlyProbed(forecast(1, 2, due{40, 800}, due{41, 1200}), func(c *signal.CacheState) {
		c.Expiries = signal.MergeExpiries(c.Expiries, []signal.ExpiryBin{{At: c.Expiries[0].At, Width: second, Keys: 100, Group: "user:*"}})
		c.Hot = []signal.HotKey{
			{ID: 1, Group: "user:*", Share: 0.5, Expiry: after(500 * second)},
			{ID: 0xabc, Group: "feed:*", Share: 0.2, Expiry: c.Expiries[0].At + 1},
		}
	}))
	for name, want := range map[string][2]float64{
		"keys": {2100, 2100}, "group.keys": {2000, 2000}, "ahead": {40, 40}, "hot.ahead": {40, 40.1}, "spread.required": {131, 132},
		"recompute.mean": {0.4, 0.4},
	} {
		if got := evidence(&f, name); got < want[0] || got > want[1] {
			t.Errorf("%s is %v, want %v to %v", name, got, want[0], want[1])
		}
	}
	notes := map[string]string{}
	for _, e := range f.Evidence {
		notes[e.Name] = e.Note
	}
	for name, want := range map[string]string{
		"group.keys":     "of them in feed:*, the largest group",
		"ahead":          "until the first of them expires, at " + after(41*second).Time().Format("15:04:05") + " UTC",
		"hot.ahead":      "until key 0000000000000abc of feed:* expires, which has 20 % of the server's use",
		"recompute.mean": "a recompute, as declared",
	} {
		if notes[name] != want {
			t.Errorf("note of %s is %q, want %q", name, notes[name], want)
		}
	}
	if want := "Cache feed: 2100 keys, mostly of feed:*, expire within 2 s"; !strings.HasPrefix(f.Summary, want) {
		t.Errorf("summary %q, want it to begin with %q", f.Summary, want)
	}
	if _, told := notes["keys.margin"]; told {
		t.Error("there is a margin although all deadlines are known")
	}
}

func TestAMeasuredRecomputeTimeOutweighsADeclaredOne(t *testing.T) {
	ts := forecast(1, 2, due{50, 61})
	for _, tk := range ts {
		tk.Caches[0].Origin.Recompute = 4 * second
	}
	_, f := found(newExpiryForecast(t, detectors.ExpiryForecastConfig{}), ts)
	if got := evidence(&f, "recompute.mean"); got > 0.4 {
		t.Errorf("a recompute takes %v s, want the 0.4 s that were measured", got)
	}
}

func TestAForecastFromASampleCountsWithItsLowerEnd(t *testing.T) {
	// 2 s and one second's worth are 60 keys. At a weight of 5, 140 keys are
	// certain to within 46, and 100 to within 39.
	sampled := func(keys int) ticks {
		return onlyProbed(forecast(1, 5, due{50, keys}), func(c *signal.CacheState) {
			c.Sample = signal.Sample{Keys: 200, Population: 1000, Weight: 5}
		})
	}
	tests := []struct {
		name  string
		ticks ticks
		want  []string
	}{
		{"certain enough", sampled(140), []string{"2s ticket"}},
		{"may be chance", sampled(95), nil},
		{"the same number would do if it were known", onlyProbed(forecast(1, 5, due{50, 95})), []string{"1s ticket"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := watchCache(newExpiryForecast(t, detectors.ExpiryForecastConfig{}), tc.ticks)
			if len(got) != len(tc.want) {
				t.Errorf("findings %v, want %d", got, len(tc.want))
			}
		})
	}
	f, _ := found(newExpiryForecast(t, detectors.ExpiryForecastConfig{}), sampled(140))
	if got := evidence(&f, "keys.margin"); got < 46 || got > 47 {
		t.Errorf("the margin is %v, want 46.4", got)
	}
}

func TestUnderdosedJitterNamesTheGroup(t *testing.T) {
	d, err := detectors.NewUnderdosedJitter(detectors.UnderdosedJitterConfig{})
	if err != nil {
		t.Fatal(err)
	}
	f, _ := found(d, onlyProbed(forecast(1, 3, due{40, 1000}, due{41, 1000})))
	if got := evidence(&f, "group.keys"); got != 2000 || !strings.Contains(f.Summary, "2000 keys, mostly of feed:*, stored together") {
		t.Errorf("%v keys; %s", got, f.Summary)
	}
}

func TestThatNobodyReportsMissesSaysNothingOfReaders(t *testing.T) {
	d := newExpiryForecast(t, detectors.ExpiryForecastConfig{})
	watch(d, onlyProbed(forecast(1, 200, evenly(1, 100, 20)...)))
	want := []string{"201s ticket"}
	if diff := cmp.Diff(len(want), len(watchCache(d, onlyProbed(forecast(201, 20, due{60, 1000}))))); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestWithoutARecomputeTimeItIsSaidWhereToDeclareOne(t *testing.T) {
	d := newExpiryForecast(t, detectors.ExpiryForecastConfig{})
	watch(d, onlyProbed(forecast(1, 3, due{50, 1000}), func(c *signal.CacheState) { c.Origin.Recompute = 0 }))
	if got := limitsOf(d); len(got) != 1 || !strings.HasSuffix(got[0], "until then it can be declared as origins.db.recompute.") {
		t.Errorf("limits: %q", got)
	}
}

func TestMassInvalidationTellsOfFlushesAndRestarts(t *testing.T) {
	ts := flushed(1, signal.CauseEvicted)[:125]
	for i, tk := range ts {
		c := signal.CacheState{Cache: "redis-feed", Probes: 1}
		if i == 119 { // a second before the misses
			c.Flushed, c.Restarted = 1, 2
		}
		tk.Caches = append(tk.Caches, c)
	}
	_, f := found(newMassInvalidation(t, detectors.MassInvalidationConfig{}), ts)
	if evidence(&f, "server.flushed") != 1 || evidence(&f, "server.restarted") != 2 {
		t.Errorf("evidence %+v, want one flush and two restarts", f.Evidence)
	}
}
