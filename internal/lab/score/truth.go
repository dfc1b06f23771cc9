package score

import (
	"slices"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// Detectors that are not about trouble that has begun.
const (
	forecast   = "expiry-forecast" // about synchronized-expiry, ahead of it
	forecastOf = "synchronized-expiry"
	vulnerable = "vulnerable" // a state, there from the start
)

// truth is when each kind of trouble really was, by detector, in the order it
// began.
type truth struct {
	sc     *scenario.Scenario
	onsets map[string][]rig.Onset
}

func newTruth(sc *scenario.Scenario, onsets []rig.Onset) truth {
	t := truth{sc, map[string][]rig.Onset{}}
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
	for i := range t.onsets[want] {
		if o := &t.onsets[want][i]; expected(x, o) {
			return o.At.Seconds(), true
		}
	}
	return 0, false
}

// expected reports whether o, which is of the right kind, is trouble that x
// expects to be found.
func expected(x *scenario.Expectation, o *rig.Onset) bool {
	return o.Cache == x.Cache && o.At >= x.After && (x.Key == "" || o.Key == "" || o.Key == x.Key)
}

// justifies reports whether there was what i speaks of by then; of a forecast,
// whether what it warns of came after.
func (t *truth) justifies(i *lab.Incident, at float64) bool {
	switch i.Detector {
	case vulnerable:
		return true
	case forecast:
		return slices.ContainsFunc(t.onsets[forecastOf], func(o rig.Onset) bool {
			return o.At.Seconds() > at && t.sc.SameOrigin(o.Cache, i.Cache)
		})
	}
	for n := range t.onsets[i.Detector] {
		o := &t.onsets[i.Detector][n]
		if o.At.Seconds() > at {
			return false
		}
		if lab.Concerns(t.sc, o, i.Detector, i.Cache, i.Key) {
			return true
		}
	}
	return false
}

// cleared returns how long after the end of the trouble f cleared, or that it
// did so while the trouble lasted; a negative time if neither can be told.
func (t *truth) cleared(f *lab.Finding) (after float64, early bool) {
	if f.Cleared == 0 {
		return -1, false
	}
	over := -1.0
	for n := range t.onsets[f.Detector] {
		o := &t.onsets[f.Detector][n]
		if o.At.Seconds() >= f.Cleared || !lab.Concerns(t.sc, o, f.Detector, f.Cache, f.Key) {
			continue
		}
		if o.End.Seconds() > f.Cleared {
			return -1, true
		}
		over = max(over, o.End.Seconds())
	}
	if over < 0 {
		return -1, false
	}
	return f.Cleared - over, false
}
