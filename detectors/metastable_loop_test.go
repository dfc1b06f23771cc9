package detectors_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newLoop(t testing.TB) *timeline {
	d, err := detectors.NewMetastableLoop(detectors.MetastableLoopConfig{})
	return newTimeline(t, d, err)
}

// stuck is a second of a loop without retries: the cache is cold, the origin
// full, and nothing comes in time.
func stuck(change ...func(*traffic)) traffic {
	x := traffic{hits: 10, misses: 90, requests: 90, attempts: 90, late: 90, running: 90}
	for _, f := range change {
		f(&x)
	}
	return x
}

// stormy is a second of a loop of retries: the cache is as it was, but each
// miss is tried four times in vain.
func stormy(change ...func(*traffic)) traffic {
	x := traffic{hits: 80, misses: 20, requests: 20, attempts: 80, late: 80, running: 60}
	for _, f := range change {
		f(&x)
	}
	return x
}

func TestMetastableLoopHoldsWhatSustainsTroubleForAMinute(t *testing.T) {
	tests := []struct {
		name string
		x    traffic
		want []string
	}{
		{"all as usual", usually(), nil},
		{"a cold cache that nothing fills", stuck(), []string{"1m4s page/1"}},
		{"a cold cache that just over half of the recomputes fill", stuck(func(x *traffic) { x.ok, x.late = 46, 44 }), nil},
		{"a hit ratio just above 0.7 of usual", stuck(func(x *traffic) { x.hits, x.misses, x.requests, x.attempts = 64, 36, 36, 36 }), nil},
		{"a cold cache whose origin rests: readers wait for something else", stuck(func(x *traffic) { x.requests, x.attempts, x.late, x.running = 0, 0, 0, 0 }), nil},
		{"one that is asked once a second, in vain", stuck(func(x *traffic) { x.requests, x.attempts, x.late, x.running = 1, 1, 1, 0 }), []string{"1m10s page/1"}},
		{"retries in vain", stormy(), []string{"1m5s page/1"}},
		{"retries just below 1.5 for each first attempt", stormy(func(x *traffic) { x.attempts = 29 }), nil},
		{"hedged requests, which succeed", stormy(func(x *traffic) { x.attempts, x.ok, x.late = 40, 20, 20 }), nil},
		{"goodput just above 0.9 of usual", stormy(func(x *traffic) { x.hits, x.misses, x.requests, x.attempts = 91, 9, 9, 36 }), nil},
		{"fewer than 20 reads in 10 s", traffic{misses: 1, requests: 1, attempts: 4, late: 4, running: 9}, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			newLoop(t).learn().run(150, tc.x).check(t, tc.want...)
		})
	}
}

func TestMetastableLoopWaitsForWhatMayExplainIt(t *testing.T) {
	t.Run("more load than before explains it for as long as it lasts", func(t *testing.T) {
		more := stuck(func(x *traffic) { x.misses, x.requests, x.attempts, x.late = 200, 200, 200, 200 })
		l := newLoop(t).learn().run(180, more)
		l.check(t)
		l.run(90, stuck()).check(t, "4m3s page/1")
	})
	t.Run("so does a demand that a warm cache could not meet", func(t *testing.T) {
		// 1,000 reads a second of which one in ten misses, of an origin that does 80.
		busy := stuck(func(x *traffic) { x.hits, x.misses, x.requests, x.attempts, x.late = 0, 1000, 1000, 1000, 1000 })
		newLoop(t).learn().run(300, busy).check(t)
	})
	t.Run("instances that were just started do, and then no longer", func(t *testing.T) {
		young := stuck(func(x *traffic) { x.change = uptime(10 * second) })
		l := newLoop(t).learn().run(60, young)
		l.check(t)
		l.run(70, stuck()).check(t, "2m0s page/1")
	})
	t.Run("but not if they are started without end", func(t *testing.T) {
		newLoop(t).learn().run(700, stuck(func(x *traffic) { x.change = uptime(10 * second) })).check(t, "11m1s page/1")
	})
	t.Run("errors of an origin that is not full are its own", func(t *testing.T) {
		down := stormy(func(x *traffic) { x.late, x.failed, x.running = 0, 80, 2 })
		newLoop(t).learn().run(300, down).check(t)
	})
	t.Run("errors of an origin that is full are not", func(t *testing.T) {
		refusing := stormy(func(x *traffic) { x.late, x.failed = 0, 80 })
		newLoop(t).learn().run(90, refusing).check(t, "1m5s page/1")
	})
	t.Run("values that vanish explain the moment at which they do", func(t *testing.T) {
		newLoop(t).learn().run(90, stuck(func(x *traffic) { x.lost = 90 })).check(t, "1m4s page/1")
	})
	t.Run("servers that evict without end explain it for ten minutes", func(t *testing.T) {
		evicting := stuck(func(x *traffic) { x.change = func(c *signal.CacheState) { c.Evicted = 90 } })
		newLoop(t).learn().run(660, evicting).check(t)
	})
	t.Run("three client timeouts count if they are longer than a minute", func(t *testing.T) {
		patient := stuck(func(x *traffic) { x.change = func(c *signal.CacheState) { c.Claims.Timeout = 40 * second } })
		newLoop(t).learn().run(150, patient).check(t, "2m4s page/1")
	})
	queued := crowded(400, func(x *traffic) { x.running = 3000 })
	t.Run("twice the time a loop-free system needs to drain counts if that is longer", func(t *testing.T) {
		// 2,992 wait, and some 65 a second can be served beside this load: 45 s.
		full := stuck(func(x *traffic) { x.running = 3000 })
		newLoop(t).learn().run(30, queued).run(150, full).check(t, "2m3s page/1")
	})
	t.Run("but not what waited long ago", func(t *testing.T) {
		newLoop(t).learn().run(30, queued).run(900, usually()).run(90, stuck()).check(t, "16m34s page/1")
	})
	t.Run("a cache that fills again is on its way back", func(t *testing.T) {
		l := newLoop(t).learn().run(50, stuck())
		for hits := uint64(10); hits < 90; hits += 4 {
			l.run(5, stuck(func(x *traffic) {
				x.hits, x.misses, x.requests, x.attempts, x.ok, x.late = hits, 100-hits, 100-hits, 150-hits, (100-hits)/2+2, 0
			}))
		}
		l.run(60, usually()).check(t)
	})
}

func TestMetastableLoopClearsWhenAllIsAsUsual(t *testing.T) {
	l := newLoop(t).learn().run(80, stuck())
	l.check(t, "1m4s page/1")
	l.zero = l.now
	l.found = nil
	t.Run("not while retries go on", func(t *testing.T) {
		l.run(400, usually(func(x *traffic) { x.attempts = 12 })).check(t)
	})
	t.Run("not while the cache is cold, for half an hour", func(t *testing.T) {
		l.run(1200, usually(func(x *traffic) { x.hits, x.misses, x.requests, x.attempts, x.ok = 80, 20, 20, 20, 20 })).check(t)
	})
	t.Run("not while nobody reports", func(t *testing.T) {
		l.run(400, usually(func(x *traffic) { x.change = silent })).check(t)
		if !strings.HasPrefix(reasons(l.d)[0], "blind: No instance") {
			t.Errorf("limits %q, want one that says so", reasons(l.d))
		}
	})
	t.Run("after five minutes of all", func(t *testing.T) {
		l.zero, l.found = l.now, nil
		l.run(400, usually()).check(t, "5m1s cleared")
	})
	t.Run("and opens again if it comes again", func(t *testing.T) {
		l.zero, l.found = l.now, nil
		l.run(80, stuck()).check(t, "1m4s page/1")
	})
}

func TestMetastableLoopClearsOfACacheThatStaysColder(t *testing.T) {
	l := newLoop(t).learn().run(80, stuck())
	l.zero, l.found = l.now, nil
	l.run(2400, usually(func(x *traffic) { x.hits, x.misses, x.requests, x.attempts, x.ok = 80, 20, 20, 20, 20 })).check(t, "35m56s cleared")
}

func TestMetastableLoopSaysWhatItDoesNotKnow(t *testing.T) {
	const unlearnt = "blind: Not enough data: what is usual for origin db is learnt from 5 healthy minutes, with 20 reads each and recomputes that end well."
	const young = "partial: What is usual for origin db was learnt in 6 healthy minutes only: less than an hour may not be like the next."
	t.Run("before it has learnt what is usual it is blind, and silent", func(t *testing.T) {
		l := newLoop(t).run(4*60, usually()).run(300, stuck())
		l.check(t)
		if diff := cmp.Diff([]string{unlearnt}, reasons(l.d)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a young baseline is said to be one", func(t *testing.T) {
		// A short ailment costs itself, and not the minute it is in.
		short := newLoop(t).run(20, usually(func(x *traffic) { x.change = uptime(10 * second) })).run(5*60+1, usually())
		if diff := cmp.Diff([]string{strings.Replace(young, "6", "5", 1)}, reasons(short.d)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{young}, reasons(newLoop(t).learn().d)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("an hour of it is not", func(t *testing.T) {
		if got := reasons(newLoop(t).run(3700, usually()).d); len(got) > 0 {
			t.Errorf("limits %q, want none", got)
		}
	})
	t.Run("without a budget the same load must have been borne", func(t *testing.T) {
		undeclared := func(x *traffic) { x.change = noBudget }
		l := newLoop(t).run(361, usually(undeclared))
		l.zero = l.now
		l.run(90, stuck(undeclared)).check(t, "1m4s page/1")
		if diff := cmp.Diff([]string{
			"partial: Not enough data: what its origin can run at once is not declared. Declare origins.NAME.concurrency and caches.feed.origin.",
			strings.ReplaceAll(young, "origin db", "the origin of feed"),
		}, reasons(l.d)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		l = newLoop(t).run(361, usually(undeclared))
		l.run(300, stuck(undeclared, func(x *traffic) { x.misses, x.requests, x.attempts, x.late = 40, 40, 40, 40 })).check(t)
	})
	t.Run("a source that shows no recomputes teaches nothing", func(t *testing.T) {
		l := newLoop(t).run(900, traffic{hits: 90, misses: 10})
		l.run(300, traffic{misses: 100}).check(t)
		if diff := cmp.Diff([]string{unlearnt}, reasons(l.d)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestRetriesThatLookIntoTheCacheAgainAreNotLoad(t *testing.T) {
	// Each of 20 misses is tried four times, and each time the cache is asked.
	l := newLoop(t).learn().run(90, stormy(func(x *traffic) { x.misses = 80 }))
	l.check(t, "1m5s page/1")
	if load, _ := l.f.Get("load"); load != 100 {
		t.Errorf("load %g, want 100", load)
	}
	if hits, _ := l.f.Get("hit_ratio"); hits != 0.8 {
		t.Errorf("hit ratio %g, want 0.8", hits)
	}
}
