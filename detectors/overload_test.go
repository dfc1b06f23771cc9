package detectors_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

func newOverload(t testing.TB) *timeline {
	d, err := detectors.NewOverload(detectors.OverloadConfig{})
	return newTimeline(t, d, err)
}

// crowded is a second of n reads, of which one in ten misses as usual, at an
// origin that does 80 recomputes.
func crowded(n uint64, change ...func(*traffic)) traffic {
	x := traffic{hits: n - n/10, misses: n / 10, requests: n / 10, attempts: n / 10, ok: n / 10, running: 8}
	for _, f := range change {
		f(&x)
	}
	return x
}

// queued are so many that run or wait that the origin needs 2 s for them.
func queued(x *traffic) { x.running = 160 }

func lose(late uint64) func(*traffic) {
	return func(x *traffic) { x.ok, x.late, x.running = x.ok-late, late, 100 }
}

func TestOverload(t *testing.T) {
	tests := []struct {
		name string
		x    traffic
		want []string
	}{
		{"all as usual", usually(), nil},
		{"0.9 of the origin is not too much", crowded(720), nil},
		{"more is, for 30 s", crowded(760, queued), []string{"40s ticket"}},
		{"unless readers hardly wait for it", crowded(760, func(x *traffic) { x.running = 140 }), nil},
		{"or the cache is so much warmer than usual that it asks for less", crowded(760, func(x *traffic) { x.hits, x.misses, x.requests, x.attempts, x.ok, x.running = 700, 60, 60, 60, 60, 160 }), nil},
		{"readers who are harmed meanwhile make it a page", crowded(1000, lose(100)), []string{"40s ticket", "1m15s page/2"}},
		{"an origin that is not full is not overloaded", crowded(1000, func(x *traffic) { x.ok, x.running = 0, 1 }), nil},
		{
			"one that is full and serves nothing, with load and cache as usual, has become slower",
			usually(func(x *traffic) {
				x.ok, x.late, x.hits, x.misses, x.requests, x.attempts, x.running = 0, 11, 89, 11, 11, 11, 100
			}),
			[]string{"40s ticket", "1m10s page/2"},
		},
		{
			"not if retries keep it full",
			usually(func(x *traffic) {
				x.ok, x.hits, x.misses, x.requests, x.attempts, x.late, x.running = 0, 89, 11, 11, 22, 22, 100
			}),
			nil,
		},
		{"nor if a cold cache does", stuck(), nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { newOverload(t).learn().run(100, tc.x).check(t, tc.want...) })
	}
}

func TestOverloadClearsOnceTheLoadHasFallen(t *testing.T) {
	l := newOverload(t).learn().run(60, crowded(1000, queued))
	l.zero, l.found = l.now, nil
	l.run(300, crowded(700)).check(t) // between 0.8 and 0.9 of it
	l.zero = l.now
	l.run(300, usually()).check(t, "2m5s cleared")
}

func TestOverloadNeedsABudgetAndABaseline(t *testing.T) {
	undeclared := newOverload(t).run(400, usually(func(x *traffic) { x.change = noBudget })).run(100, crowded(1000, queued, func(x *traffic) { x.change = noBudget }))
	undeclared.check(t)
	if diff := cmp.Diff([]string{"blind: Not enough data: what its origin can run at once is not declared. Declare origins.NAME.concurrency and caches.feed.origin."}, reasons(undeclared.d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	newOverload(t).run(200, usually()).run(60, crowded(1000, queued)).check(t)
}
