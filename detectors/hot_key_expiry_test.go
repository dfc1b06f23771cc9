package detectors_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

type (
	ticks   = []*signal.Tick
	expiry  = detectors.HotKeyExpiryConfig
	episode = signal.Episode
)

// second is a burst a second before the tick that shows it, final by then.
const (
	ms     = time.Millisecond
	second = time.Second
	minute = time.Minute
)

func check(t *testing.T, c expiry, ts ticks, want []string) {
	t.Helper()
	got := play(newHotKeyExpiry(t, c), ts)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestHotKeyExpiryPages(t *testing.T) {
	undeclared := feed(noBudget)
	declared := func(n int) signal.CacheState {
		return feed(func(c *signal.CacheState) { c.Origin.Budget = n })
	}
	tests := []struct {
		name string
		c    expiry
		tick *signal.Tick
		want []string
	}{
		{name: "nothing happens, and it is quiet", tick: tick(second)},
		{name: "one recompute is what an expiry costs", tick: tick(second, burst(0, 1))},
		{name: "one short of 20 with a budget of 8 is quiet", tick: tick(second, burst(0, 19))},
		{name: "20 with a budget of 8 pages", tick: tick(second, burst(0, 20)), want: []string{"1s page/1"}},
		{name: "one short of a budget above 20 is quiet", tick: with(tick(second, burst(0, 29)), declared(30))},
		{name: "a budget above 20 that is reached pages", tick: with(tick(second, burst(0, 30)), declared(30)), want: []string{"1s page/2"}},
		{name: "one short of twice the budget is of priority 2", tick: with(tick(second, burst(0, 59)), declared(30)), want: []string{"1s page/2"}},
		{name: "twice the budget is of priority 1", tick: with(tick(second, burst(0, 60)), declared(30)), want: []string{"1s page/1"}},
		{name: "a negative budget is none", tick: with(tick(second, burst(0, 49)), declared(-1))},
		{name: "one short of 50 without a budget is quiet", tick: with(tick(second, burst(0, 49)), undeclared)},
		{name: "50 without a budget pages", tick: with(tick(second, burst(0, 50)), undeclared), want: []string{"1s page/2"}},
		{name: "99 without a budget is of priority 2", tick: with(tick(second, burst(0, 99)), undeclared), want: []string{"1s page/2"}},
		{name: "100 without a budget is of priority 1", tick: with(tick(second, burst(0, 100)), undeclared), want: []string{"1s page/1"}},
		{name: "a cache that is not in the tick has no budget", tick: with(tick(second, burst(0, 50))), want: []string{"1s page/2"}},
		{name: "an urgent tick pages", tick: urgent(tick(200*ms, burst(0, 20, live))), want: []string{"200ms page/1"}},
		{
			name: "what is not proven does not page",
			tick: tick(second, burst(0, 19, func(e *episode) { e.PeakHigh = 400; e.Window.Sampled = true })),
		},
		{
			name: "instances that each run one at a time are not a dogpile if their readers met",
			tick: tick(second, burst(0, 200, coalesced)),
		},
		{
			name: "they are one if no two readers met anywhere",
			tick: tick(second, burst(0, 200, coalesced, func(e *episode) { e.Window.MissPeak = 1 })),
			want: []string{"1s page/1"},
		},
		{
			name: "one instance among them that runs two makes it one",
			tick: tick(second, burst(0, 200, coalesced, func(e *episode) { e.Window.Shares[7].InFlightPeak = 2 })),
			want: []string{"1s page/1"},
		},
		{
			name: "a source that was never merged is its own only share",
			tick: tick(second, burst(0, 20, func(e *episode) { e.Window.Shares, e.Window.InFlightPeak = nil, 20 })),
			want: []string{"1s page/1"},
		},
		{
			name: "an unmerged source that runs one at a time is quiet whatever is said of the fleet",
			tick: tick(second, burst(0, 20, func(e *episode) { e.Window.Shares, e.Window.InFlightPeak = nil, 1 })),
		},
		{
			name: "sources that do not say what ran at once in them are judged by the fleet",
			tick: tick(second, burst(0, 20, func(e *episode) { e.Window.Shares, e.Window.InFlightPeak = nil, 0 })),
			want: []string{"1s page/1"},
		},
		{
			name: "early refreshers do not count, however many",
			tick: tick(second, burst(0, 1, func(e *episode) {
				e.Window.Recomputes.Started[signal.CauseEarly] = 60
				e.Window.Early.Count = 60
			})),
		},
		{
			name: "a new key of an old fleet pages like any other",
			tick: tick(second, burst(0, 20, cold)),
			want: []string{"1s page/1"},
		},
		{
			name: "thresholds are configurable",
			c:    expiry{PagePeak: 10, ClearPagePeak: 10},
			tick: tick(second, burst(0, 10)),
			want: []string{"1s page/2"},
		},
		{
			name: "two keys are two findings, in order of cache and key",
			tick: with(tick(second, burst(0, 20, ofKey(2)), burst(0, 20, ofCache("a")), burst(0, 20)), feed(),
				feed(func(c *signal.CacheState) { c.Cache = "a" })),
			want: []string{"1s a/1 page/1", "1s page/1", "1s feed/2 page/1"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { check(t, tc.c, ticks{tc.tick}, tc.want) })
	}
}

func TestHotKeyExpiryInAColdStart(t *testing.T) {
	tests := []struct {
		name  string
		burst episode
		cache signal.CacheState
		want  []string
	}{
		{"is a ticket", burst(0, 50, cold), feed(noBudget, uptime(59*second)), []string{"1s ticket"}},
		{"pages all the same if it exceeds a budget", burst(0, 20, cold), feed(uptime(59 * second)), []string{"1s page/1"}},
		{"is quiet below the threshold", burst(0, 49, cold), feed(noBudget, uptime(59*second)), nil},
		{"is over once the oldest instance was up for a minute when it began", burst(0, 50, cold), feed(noBudget, uptime(61*second)), []string{"1s page/2"}},
		{"is judged by when the episode began", burst(0, 50, cold), feed(noBudget, uptime(60*second)), []string{"1s ticket"}},
		{"is none if somebody had a value before", burst(0, 50, cold, func(e *episode) { e.KnownBefore = true }), feed(noBudget, uptime(59*second)), []string{"1s page/2"}},
		{"is none if not all causes are cold", burst(0, 50, cold, func(e *episode) {
			e.Window.Recomputes.Started[signal.CauseExpired] = 1
		}), feed(noBudget, uptime(59*second)), []string{"1s page/2"}},
		{"is none if causes are not counted", burst(0, 50, cold, func(e *episode) {
			e.Window.Recomputes = signal.Recomputes{}
		}), feed(noBudget, uptime(59*second)), []string{"1s page/2"}},
		{"is not known of a fleet that has not said how long it is up", burst(0, 50, cold), feed(noBudget, silent), []string{"1s page/2"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			check(t, expiry{}, ticks{with(tick(second, tc.burst), tc.cache)}, tc.want)
		})
	}
}

// series is an episode a minute with each of peaks, each shown at one tick.
func series(peaks ...int) (out ticks) {
	for i, p := range peaks {
		at := time.Duration(i) * minute
		out = append(out, tick(at+second, burst(at, p)))
	}
	return out
}

func TestHotKeyExpiryThatRecursIsATicket(t *testing.T) {
	tests := []struct {
		name  string
		c     expiry
		ticks ticks
		want  []string
	}{
		{name: "two of five are quiet", ticks: series(5, 1, 1, 1, 5)},
		{name: "three of five fire", ticks: series(5, 1, 5, 1, 5), want: []string{"4m1s ticket"}},
		{name: "three in a row fire without waiting for five", ticks: series(5, 5, 5), want: []string{"2m1s ticket"}},
		{name: "three of six are quiet", ticks: series(5, 5, 1, 1, 1, 5, 1)},
		{name: "one short of five does not count", ticks: series(5, 4, 5, 4, 4)},
		{name: "keys do not add up", ticks: ticks{tick(second, burst(0, 5), burst(0, 5, ofKey(2)), burst(0, 5, ofKey(3)))}},
		{
			name: "an episode shown again is the same episode",
			ticks: ticks{tick(second, burst(0, 5, live)), tick(2*second, burst(0, 6, live)), tick(3*second, burst(0, 7)),
				tick(minute, burst(minute-second, 1))},
		},
		{
			name:  "several at one tick count in order of their start",
			ticks: ticks{tick(3*minute, burst(minute, 5), burst(0, 5), burst(3*minute-second, 5))},
			want:  []string{"3m0s ticket"},
		},
		{
			name: "two that turn out to be one count once",
			ticks: ticks{
				tick(second, burst(0, 5, live), burst(second/2, 5, live)),
				tick(2*second, burst(0, 9, live)), tick(3*second, burst(0, 9)),
				tick(minute, burst(minute-second, 5)),
			},
		},
		{
			name: "instances that each run one at a time do not count if they coalesce",
			ticks: in(ticks{tick(second, burst(0, 9, coalesced)), tick(minute, burst(minute-second, 9, coalesced)), tick(2*minute, burst(2*minute-second, 9, coalesced))},
				claims(signal.Claims{Protection: []string{signal.ProtectSingleFlight}})),
		},
		{
			name: "nine of 1,000 instances are each alone by chance",
			ticks: in(ticks{tick(second, burst(0, 9, coalesced)), tick(minute, burst(minute-second, 9, coalesced)), tick(2*minute, burst(2*minute-second, 9, coalesced))},
				fleetOf(1000)),
			want: []string{"2m0s ticket"},
		},
		{
			name:  "both figures are configurable",
			c:     expiry{TicketPeak: 4, TicketEpisodes: 2, TicketOf: 2},
			ticks: series(4, 4), want: []string{"1m1s ticket"},
		},
		{
			name:  "a key that has been idle for an hour begins again",
			ticks: slices.Concat(series(5, 5), idle(2*minute, 64*minute), ticks{tick(65*minute, burst(65*minute-second, 5))}),
		},
		{
			name: "unless it lives for longer than that",
			ticks: slices.Concat(
				ticks{tick(second, burst(0, 5, ttl(time.Hour))), tick(time.Hour, burst(time.Hour-second, 5, ttl(time.Hour)))},
				ticks{tick(2 * time.Hour)}, ticks{tick(2*time.Hour+second, burst(2*time.Hour, 5, ttl(time.Hour)))}),
			want: []string{"2h0m1s ticket"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { check(t, tc.c, tc.ticks, tc.want) })
	}
}

func TestHotKeyExpiryClears(t *testing.T) {
	page, ticket := ticks{tick(second, burst(0, 20))}, series(5, 5, 5) // at 1s, at 2m1s
	tests := []struct {
		name  string
		c     expiry
		ticks ticks
		want  []string
	}{
		{
			name:  "a page after ten quiet minutes",
			ticks: slices.Concat(page, idle(2*second, 20*minute)),
			want:  []string{"1s page/1", "10m1s cleared"},
		},
		{
			name:  "a ticket too",
			ticks: slices.Concat(ticket, idle(3*minute, 20*minute)),
			want:  []string{"2m1s ticket", "12m1s cleared"},
		},
		{
			name:  "later if the key lives for long: twice its time to live",
			ticks: slices.Concat(ticks{tick(second, burst(0, 20, ttl(20*minute)))}, idle(2*second, 60*minute)),
			want:  []string{"1s page/1", "40m1s cleared"},
		},
		{
			name:  "but after a day in any case",
			ticks: slices.Concat(ticks{tick(second, burst(0, 20, ttl(1<<63-1)))}, ticks{tick(24 * time.Hour)}, ticks{tick(24*time.Hour + second)}),
			want:  []string{"1s page/1", "24h0m1s cleared"},
		},
		{
			name:  "sooner if that is configured",
			c:     expiry{ClearAfter: 5 * second},
			ticks: slices.Concat(ticks{tick(second, burst(0, 20, ttl(2*second)))}, idle(2*second, minute)),
			want:  []string{"1s page/1", "6s cleared"},
		},
		{
			name:  "an episode of 10 keeps a page open",
			ticks: slices.Concat(page, idle(2*second, 5*minute), ticks{tick(5*minute+second, burst(5*minute, 10))}, idle(5*minute+2*second, 20*minute)),
			want:  []string{"1s page/1", "15m1s cleared"},
		},
		{
			name:  "an episode of 9 does not",
			ticks: slices.Concat(page, idle(2*second, 5*minute), ticks{tick(5*minute+second, burst(5*minute, 9))}, idle(5*minute+2*second, 20*minute)),
			want:  []string{"1s page/1", "10m1s cleared"},
		},
		{
			name:  "an episode of 3 keeps a ticket open",
			ticks: slices.Concat(ticket, ticks{tick(5*minute+second, burst(5*minute, 3))}, idle(6*minute, 20*minute)),
			want:  []string{"2m1s ticket", "15m1s cleared"},
		},
		{
			name:  "an episode of 2 does not",
			ticks: slices.Concat(ticket, ticks{tick(5*minute+second, burst(5*minute, 2))}, idle(6*minute, 20*minute)),
			want:  []string{"2m1s ticket", "12m1s cleared"},
		},
		{
			name:  "coalescing in each process is a cure",
			ticks: slices.Concat(page, ticks{tick(5*minute+second, burst(5*minute, 15, coalesced))}, idle(6*minute, 20*minute)),
			want:  []string{"1s page/1", "10m1s cleared"},
		},
		{
			name:  "never at an urgent tick",
			ticks: slices.Concat(page, ticks{urgent(tick(30*minute, burst(30*minute-second, 1, live)))}),
			want:  []string{"1s page/1"},
		},
		{
			name:  "never while no instance reports, and the wait begins again when one does",
			ticks: slices.Concat(page, idle(2*second, 60*minute, feed(silent)), idle(60*minute+second, 80*minute)),
			want:  []string{"1s page/1", "1h10m0s cleared"},
		},
		{
			name:  "nor while the cache is unheard of",
			ticks: slices.Concat(page, idle(2*second, 60*minute, []signal.CacheState{}...), ticks{with(tick(60 * minute))}, idle(60*minute+second, 80*minute)),
			want:  []string{"1s page/1", "1h10m0s cleared"},
		},
		{
			name:  "a clock set back clears nothing",
			ticks: slices.Concat(page, ticks{tick(-time.Hour), tick(-minute)}),
			want:  []string{"1s page/1"},
		},
		{
			name:  "and a page that fell to a ticket's trouble comes back as a ticket",
			ticks: slices.Concat(page, series(20, 1, 6, 6, 6)[2:], idle(5*minute, 10*minute+second), ticks{tick(11*minute+second, burst(11*minute, 6))}),
			want:  []string{"1s page/1", "10m1s cleared", "11m1s ticket"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { check(t, tc.c, tc.ticks, tc.want) })
	}
}

func TestHotKeyExpiryChangesSeverityOneWay(t *testing.T) {
	declared := func(ts ticks, n int) ticks {
		for _, tk := range ts {
			tk.Caches[0].Origin.Budget = n
		}
		return ts
	}
	tests := []struct {
		name  string
		ticks ticks
		want  []string
	}{
		{"a ticket becomes a page", series(5, 5, 5, 20), []string{"2m1s ticket", "3m1s page/1"}},
		{"a page stays one", series(20, 5, 5, 5), []string{"1s page/1"}},
		{"a page of priority 2 becomes one of priority 1", declared(series(30, 60), 30), []string{"1s page/2", "1m1s page/1"}},
		{"and stays that", declared(series(60, 30), 30), []string{"1s page/1"}},
		{"a cold start that goes on becomes a page", ticks{
			with(tick(second, burst(0, 50, cold)), feed(noBudget, uptime(10*second))),
			with(tick(2*minute+second, burst(2*minute, 50)), feed(noBudget, uptime(130*second))),
		}, []string{"1s ticket", "2m1s page/2"}},
		{"at an urgent tick, too, but only worse findings are told of there", ticks{
			urgent(tick(second, burst(0, 20, live), burst(0, 30, live, ofKey(2)))),
			urgent(tick(2*second, burst(0, 21, live), burst(0, 31, live, ofKey(2)), burst(0, 20, live, ofKey(3)))),
		}, []string{"1s page/1", "1s feed/2 page/1", "2s feed/3 page/1"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { check(t, expiry{}, tc.ticks, tc.want) })
	}
	t.Run("an urgent tick repeats nothing", func(t *testing.T) {
		d := newHotKeyExpiry(t, expiry{})
		d.Observe(urgent(tick(second, burst(0, 20, live))))
		if fs := d.Observe(urgent(tick(2*second, burst(0, 30, live)))); fs != nil {
			t.Errorf("it says %v", fs)
		}
	})
}

func TestHotKeyExpiryIsNotRaisedByWhatIsLate(t *testing.T) {
	tests := []struct {
		name  string
		ticks ticks
		want  []string
	}{
		{"first seen 10 s after it ended, it pages", ticks{tick(10400*ms, burst(0, 20))}, []string{"10.4s page/1"}},
		{"first seen later than that, it does not", ticks{tick(10401*ms, burst(0, 20))}, nil},
		{"unless it is not over", ticks{tick(minute, burst(0, 20, live))}, []string{"1m0s page/1"}},
		{"or was seen before it was", ticks{tick(minute, burst(0, 19, live)), tick(2*minute, burst(0, 20))}, []string{"2m0s page/1"}},
		{"growing once it is final raises nothing", ticks{tick(second, burst(0, 19)), tick(2*second, burst(0, 20))}, nil},
		{"a ticket neither", ticks{tick(minute, burst(0, 5)), tick(2*minute, burst(minute, 5)), tick(3*minute, burst(2*minute, 5))}, nil},
		{"but it counts for the next", ticks{
			tick(3*minute, burst(0, 5), burst(minute, 5)), tick(3*minute+second, burst(3*minute, 5)),
		}, []string{"3m1s ticket"}},
		{"one that has been forgotten is not news", slices.Concat(series(5, 1, 1, 1, 1, 5), ticks{
			tick(6*minute, burst(0, 5)), tick(7*minute, burst(0, 5, live)), tick(7*minute+second, burst(7*minute, 1)),
		}), nil},
		{"one older than all that are remembered is not either", slices.Concat(series(5, 1, 1, 1, 1), ticks{
			tick(5*minute, burst(-minute, 5, live)), tick(6*minute, burst(-2*minute, 5, live)),
		}), nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { check(t, expiry{}, tc.ticks, tc.want) })
	}
	t.Run("it improves the evidence of a finding that is open", func(t *testing.T) {
		d := newHotKeyExpiry(t, expiry{})
		d.Observe(tick(second, burst(0, 20)))
		f := d.Observe(tick(minute, burst(0, 33)))[0]
		if peak, _ := f.Get("peak"); peak != 33 {
			t.Errorf("peak is %v, want 33", peak)
		}
		f = d.Observe(tick(2*minute, burst(90*second, 44)))[0]
		if peak, _ := f.Get("peak"); peak != 44 {
			t.Errorf("peak is %v, want 44", peak)
		}
	})
}
