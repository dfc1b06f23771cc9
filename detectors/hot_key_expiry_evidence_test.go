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

// last returns the only finding of the last of ticks.
func last(t *testing.T, c expiry, ts ...*signal.Tick) detectors.Finding {
	t.Helper()
	d := newHotKeyExpiry(t, c)
	var fs []detectors.Finding
	for _, tk := range ts {
		fs = d.Observe(tk)
	}
	if len(fs) != 1 {
		t.Fatalf("%d findings, want 1: %v", len(fs), fs)
	}
	return fs[0]
}

func TestHotKeyExpirySaysWhatItKnows(t *testing.T) {
	full := func(e *episode) {
		e.PeakHigh, e.Offset = 130, -150*ms
		e.Window.Sampled = true
		e.Window.WhileFresh = 3
	}
	got := last(t, expiry{}, tick(second, burst(0, 121, full)))
	want := detectors.Finding{
		Detector: "hot-key-expiry", Service: "shop", Cache: "feed", Key: signal.Key{ID: 1, Group: "feed:*"}, Origin: "db",
		Severity: detectors.Page, Priority: 1, Onset: after(10 * ms), Detected: after(second),
		Summary: "feed:* in cache feed: 121 recomputes of one key at once against a budget of 8, across 2 instances; 120 were duplicates.",
		Advice:  got.Advice,
		Evidence: []detectors.Evidence{
			{Name: "peak", Value: 121, Unit: "{recompute}", Note: "at one instant in the fleet; pages at 20; a lower bound"},
			{Name: "budget", Value: 8, Unit: "{recompute}", Note: "as declared for db"},
			{Name: "peak.high", Value: 130, Unit: "{recompute}", Note: "if every process had its worst moment at once"},
			{Name: "duplicates", Value: 120, Unit: "{recompute}", Note: "served nobody; a lower bound"},
			{Name: "instances", Value: 2, Unit: "{instance}", Note: "that recomputed it"},
			{Name: "wasted", Value: 48, Unit: "s", Note: "of the origin's time; a lower bound"},
			{Name: "starts", Value: 121, Unit: "{recompute}"},
			{Name: "recompute.mean", Value: 0.4, Unit: "s", Note: "of those that ended"},
			{Name: "ttl", Value: 60, Unit: "s", Note: "the shortest lately"},
			{Name: "while_fresh", Value: 3, Unit: "{recompute}", Note: "started although a fresh value was there"},
			{Name: "readers", Value: 121, Unit: "{reader}", Note: "waiting, if every process had its worst moment at once"},
			{Name: "clock.offset", Value: 0.15, Unit: "s", Note: "largest correction of an instance's clock"},
			{Name: "total.episodes", Value: 1, Unit: "{episode}", Note: "since the onset"},
			{Name: "total.starts", Value: 121, Unit: "{recompute}"},
			{Name: "total.duplicates", Value: 120, Unit: "{recompute}"},
			{Name: "total.wasted", Value: 48, Unit: "s"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("finding (-want +got):\n%s", diff)
	}
	if got.Advice == "" || !strings.Contains(got.Advice, "Never jitter") {
		t.Errorf("the advice is %q", got.Advice)
	}
}

func TestHotKeyExpiryIsSilentOnWhatItDoesNotKnow(t *testing.T) {
	f := last(t, expiry{}, urgent(with(tick(200*ms, burst(0, 60, live, ttl(0), func(e *episode) {
		e.Window.Recomputes.Ended[signal.CauseExpired][signal.OutcomeOK] = 0
		e.Window.Busy, e.Window.MissPeak = 0, 0
		e.Window.Shares = nil
		e.Window.InFlightPeak = 60
	})), feed(noBudget))))
	var names []string
	for _, e := range f.Evidence {
		names = append(names, e.Name)
	}
	want := []string{"peak", "duplicates", "instances", "wasted", "starts", "total.episodes", "total.starts", "total.duplicates", "total.wasted"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("evidence (-want +got):\n%s", diff)
	}
	if want := "feed:* in cache feed: 60 recomputes of one key at once, across 1 instance; 59 were duplicates. No budget is declared."; f.Summary != want {
		t.Errorf("summary %q, want %q", f.Summary, want)
	}
}

func TestHotKeyExpiryNamesAnOriginWithoutABudget(t *testing.T) {
	unlimited := func(c *signal.CacheState) { c.Origin.Budget = 0 }
	if got := last(t, expiry{}, with(tick(second, burst(0, 121)), feed(unlimited))); got.Origin != "db" {
		t.Errorf("the finding names the origin %q, want db", got.Origin)
	}
	if got := last(t, expiry{}, with(tick(second, burst(0, 121)), feed(noBudget))); got.Origin != "" {
		t.Errorf("the finding names the origin %q, want none", got.Origin)
	}
}

func TestHotKeyExpirySummaries(t *testing.T) {
	tests := []struct {
		name  string
		ticks ticks
		want  string
	}{
		{"of a ticket", series(5, 1, 9, 1, 7), "feed:* in cache feed: 3 of its last 5 episodes had 5 or more recomputes of one key at once, the worst 9; 18 duplicates in all."},
		{"of a cold start", ticks{with(tick(second, burst(0, 50, cold)), feed(noBudget, uptime(30*second)))},
			"feed:* in cache feed: 50 recomputes of one key at once, across 2 instances; 49 were duplicates. No budget is declared. The fleet had just started."},
		{"of a ticket that became a page", series(5, 5, 5, 30), "feed:* in cache feed: 30 recomputes of one key at once against a budget of 8, across 2 instances; 29 were duplicates."},
		{"of a key without a group", ticks{tick(second, burst(0, 20, func(e *episode) { e.Window.Key.Group = "" }))},
			"A key in cache feed: 20 recomputes of one key at once against a budget of 8, across 2 instances; 19 were duplicates."},
		{"of the end", ticks{tick(second, burst(0, 21)), tick(10*minute + second)},
			"feed:* in cache feed: no key had 10 or more recomputes at once for 10m0s. At its worst there were 21; 1 episode wasted 8.0 s of the origin's time."},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := last(t, expiry{}, tc.ticks...).Summary; got != tc.want {
				t.Errorf("summary\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestHotKeyExpiryTellsOfTheWorstEpisodeAndOfAll(t *testing.T) {
	figures := []string{"peak", "starts", "duplicates", "wasted", "latest.peak", "total.episodes", "total.starts", "total.duplicates", "total.wasted"}
	tests := []struct {
		name  string
		ticks ticks
		want  []float64 // -1: not told
	}{
		{"one that grows counts once, with its latest figures", ticks{
			urgent(tick(100*ms, burst(0, 20, live))), tick(second, burst(0, 30, live)), tick(2*second, burst(0, 40)), tick(3 * second),
		}, []float64{40, 40, 39, 15.6, -1, 1, 40, 39, 15.6}},
		{"one that shrinks on better knowledge, too", ticks{
			urgent(tick(100*ms, burst(0, 30, live))), tick(second, burst(0, 25)),
		}, []float64{25, 25, 24, 9.6, -1, 1, 25, 24, 9.6}},
		{"the worst stays, all add up", series(21, 41, 11), []float64{41, 41, 40, 16, 11, 3, 73, 70, 28}},
		{"also those too small to matter", series(21, 1, 1), []float64{21, 21, 20, 8, 1, 3, 23, 20, 8}},
		{"also more than are remembered singly", series(21, 2, 3, 4, 5, 6, 7, 8), []float64{21, 21, 20, 8, 8, 8, 56, 48, 19.2}},
		{"but none from before the onset", series(1, 5, 1, 21), []float64{21, 21, 20, 8, -1, 1, 21, 20, 8}},
		{"of a ticket, all since the first that counted", series(5, 1, 1, 6, 1, 7, 8), []float64{8, 8, 7, 2.8, 8, 4, 22, 18, 7.2}},
		{"two that turn out to be one count once", ticks{
			tick(second, burst(0, 20, live), burst(second/2, 10, live)),
			tick(2*second, burst(0, 31, live)), tick(3*second, burst(0, 31)),
		}, []float64{31, 31, 30, 12, -1, 1, 31, 30, 12}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := last(t, expiry{}, tc.ticks...)
			for i, name := range figures {
				got, ok := f.Get(name)
				if !ok {
					got = -1
				}
				if diff := got - tc.want[i]; diff > 1e-9 || diff < -1e-9 {
					t.Errorf("%s is %v, want %v", name, got, tc.want[i])
				}
			}
		})
	}
}

func TestHotKeyExpiryOnset(t *testing.T) {
	tests := []struct {
		name  string
		ticks ticks
		onset time.Duration
	}{
		{"is when a second recompute joined the first", ticks{tick(second, burst(0, 20))}, 10 * ms},
		{"or the start, if that is all that is known", ticks{tick(second, burst(0, 20, func(e *episode) { e.Onset = 0 }))}, 0},
		{"moves back if a later report knows better", ticks{
			urgent(tick(second, burst(0, 20, live, func(e *episode) { e.Onset = after(100 * ms) }))), tick(2*second, burst(0, 20))}, 10 * ms},
		{"stays that of the first of several", series(20, 20), 10 * ms},
		{"is that of the first that counted, for a ticket", series(1, 5, 5, 5), minute + 10*ms},
		{"stays that of the ticket when it becomes a page", series(1, 5, 5, 5, 30), minute + 10*ms},
		{"is not after the tick that saw it", ticks{tick(second, burst(2*second, 20))}, second},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if f := last(t, expiry{}, tc.ticks...); f.Onset != after(tc.onset) {
				t.Errorf("onset is %v after the beginning, want %v", f.Onset.Sub(epoch), tc.onset)
			}
		})
	}
}

func TestHotKeyExpiryNeverTellsAKey(t *testing.T) {
	secret := func(e *episode) { e.Window.Key.Text = "user:4711:feed" }
	for _, f := range []detectors.Finding{
		last(t, expiry{}, tick(second, burst(0, 20, secret))),
		last(t, expiry{}, tick(second, burst(0, 20, secret)), tick(10*minute+second)),
	} {
		if f.Key.Text != "user:4711:feed" {
			t.Errorf("the key is %+v, want its text, for who may see it", f.Key)
		}
		texts := []string{f.Summary, f.Advice}
		for _, e := range f.Evidence {
			texts = append(texts, e.Name, e.Note)
		}
		if i := slices.IndexFunc(texts, func(s string) bool { return strings.Contains(s, "4711") }); i >= 0 {
			t.Errorf("the key is told: %q", texts[i])
		}
	}
}

func TestHotKeyExpiryKeepsTheNameOfASubject(t *testing.T) {
	other := func(e *episode) { e.Window.Service = "" }
	f := last(t, expiry{}, tick(second, burst(0, 20)), tick(minute, burst(minute-second, 30, other)))
	if f.Service != "shop" {
		t.Errorf("the service is %q, want it as it was: another would be another incident", f.Service)
	}
}

func TestHotKeyExpiryTellsNotKnownFromHealthy(t *testing.T) {
	reads := func(e *episode) { e.Window.Unknown |= signal.UnknownRecomputes }
	noBudgetLimit := detectors.Limit{Cache: "feed", Reason: "What its origin can run at once is not declared: a page takes 50 recomputes of one key at once."}
	silence := detectors.Limit{Cache: "feed", Blind: true, Reason: "No instance has reported lately."}
	readsOnly := detectors.Limit{Cache: "feed", Reason: "Some sources report reads only: recomputes of theirs are not counted."}
	tests := []struct {
		name  string
		ticks ticks
		want  []detectors.Limit
	}{
		{"all is known", ticks{tick(second)}, nil},
		{"no budget", ticks{with(tick(second), feed(noBudget))}, []detectors.Limit{noBudgetLimit}},
		{"nobody reports", ticks{with(tick(second), feed(silent))}, []detectors.Limit{silence}},
		{"the cache of a finding is unheard of", ticks{tick(second, burst(0, 20)), with(tick(2 * second))}, []detectors.Limit{silence}},
		{"recomputes are not seen, from then on", ticks{urgent(tick(second, burst(0, 1, reads))), tick(2 * second)}, []detectors.Limit{readsOnly}},
		{"an urgent tick says nothing of it", ticks{with(tick(second), feed(noBudget)), urgent(tick(2*second, burst(0, 1)))}, []detectors.Limit{noBudgetLimit}},
		{"sorted by cache", ticks{with(tick(second), feed(noBudget), feed(silent, func(c *signal.CacheState) { c.Cache = "a" }))},
			[]detectors.Limit{{Cache: "a", Blind: true, Reason: silence.Reason}, noBudgetLimit}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			d := newHotKeyExpiry(t, expiry{}).(detectors.Limited)
			for _, tk := range tc.ticks {
				d.Observe(tk)
			}
			if diff := cmp.Diff(tc.want, d.Limits()); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}
