package detectors_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// measured returns what d measured of the only origin, by kind.
func measured(t *testing.T, d detectors.Detector) map[detectors.MeasureKind]float64 {
	t.Helper()
	m, ok := d.(detectors.Measured)
	if !ok {
		t.Fatalf("%s measures nothing", d.Doc().ID)
	}
	got := map[detectors.MeasureKind]float64{}
	for _, x := range m.Measures() {
		if x.Origin != "db" {
			t.Errorf("measured %v of origin %q, want db", x.Kind, x.Origin)
		}
		if _, twice := got[x.Kind]; twice {
			t.Errorf("measured %v twice", x.Kind)
		}
		got[x.Kind] = x.Value
	}
	return got
}

// An origin that does 81 a second in all, as the other tests have it.
func TestMeasuresSayWhereAnOriginIs(t *testing.T) {
	tests := []struct {
		name string
		x    traffic
		want map[detectors.MeasureKind]float64
	}{
		{"720 reads of which one in ten misses take 0.9 of the origin", crowded(720), map[detectors.MeasureKind]float64{
			detectors.MeasureLoad: 720, detectors.MeasureHitRatio: 0.9, detectors.MeasureSaturation: 1, detectors.MeasureAmplification: 1,
			detectors.MeasureGoodput: 1, detectors.MeasureCeiling: 81, detectors.MeasureDemand: 72.0 / 81, detectors.MeasureCounterfactual: 72.0 / 81,
		}},
		{"two attempts each amplify what is asked, not what is wanted", crowded(720, func(x *traffic) { x.attempts = 144 }), map[detectors.MeasureKind]float64{
			detectors.MeasureLoad: 720, detectors.MeasureHitRatio: 0.9, detectors.MeasureSaturation: 1, detectors.MeasureAmplification: 2,
			detectors.MeasureGoodput: 1, detectors.MeasureCeiling: 81, detectors.MeasureDemand: 72.0 / 81, detectors.MeasureCounterfactual: 72.0 / 81,
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			l := newOverload(t).learn().run(70, tc.x)
			if diff := cmp.Diff(tc.want, measured(t, l.d), cmpopts.EquateApprox(0.02, 0)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNotKnownIsNotMeasured(t *testing.T) {
	l := newOverload(t).run(20, usually(func(x *traffic) { x.change = noBudget }))
	for _, x := range l.d.(detectors.Measured).Measures() {
		switch x.Kind {
		case detectors.MeasureSaturation, detectors.MeasureCeiling, detectors.MeasureDemand, detectors.MeasureCounterfactual:
			t.Errorf("measured %v as %g without a budget", x.Kind, x.Value)
		}
	}
}

func TestForecastMeasuresTheBacklogAhead(t *testing.T) {
	d := newExpiryForecast(t, detectors.ExpiryForecastConfig{})
	watch(d, forecast(0, 5, due{30, 203}))
	// 203 keys in one second, of which 20.3 a second are served: 9 s are left at its end.
	if got := measured(t, d)[detectors.MeasureBacklogAhead]; math.Abs(got-9) > 0.2 {
		t.Errorf("a backlog of %.2f s is ahead, want 9", got)
	}
	watch(d, forecast(60, 5))
	if got := measured(t, d)[detectors.MeasureBacklogAhead]; got != 0 {
		t.Errorf("a backlog of %.2f s is ahead of nothing", got)
	}
}

func TestAnUrgentTickMeasuresNothingNew(t *testing.T) {
	l := newOverload(t).learn()
	want := measured(t, l.d)
	l.d.Observe(&signal.Tick{At: after(time.Hour), Urgent: true})
	if diff := cmp.Diff(want, measured(t, l.d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
