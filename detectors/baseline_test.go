package detectors_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// saved is what a baseline's bytes hold.
type saved struct {
	Version int `json:"version"`
	Origins []struct {
		Origin, Cache string
		Recent        []struct {
			At                      signal.Nanos
			Load, Hits, Delta, Good float64
		}
		Hours []struct {
			Hour, Minutes     int
			Load, Hits, Delta float64
		}
	} `json:"origins"`
}

func stateOfDetector(t testing.TB, d detectors.Detector) ([]byte, saved) {
	t.Helper()
	b, err := d.(detectors.Stateful).State()
	if err != nil {
		t.Fatal(err)
	}
	var s saved
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return b, s
}

func TestHealthyMinutesAreLearnt(t *testing.T) {
	_, s := stateOfDetector(t, newLoop(t).learn().d)
	if len(s.Origins) != 1 || s.Origins[0].Origin != "db" || len(s.Origins[0].Recent) != 6 {
		t.Fatalf("%+v, want six minutes of db", s)
	}
	m := s.Origins[0].Recent[5]
	if m.Load != 100 || m.Hits != 0.9 || m.Good != 1 || m.Delta < 0.09 || m.Delta > 0.11 {
		t.Errorf("learnt %+v, want 100 reads a second, 0.9 hits, all good, 0.1 s", m)
	}
}

func TestMinutesThatAreNotHealthyAreNot(t *testing.T) {
	tests := []struct {
		name string
		x    traffic
	}{
		{"hardly any reads", traffic{}},
		{"recomputes that fail", usually(func(x *traffic) { x.ok, x.late = 8, 2 })},
		{"retries", usually(func(x *traffic) { x.attempts = 12 })},
		{"an origin that is full", usually(func(x *traffic) { x.running = 8 })},
		{"instances that were just started", usually(func(x *traffic) { x.change = uptime(10 * second) })},
		{"servers that throw values out", usually(func(x *traffic) { x.change = func(c *signal.CacheState) { c.Evicted = 5 } })},
		{"nobody who reports", usually(func(x *traffic) { x.change = silent })},
		{"a loop", stuck()},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if _, s := stateOfDetector(t, newLoop(t).run(301, tc.x).d); len(s.Origins) > 0 {
				t.Errorf("learnt %+v, want nothing", s.Origins)
			}
		})
	}
	t.Run("a second of it spoils its minute only", func(t *testing.T) {
		_, s := stateOfDetector(t, newLoop(t).run(90, usually()).run(1, usually(func(x *traffic) { x.attempts = 30 })).run(330, usually()).d)
		if n := len(s.Origins[0].Recent); n != 6 {
			t.Errorf("%d minutes learnt of 7, want 6", n)
		}
	})
	t.Run("more load than before spoils none, or a service that grows would not be known", func(t *testing.T) {
		_, s := stateOfDetector(t, newLoop(t).learn().run(180, crowded(300, func(x *traffic) { x.running = 3 })).d)
		if n := len(s.Origins[0].Recent); n != 9 {
			t.Errorf("%d minutes learnt, want 9", n)
		}
	})
}

func TestNothingIsLearntWhileAFindingIsOpen(t *testing.T) {
	l := newLoop(t).learn().run(80, stuck())
	l.check(t, "1m4s page/1")
	before, _ := stateOfDetector(t, l.d)
	colder := usually(func(x *traffic) { x.hits, x.misses, x.requests, x.attempts, x.ok = 80, 20, 20, 20, 20 })
	after, _ := stateOfDetector(t, l.run(600, colder).d)
	if l.f.Cleared || !bytes.Equal(recentOf(t, before), recentOf(t, after)) {
		t.Errorf("learnt while a finding was open (cleared %t):\n%s\n%s", l.f.Cleared, before, after)
	}
}

// recentOf returns the healthy minutes in a state.
func recentOf(t *testing.T, state []byte) []byte {
	t.Helper()
	var s saved
	if err := json.Unmarshal(state, &s); err != nil {
		t.Fatal(err)
	}
	return fmt.Append(nil, s.Origins[0].Recent)
}

func TestABaselineStaysBounded(t *testing.T) {
	l := newLoop(t)
	for range 9 * 24 { // nine days, eight minutes of each hour, with ticks ten seconds apart
		for range 48 {
			l.now += 10 * second
			l.show(&signal.Tick{At: after(l.now), Caches: []signal.CacheState{usually().state()}})
		}
		l.now += 52 * minute
	}
	b, s := stateOfDetector(t, l.d)
	if o := s.Origins[0]; len(o.Recent) != 60 || len(o.Hours) != 168 || len(b) > 32<<10 {
		t.Errorf("%d minutes, %d hours, %d bytes; want 60 and 168, and at most 32 kB", len(o.Recent), len(o.Hours), len(b))
	}
}

func TestTheSameHourLastWeekIsWhatIsUsual(t *testing.T) {
	l := newLoop(t).run(3*60*60, usually())
	state, s := stateOfDetector(t, l.d)
	if len(s.Origins[0].Hours) < 2 {
		t.Fatalf("%d hours remembered of three, want at least 2", len(s.Origins[0].Hours))
	}
	week := newLoop(t)
	if err := week.d.(detectors.Stateful).Restore(state); err != nil {
		t.Fatal(err)
	}
	week.now = 7*24*time.Hour + 90*minute
	week.zero = week.now
	week.run(90, stuck()).check(t, "1m2s page/1")
	for _, e := range week.f.Evidence {
		if e.Name == "baseline.minutes" && !strings.Contains(e.Note, "same hour last week") {
			t.Errorf("the baseline is %q, want that of the same hour last week", e.Note)
		}
	}
	late := newLoop(t)
	if err := late.d.(detectors.Stateful).Restore(state); err != nil {
		t.Fatal(err)
	}
	late.now = 9*24*time.Hour + 90*minute // of an hour that was never seen
	late.run(90, stuck()).check(t)
}

func TestABaselineSurvivesARestart(t *testing.T) {
	for _, d := range originDetectors(t) {
		t.Run(d.Doc().ID, func(t *testing.T) {
			l := newTimeline(t, d, nil).run(2*60*60, usually())
			state, _ := stateOfDetector(t, l.d)
			again, _ := stateOfDetector(t, l.d)
			if !bytes.Equal(state, again) {
				t.Error("the state changes without a tick")
			}
			fresh := originDetectors(t)
			for _, o := range fresh {
				if o.Doc().ID != d.Doc().ID {
					continue
				}
				if err := o.(detectors.Stateful).Restore(state); err != nil {
					t.Fatal(err)
				}
				if back, _ := stateOfDetector(t, o); !bytes.Equal(state, back) {
					t.Errorf("restored:\n%s\nwant:\n%s", back, state)
				}
			}
		})
	}
	t.Run("and judges from the first minute", func(t *testing.T) {
		l := newLoop(t).learn()
		state, _ := stateOfDetector(t, l.d)
		again := newLoop(t)
		if err := again.d.(detectors.Stateful).Restore(state); err != nil {
			t.Fatal(err)
		}
		again.now = l.now + minute
		again.zero = again.now
		again.run(90, stuck()).check(t, "1m2s page/1")
	})
}

func TestAStateThatCannotBeIsRefused(t *testing.T) {
	minutes := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,{"at":%d,"load":1,"hits":0.5,"good":1}`, i+1)
		}
		return strings.TrimPrefix(b.String(), ",")
	}
	one := func(fields string) string { return `{"version":1,"origins":[{"origin":"db","at":1,` + fields + `}]}` }
	tests := []struct{ name, state, want string }{
		{"empty", ``, "unexpected end"},
		{"not JSON", `baselines`, "invalid character"},
		{"cut short", `{"version":1,"origins":[{`, "unexpected end"},
		{"no version", `{}`, "version 0: want 1"},
		{"a later version", `{"version":2}`, "version 2: want 1"},
		{"no name", `{"version":1,"origins":[{"at":1}]}`, "want the name"},
		{"two names", `{"version":1,"origins":[{"origin":"a","cache":"b","at":1}]}`, "want the name"},
		{"one origin twice", `{"version":1,"origins":[{"origin":"a","at":1},{"origin":"a","at":1}]}`, "is there twice"},
		{"no time", `{"version":1,"origins":[{"origin":"a"}]}`, "at is 0"},
		{"too many minutes", one(`"recent":[` + minutes(61) + `]`), "61 recent minutes: want at most 60"},
		{"minutes out of order", one(`"recent":[{"at":2,"good":1},{"at":2,"good":1}]`), "minute 1 is out of order"},
		{"a negative time", one(`"recent":[{"at":-2,"good":1}]`), "at is -2"},
		{"a negative load", one(`"recent":[{"at":2,"load":-1}]`), "load is -1"},
		{"a hit ratio above 1", one(`"recent":[{"at":2,"hits":1.01}]`), "hits is 1.01"},
		{"a goodput above 1", one(`"recent":[{"at":2,"good":2}]`), "good is 2"},
		{"a number no float holds", one(`"recent":[{"at":2,"delta":1e999}]`), "cannot unmarshal"},
		{"a recompute of a year", one(`"recent":[{"at":2,"delta":31536000}]`), "delta is"},
		{"an hour that no week has", one(`"hours":[{"hour":168,"at":1,"minutes":60}]`), "hour 168"},
		{"an hour of another time", one(`"hours":[{"hour":3,"at":1,"minutes":60}]`), "hour 3"},
		{"an hour of too few minutes", one(`"hours":[{"hour":0,"at":1,"minutes":4}]`), "4 minutes"},
		{"an hour out of range", one(`"hours":[{"hour":0,"at":1,"minutes":5,"load":-1}]`), "load is -1"},
		{"too many origins", `{"version":1,"origins":[` + strings.TrimSuffix(strings.Repeat(`{},`, 1001), ",") + `]}`, "1001 origins"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			l := newLoop(t).learn()
			before, _ := stateOfDetector(t, l.d)
			err := l.d.(detectors.Stateful).Restore([]byte(tc.state))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if after, _ := stateOfDetector(t, l.d); !bytes.Equal(before, after) {
				t.Error("what was known before is changed")
			}
		})
	}
}

func FuzzRestore(f *testing.F) {
	state, _ := stateOfDetector(f, newLoop(f).learn().d)
	f.Add(state)
	f.Add([]byte(`{"version":1,"origins":[{"cache":"feed","at":1,"recent":[{"at":2,"load":1,"hits":0.5,"good":1}]}]}`))
	f.Fuzz(func(t *testing.T, state []byte) {
		l := newLoop(t)
		if l.d.(detectors.Stateful).Restore(state) != nil {
			return
		}
		first, _ := stateOfDetector(t, l.d)
		again := newLoop(t)
		if err := again.d.(detectors.Stateful).Restore(first); err != nil {
			t.Fatalf("what was saved cannot be restored: %v\n%s", err, first)
		}
		for _, x := range []traffic{usually(), stuck(), stuck()} {
			l.now += 10 * second
			checkSense(t, l.d.Observe(&signal.Tick{At: after(l.now), Caches: []signal.CacheState{x.state()}}))
		}
	})
}
