package detectors_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

func made(t testing.TB) func(detectors.Detector, error) detectors.Detector {
	return func(d detectors.Detector, err error) detectors.Detector {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// originDetectors are those that judge an origin by what goes through it.
func originDetectors(t testing.TB) []detectors.Detector {
	t.Helper()
	must := made(t)
	return []detectors.Detector{
		must(detectors.NewBudgetExceeded(detectors.BudgetExceededConfig{})),
		must(detectors.NewMetastableLoop(detectors.MetastableLoopConfig{})),
		must(detectors.NewOverload(detectors.OverloadConfig{})),
		must(detectors.NewRetryStorm(detectors.RetryStormConfig{})),
		must(detectors.NewVulnerable(detectors.VulnerableConfig{})),
	}
}

// lookAside is like a cache of 3,000 keys in front of PostgreSQL with 16
// connections and queries of 100 ms, which does about 154 a second.
func lookAside(change func(*system)) system {
	s := system{
		rate: 480, keys: 3000, zipf: 0.6, ttl: [2]time.Duration{time.Minute, 2 * time.Minute},
		servers: 16, service: 104 * ms, timeout: 500 * ms, attempts: 1,
	}
	change(&s)
	return s
}

// uncached is an origin that does 200 a second and has no cache before it.
func uncached(change func(*system)) system {
	s := system{rate: 120, servers: 20, service: 100 * ms, timeout: 3 * second, attempts: 1}
	change(&s)
	return s
}

// began is when something happens to a system: by then a baseline is young.
const began = 7 * minute

// expected says when a detector is to open, and what a finding of it becomes.
type expected struct {
	states   string        // in order, with a space between
	from, to time.Duration // of the first, after began
}

func TestWhatSystemsDoIsCalledByItsName(t *testing.T) {
	loop := expected{"page/1", 60 * second, 75 * second}
	tests := []struct {
		name   string
		system system
		ends   float64 // goodput in the last minute
		want   map[string]expected
	}{
		{
			name:   "nothing happens",
			system: lookAside(func(*system) {}), ends: 1,
		},
		{
			name:   "a flush at 480/s with one attempt recovers if late results fill",
			system: lookAside(func(s *system) { s.fillLate = true; s.events = []event{when(began, flush)} }), ends: 1,
		},
		{
			name:   "the same without late fills is a loop, without a single retry",
			system: lookAside(func(s *system) { s.events = []event{when(began, flush)} }), ends: 0,
			want: map[string]expected{"metastable-loop": loop, "budget-exceeded": {"page/2", 60 * second, 90 * second}},
		},
		{
			name:   "so is it if queries are cancelled, for a cancelled one fills nothing",
			system: lookAside(func(s *system) { s.fillLate, s.cancel = true, true; s.events = []event{when(began, flush)} }), ends: 0,
			want: map[string]expected{"metastable-loop": loop, "budget-exceeded": {"page/2", 60 * second, 90 * second}},
		},
		{
			name: "a loop ends when the load is cut for 20 s, and holds at the same load again",
			system: lookAside(func(s *system) {
				s.events = []event{when(began, flush), when(began+3*minute, rate(130)), when(began+3*minute+20*second, rate(480))}
			}), ends: 1,
			want: map[string]expected{"metastable-loop": {"page/1 cleared", 60 * second, 75 * second}, "budget-exceeded": {"page/2 cleared", 60 * second, 90 * second}},
		},
		{
			name:   "a flush at 200/s with one attempt recovers",
			system: lookAside(func(s *system) { s.rate = 200; s.events = []event{when(began, flush)} }), ends: 1,
		},
		{
			name:   "a flush at 240/s with four attempts is a storm first, and a loop then",
			system: lookAside(func(s *system) { s.rate, s.attempts = 240, 4; s.events = []event{when(began, flush)} }), ends: 0,
			want: map[string]expected{
				"retry-storm": {"page/2 page/1", 15 * second, 25 * second}, "metastable-loop": loop,
				"budget-exceeded": {"page/2", 60 * second, 4 * minute},
			},
		},
		{
			name: "a spike of 15 s passes with one attempt",
			system: uncached(func(s *system) {
				s.events = []event{when(began, rate(300)), when(began+15*second, rate(120))}
			}), ends: 1,
		},
		{
			name: "the same with three attempts is a loop, which ends when the load is below a third of the ceiling",
			system: uncached(func(s *system) {
				s.attempts = 3
				s.events = []event{when(began, rate(300)), when(began+15*second, rate(120)), when(began+5*minute, rate(50))}
			}), ends: 1,
			want: map[string]expected{
				"retry-storm":     {"page/2 page/1 cleared", 15 * second, 35 * second},
				"metastable-loop": {"page/1 cleared", 75 * second, 90 * second},
			},
		},
		{
			name: "a load of 1.2 times the ceiling without retries is overload, and drains",
			system: uncached(func(s *system) {
				s.events = []event{when(began, rate(240)), when(began+2*minute, rate(120))}
			}), ends: 1,
			want: map[string]expected{
				"overload":        {"page/2 page/1 cleared", 30 * second, 45 * second},
				"budget-exceeded": {"page/2 cleared", 60 * second, 2 * minute},
			},
		},
		{
			name: "the same with two attempts becomes a loop once the load has fallen",
			system: uncached(func(s *system) {
				s.attempts = 2
				s.events = []event{when(began, rate(240)), when(began+2*minute, rate(120))}
			}), ends: 0,
			want: map[string]expected{
				"overload":        {"page/2 page/1 cleared", 30 * second, 45 * second},
				"retry-storm":     {"page/2 page/1", 15 * second, 45 * second},
				"budget-exceeded": {"page/2", 60 * second, 2 * minute},
				"metastable-loop": {"page/1", 3 * minute, 3*minute + 15*second},
			},
		},
		{
			name: "an origin that is a third as fast for two minutes is overloaded, and recovers",
			system: uncached(func(s *system) {
				s.events = []event{when(began, slowness(300*ms)), when(began+2*minute, slowness(100*ms))}
			}), ends: 1,
			want: map[string]expected{"overload": {"page/2 page/1 cleared", 30 * second, 45 * second}},
		},
		{
			name: "an origin that is slow for 10 s, with three attempts, does not come back",
			system: uncached(func(s *system) {
				s.attempts = 3
				s.events = []event{when(began, slowness(450*ms)), when(began+10*second, slowness(100*ms))}
			}), ends: 0,
			want: map[string]expected{
				"retry-storm":     {"page/2 page/1", 15 * second, 30 * second},
				"metastable-loop": {"page/1", 60 * second, 75 * second},
			},
		},
		{
			name:   "a loop is found if the budget is not declared, for the load was borne before",
			system: lookAside(func(s *system) { s.budget = -1; s.events = []event{when(began, flush)} }), ends: 0,
			want: map[string]expected{"metastable-loop": loop},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			lasts := 5 * minute
			for _, w := range tc.want {
				if strings.HasSuffix(w.states, "cleared") {
					lasts = 14 * minute
				}
			}
			for seed := range uint64(2) {
				found, goodput := watchSystem(originDetectors(t), tc.system, seed, began+lasts)
				holdTo(t, seed, tc.want, found)
				if ends := mean(goodput[len(goodput)-60:]); math.Abs(ends-tc.ends) > 0.05 {
					t.Errorf("seed %d: the system ends with a goodput of %.2f, want %.0f: the test does not test", seed, ends, tc.ends)
				}
			}
		})
	}
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// holdTo fails if what was found is not what is wanted of that seed's system.
func holdTo(t *testing.T, seed uint64, want map[string]expected, found map[string][]change) {
	t.Helper()
	for id, changes := range found {
		if _, ok := want[id]; !ok {
			t.Errorf("seed %d: %s finds %s at %v", seed, id, changes[0].finding.Summary, changes[0].at)
		}
	}
	for id, w := range want {
		var states []string
		for _, c := range found[id] {
			states = append(states, c.state)
		}
		if got := strings.Join(states, " "); got != w.states {
			t.Errorf("seed %d: %s becomes %q, want %q", seed, id, got, w.states)
			continue
		}
		if first := found[id][0].at - began; first < w.from || first > w.to {
			t.Errorf("seed %d: %s opens %v after it began, want %v to %v", seed, id, first, w.from, w.to)
		}
	}
}

func TestALoopIsToldWithItsTriggerAndTheWayOut(t *testing.T) {
	s := lookAside(func(s *system) { s.rate, s.attempts = 240, 4; s.events = []event{when(began, flush)} })
	found, _ := watchSystem(originDetectors(t), s, 1, began+3*minute)
	f := found["metastable-loop"][0].finding
	if onset := f.Onset.Sub(after(began)); onset < 0 || onset > 5*second {
		t.Errorf("onset %v after the flush, want within 5s", onset)
	}
	for name, want := range map[string][2]float64{
		"amplification":      {3.5, 4.1},   // of four attempts
		"fill_success":       {0, 0.05},    // hardly one
		"load":               {220, 260},   // without the retries
		"use.counterfactual": {0.1, 0.25},  // 240/s, one in ten of which misses, of 154/s
		"same_load.goodput":  {0.97, 1},    // before the flush
		"baseline.minutes":   {5, 7},       // and the note says that it is young
		"hold":               {60, 60},     // far above three timeouts and the drain
		"admission.target":   {30, 70},     // 0.9 of 154/s, over four attempts of 0.8 misses
		"recompute.usual":    {0.09, 0.12}, // 104 ms
	} {
		if got, ok := f.Get(name); !ok || got < want[0] || got > want[1] {
			t.Errorf("%s is %g (%t), want %g to %g", name, got, ok, want[0], want[1])
		}
	}
	for _, want := range []string{"values vanished at", "attempts on the origin", "Origin db"} {
		if !strings.Contains(f.Summary, want) {
			t.Errorf("summary %q: want it to say %q", f.Summary, want)
		}
	}
}
