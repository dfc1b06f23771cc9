package detectors_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newStorm(t testing.TB) *timeline {
	d, err := detectors.NewRetryStorm(detectors.RetryStormConfig{})
	return newTimeline(t, d, err)
}

func TestRetryStorm(t *testing.T) {
	tests := []struct {
		name string
		x    traffic
		want []string
	}{
		{"no retries", usually(), nil},
		{"four attempts in vain page, once readers are harmed", stormy(), []string{"20s page/2", "1m5s page/1"}},
		{"1.5 attempts do", stormy(func(x *traffic) { x.attempts = 30 }), []string{"25s page/2", "1m10s page/1"}},
		{"fewer do not", stormy(func(x *traffic) { x.attempts = 29 }), nil},
		{"hedges succeed", stormy(func(x *traffic) { x.attempts, x.ok, x.late = 40, 20, 20 }), nil},
		{"as many as ever get an answer from the origin", stormy(func(x *traffic) { x.ok, x.late = 19, 61 }), nil},
		{
			"a cache that hides it from readers makes it a ticket",
			stormy(func(x *traffic) { x.hits, x.misses, x.requests, x.attempts, x.late = 997, 3, 3, 12, 12 }),
			[]string{"1m4s ticket"},
		},
		{"fewer than 20 requests in 10 s are no storm", traffic{misses: 1, requests: 1, attempts: 9, late: 9, running: 9}, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { newStorm(t).learn().run(120, tc.x).check(t, tc.want...) })
	}
}

func TestRetryStormNeedsNoBaseline(t *testing.T) {
	newStorm(t).run(60, stormy()).check(t, "17s page/2")
}

func TestRetryStormGrowsAndClears(t *testing.T) {
	hidden := stormy(func(x *traffic) { x.hits, x.misses, x.requests, x.attempts, x.late = 997, 3, 3, 12, 12 })
	l := newStorm(t).learn().run(70, hidden).run(60, stormy()).run(70, hidden)
	l.check(t, "1m4s ticket", "1m35s page/2") // and no ticket again
	l.zero, l.found = l.now, nil
	l.run(400, usually()).check(t, "5m53s cleared")
}

func TestRetryStormDoesNotCountWhatHappensInUrgentTicks(t *testing.T) {
	l := newStorm(t).run(10, stormy())
	for range 100 {
		l.now += ms
		l.show(urgent(&signal.Tick{At: after(l.now), Caches: []signal.CacheState{stormy().state()}}))
	}
	l.check(t)
}

func TestRetryStormSaysIfAttemptsAreNotReported(t *testing.T) {
	l := newStorm(t).run(60, usually(func(x *traffic) { x.change = func(c *signal.CacheState) { c.Work.Retries = signal.Retries{} } }))
	want := []string{"blind: Attempts on its origin are not reported: retries cannot be told from first attempts."}
	if diff := cmp.Diff(want, reasons(l.d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := reasons(newStorm(t).run(60, usually()).d); len(got) > 0 {
		t.Errorf("limits %q of a cache that reports them, want none", got)
	}
}
