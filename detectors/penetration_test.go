package detectors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// probed is a second in which readers asked for what mostly does not exist: so
// many recomputes found nothing and so many something; misses is of keys.
func probed(nothing, found, stores uint64, keys int, misses uint64) cacheOption {
	return func(c *signal.CacheState) {
		c.Work.Recomputes.Ended[signal.CauseNegative][signal.OutcomeOK] = nothing
		c.Work.Recomputes.Ended[signal.CauseCold][signal.OutcomeOK] = found
		c.Work.Stores = stores
		c.MissedKeys, c.Misses = keys, misses
	}
}

// secondsOf is n ticks, a second each, of a fleet in which feed is like that; the
// first is at second from.
func secondsOf(from, n int, change ...cacheOption) (out ticks) {
	for i := range n {
		out = append(out, with(tick(time.Duration(from+i)*second), feed(change...)))
	}
	return out
}

func TestPenetration(t *testing.T) {
	tests := []struct {
		name  string
		ticks ticks
		want  []string
	}{
		{"a walk through 20 keys a second is a ticket", secondsOf(1, 20, probed(20, 0, 0, 20, 20)), []string{"6s ticket"}},
		{"99 in a minute are not", slices.Concat(secondsOf(1, 1), secondsOf(2, 1, probed(99, 0, 0, 99, 99)), secondsOf(3, 80)), nil},
		{"100 are", slices.Concat(secondsOf(1, 1), secondsOf(2, 1, probed(100, 0, 0, 100, 100)), secondsOf(3, 80)), []string{"2s ticket"}},
		{"half of what readers set off is", secondsOf(1, 20, probed(20, 20, 20, 40, 40)), []string{"6s ticket"}},
		{"less than half is not", secondsOf(1, 80, probed(20, 21, 21, 41, 41)), nil},
		{"four in five misses of a key of its own are", secondsOf(1, 20, probed(20, 0, 0, 20, 25)), []string{"6s ticket"}},
		{"a missing key that everybody wants is not", secondsOf(1, 80, probed(20, 0, 0, 20, 26)), nil},
		{"nor are marks that are stored for what is missing", secondsOf(1, 80, probed(20, 0, 5, 20, 20)), nil},
		{"a few stores from elsewhere do not hide it", secondsOf(1, 20, probed(20, 10, 14, 30, 30)), []string{"6s ticket"}},
		{"misses that are filled are not", secondsOf(1, 80, probed(0, 20, 20, 20, 20)), nil},
		{"it clears five minutes after the last minute that held it", slices.Concat(secondsOf(1, 20, probed(20, 0, 0, 20, 20)), secondsOf(21, 400)), []string{"6s ticket", "6m15s cleared"}},
		{"silence does not clear it", slices.Concat(secondsOf(1, 20, probed(20, 0, 0, 20, 20)), secondsOf(21, 400, silent)), []string{"6s ticket"}},
		{"it never pages", secondsOf(1, 100, probed(20_000, 0, 0, 20_000, 20_000), func(c *signal.CacheState) { c.Running = 5000 }), []string{"2s ticket"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			d, err := detectors.NewPenetration(detectors.PenetrationConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, watchCache(d, tc.ticks)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPenetrationSaysWhatItKnows(t *testing.T) {
	d, err := detectors.NewPenetration(detectors.PenetrationConfig{})
	if err != nil {
		t.Fatal(err)
	}
	s := waveShop()
	s.missing, s.reads = true, 15
	_, f := found(d, s.run(61*second))
	want := []detectors.Evidence{
		{Name: "negatives", Unit: "{recompute}", Note: "that found nothing, in the last 60 s; a ticket from 100"},
		{Name: "negative.share", Value: 1, Unit: "1", Note: "of all that readers set off; a ticket from 0.5"},
		{Name: "distinct", Value: 1, Unit: "1", Note: "of misses were of a key of its own, second by second; a ticket from 0.8"},
		{Name: "stores", Value: 0, Unit: "{store}", Note: "in the same time, and 0 recomputes that found something"},
		{Name: "rate", Unit: "{recompute}/s", Note: "that found nothing"},
		{Name: "running", Unit: "{recompute}", Note: "now"},
		{Name: "budget", Value: 8, Unit: "{recompute}", Note: "as declared for origin db"},
	}
	for i, e := range f.Evidence {
		if bounds, ok := map[string][2]float64{"negatives": {890, 900}, "rate": {14.8, 15}, "running": {5, 8}}[e.Name]; ok {
			if e.Value < bounds[0] || e.Value > bounds[1] {
				t.Errorf("%s is %v, want %v", e.Name, e.Value, bounds)
			}
			f.Evidence[i].Value = 0
		}
	}
	if diff := cmp.Diff(want, f.Evidence); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	if want := "Cache feed: 100 % of recomputes find that there is no such thing, 15.0 a second, nearly each for another key."; f.Summary != want {
		t.Errorf("summary %q, want %q", f.Summary, want)
	}
}

func TestPenetrationSaysIfNobodySaysWhatMissesAre(t *testing.T) {
	d, err := detectors.NewPenetration(detectors.PenetrationConfig{})
	if err != nil {
		t.Fatal(err)
	}
	watch(d, secondsOf(1, 20, probed(0, 0, 0, 20, 20)))
	want := []string{"Misses of many keys are followed by no store, and no recompute says that there is no such thing: end those that find nothing with Negative."}
	if diff := cmp.Diff(want, limitsOf(d)); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	watch(d, secondsOf(21, 80, probed(0, 20, 20, 20, 20)))
	if got := limitsOf(d); got != nil {
		t.Errorf("limits: %v", got)
	}
}
