package detectors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// traffic is a second of a cache whose origin runs 8 recomputes of 100 ms at
// once: 81 a second, as its histogram has it.
type traffic struct {
	hits, misses       uint64
	requests, attempts uint64
	ok, failed, late   uint64 // recomputes that ended well, with an error, and too late
	coalesced          uint64
	lost               uint64 // of requests, those for values that vanished
	running            uint32
	change             cacheOption
}

// usually is a second in which all is well: 100 reads, of which 90 hit.
func usually(change ...func(*traffic)) traffic {
	x := traffic{hits: 90, misses: 10, requests: 10, attempts: 10, ok: 10, running: 1}
	for _, f := range change {
		f(&x)
	}
	return x
}

func (x traffic) state() signal.CacheState {
	c := feed()
	c.Lookups = signal.Lookups{Hits: x.hits, Misses: x.misses}
	w := &c.Work
	w.Retries = signal.Retries{Requests: x.requests, Attempts: x.attempts}
	w.Coalesced = x.coalesced
	w.Recomputes.Started[signal.CauseExpired] = max(x.requests, x.attempts) - x.lost
	w.Recomputes.Started[signal.CauseEvicted] = x.lost
	e := &w.Recomputes.Ended[signal.CauseExpired]
	e[signal.OutcomeOK], e[signal.OutcomeFailed], e[signal.OutcomeTimedOut] = x.ok, x.failed, x.late
	for range x.ok {
		w.Durations.Observe(100 * ms)
	}
	w.Busy = time.Duration(x.ok) * 100 * ms
	c.Running = x.running
	if x.change != nil {
		x.change(&c)
	}
	return c
}

// timeline shows one detector second after second of traffic.
type timeline struct {
	d     detectors.Detector
	now   time.Duration
	last  string
	found []string // what was new, with the time since the clock was reset
	zero  time.Duration
	f     detectors.Finding // the latest
}

func newTimeline(t testing.TB, d detectors.Detector, err error) *timeline {
	t.Helper()
	return &timeline{d: made(t)(d, err)}
}

// run goes on for so many seconds.
func (l *timeline) run(seconds int, x traffic) *timeline {
	for range seconds {
		l.now += second
		l.show(&signal.Tick{At: after(l.now), Caches: []signal.CacheState{x.state()}})
	}
	return l
}

func (l *timeline) show(t *signal.Tick) {
	for _, f := range l.d.Observe(t) {
		l.f = f
		if state := stateOf(&f); state != l.last {
			l.last = state
			l.found = append(l.found, fmt.Sprint(l.now-l.zero, " ", state))
		}
	}
}

// learn is six minutes in which all is well, and resets the clock.
func (l *timeline) learn() *timeline {
	l.run(6*60+1, usually())
	l.zero = l.now
	return l
}

func (l *timeline) check(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, l.found, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("findings (-want +got):\n%s\nthe latest: %s", diff, l.f.Summary)
	}
}

func reasons(d detectors.Detector) []string {
	var out []string
	for _, l := range d.(detectors.Limited).Limits() {
		kind := "partial"
		if l.Blind {
			kind = "blind"
		}
		out = append(out, kind+": "+l.Reason)
	}
	return out
}
