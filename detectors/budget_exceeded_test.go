package detectors_test

import (
	"strings"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

func newBudget(t testing.TB) *timeline {
	d, err := detectors.NewBudgetExceeded(detectors.BudgetExceededConfig{})
	return newTimeline(t, d, err)
}

// asks is a second in which n recomputes are asked of an origin that does 80.
func asks(n uint64, running uint32) traffic {
	return traffic{hits: 90, misses: n, requests: n, attempts: n, ok: n, running: running}
}

func TestBudgetExceeded(t *testing.T) {
	retried := asks(20, 100)
	retried.attempts, retried.late = 200, 180
	coalesced := asks(20, 20)
	coalesced.misses, coalesced.coalesced = 200, 180
	tests := []struct {
		name string
		x    traffic
		want []string
	}{
		{"little is asked", usually(), nil},
		{"less than 0.8 of what the origin does", asks(64, 6), nil},
		{"0.8 of it, for ten minutes", asks(65, 6), []string{"10m59s ticket"}},
		{"all of it, and a queue that stays", asks(82, 100), []string{"1m59s page/2"}},
		{"all of it, and no queue", asks(82, 7), []string{"10m45s ticket"}},
		{"retries are not asked for", retried, nil},
		{"nor are recomputes that coalescing spares", coalesced, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { newBudget(t).learn().run(11*60+30, tc.x).check(t, tc.want...) })
	}
}

func TestBudgetExceededLeavesARefillAlone(t *testing.T) {
	l := newBudget(t).learn()
	for left := uint32(800); left > 8; left -= 4 { // it drains for more than three minutes
		l.run(1, asks(82, left))
	}
	l.run(60, usually()).check(t)
}

func TestBudgetExceededClears(t *testing.T) {
	l := newBudget(t).learn().run(150, asks(100, 100))
	l.zero, l.found = l.now, nil
	l.run(400, asks(60, 6)).check(t) // between 0.7 and 0.8: not over yet
	l.zero = l.now
	l.run(400, usually()).check(t, "5m4s cleared")
}

func TestBudgetExceededNeedsNoHistory(t *testing.T) {
	harmed := asks(164, 100) // of which the origin answers 80
	harmed.ok, harmed.late = 80, 84
	l := newBudget(t).run(60, usually()).run(120, harmed)
	l.check(t, "2m28s page/2")
	if _, ok := l.f.Get("use.counterfactual"); ok {
		t.Error("it knows what a warm cache would do")
	}
	for _, r := range reasons(l.d) {
		if strings.HasPrefix(r, "blind") {
			t.Errorf("it is %s", r)
		}
	}
	newBudget(t).run(60, usually()).run(120, asks(82, 100)).check(t) // all of them are answered
}
