package score

import (
	"slices"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/sim"
)

// Detectors that are not about trouble that has begun.
const (
	forecast   = "expiry-forecast" // about synchronized-expiry, ahead of it
	forecastOf = "synchronized-expiry"
	vulnerable = "vulnerable" // a state, there from the start
)

// truth is when each kind of trouble really began, by detector, in order of time.
type truth struct {
	sc     *scenario.Scenario
	onsets map[string][]sim.Onset
}

func newTruth(sc *scenario.Scenario, onsets []sim.Onset) truth {
	t := truth{sc, map[string][]sim.Onset{}}
	for _, o := range onsets {
		t.onsets[o.Detector] = append(t.onsets[o.Detector], o)
	}
	return t
}

// onset returns when what x expects began, in seconds; for a forecast, what it
// is about.
func (t *truth) onset(x *scenario.Expectation) (at float64, known bool) {
	want := x.Detector
	switch want {
	case vulnerable:
		return x.After.Seconds(), true
	case forecast:
		want = forecastOf
	}
	for _, o := range t.onsets[want] {
		if o.Cache == x.Cache && o.At >= x.After && (x.Key == "" || o.Key == "" || o.Key == x.Key) {
			return o.At.Seconds(), true
		}
	}
	return 0, false
}

// justifies reports whether there was what f speaks of by then; of a forecast,
// whether what it warns of came after.
func (t *truth) justifies(f *lab.Finding, at float64) bool {
	switch f.Detector {
	case vulnerable:
		return true
	case forecast:
		return slices.ContainsFunc(t.onsets[forecastOf], func(o sim.Onset) bool {
			return o.At.Seconds() > at && sameOrigin(t.sc, o.Cache, f.Cache)
		})
	}
	for _, o := range t.onsets[f.Detector] {
		if o.At.Seconds() > at {
			return false
		}
		if o.Key == "" || f.Key == "" || o.Key == f.Key && o.Cache == f.Cache {
			if sameOrigin(t.sc, o.Cache, f.Cache) {
				return true
			}
		}
	}
	return false
}
