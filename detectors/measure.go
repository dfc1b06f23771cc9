package detectors

import "slices"

// Measured is a [Detector] that keeps track of quantities worth watching also
// while there is nothing to find.
type Measured interface {
	Detector
	// Measures returns what the detector measured at the last regular tick,
	// sorted by subject, then kind. What it does not know it leaves out. The
	// slice is the caller's.
	Measures() []Measure
}

// Measure is one quantity of one origin.
type Measure struct {
	Kind MeasureKind
	// Origin is the origin's name, or that of its cache if it has none.
	Origin string
	Value  float64
}

// MeasureKind says what a [Measure] measures.
type MeasureKind uint8

// What is measured. The first four are the plane an origin moves in; ratios are
// of the last ten seconds.
const (
	// MeasureLoad is the reads of users per second, retries left out.
	MeasureLoad MeasureKind = iota
	// MeasureHitRatio is the share of them that the caches answered.
	MeasureHitRatio
	// MeasureSaturation is the recomputes that run or wait, over what the
	// origin can run at once.
	MeasureSaturation
	// MeasureAmplification is the attempts on the origin for each first one.
	MeasureAmplification
	// MeasureGoodput is the share of users' reads that got an answer.
	MeasureGoodput
	// MeasureCeiling is the recomputes per second the origin can do: its
	// budget over the usual time of a recompute.
	MeasureCeiling
	// MeasureDemand is the recomputes per second that misses asked for in the
	// last minute, over the ceiling.
	MeasureDemand
	// MeasureCounterfactual is the share of the ceiling that the load would
	// take with a cache as warm as usual and no retries (Bronson et al.,
	// HotOS 2021).
	MeasureCounterfactual
	// MeasureBacklogAhead is the seconds of work that will have piled up at
	// the worst moment of the coming expiries.
	MeasureBacklogAhead
	// NumMeasures is how many kinds there are.
	NumMeasures
)

// Measures implements [Measured]. It knows every origin, whether or not too much
// is asked of it.
func (d *overload) Measures() []Measure { return slices.Clone(d.measures) }

// measures returns where the origin is in the plane of load, hits, saturation
// and amplification, and how far that is from what it can bear.
func (o *origin) measures() []Measure {
	f, name := &o.last10, o.name.label()
	if f.span == 0 {
		return nil
	}
	out := []Measure{{MeasureLoad, name, f.load()}}
	add := func(known bool, k MeasureKind, v float64) {
		if known {
			out = append(out, Measure{k, name, v})
		}
	}
	read := f.firsts() > 0
	add(read, MeasureHitRatio, f.hitRatio())
	add(o.budget > 0, MeasureSaturation, f.use(o.budget))
	add(f.requests > 0, MeasureAmplification, f.amplification())
	add(read, MeasureGoodput, f.goodput())
	add(o.ceiling() > 0, MeasureCeiling, o.ceiling())
	add(o.ceiling() > 0, MeasureDemand, o.asked())
	add(o.known && o.ceiling() > 0, MeasureCounterfactual, o.counterfactual(f))
	return out
}

// Measures implements [Measured].
func (d *expiryForecast) Measures() []Measure { return slices.Clone(d.measures) }
