package demo

import (
	"fmt"
	"math"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Result is what a run came to. Its JSON form is an interface.
type Result struct {
	Scenario string    `json:"scenario"`
	Protect  string    `json:"protect"`
	Reads    uint64    `json:"reads"`
	Failed   uint64    `json:"failed"`
	Findings []Finding `json:"findings"`
	// Found is the exporter's account, Truth the origin's own.
	Found Found `json:"found"`
	Truth Truth `json:"truth"`
	OK    bool  `json:"ok"`
	// Disagreements say where the two differ; empty if OK.
	Disagreements []string `json:"disagreements,omitempty"`
}

// Finding is an incident as the result tells it.
type Finding struct {
	Detector string             `json:"detector"`
	Cache    string             `json:"cache"`
	Key      string             `json:"key"` // the key's group
	Severity string             `json:"severity"`
	Onset    signal.Nanos       `json:"onset"`
	Detected signal.Nanos       `json:"detected"`
	Cleared  signal.Nanos       `json:"cleared,omitempty"`
	Evidence map[string]float64 `json:"evidence"`
}

// Found is the exporter's account of a run.
type Found struct {
	Recomputes    uint64  `json:"recomputes"`
	Duplicates    uint64  `json:"duplicates"`
	Early         uint64  `json:"early"`
	Peak          int     `json:"peak_max"`
	WastedSeconds float64 `json:"wasted_seconds"`
}

// Account returns the exporter's account in totals, and the greatest peak among
// findings.
func Account(totals []fleet.CacheTotals, findings []Finding) Found {
	var f Found
	for _, t := range totals {
		if t.Cache == Cache {
			f = Found{Recomputes: t.Recomputes, Duplicates: t.Duplicates, Early: t.Early, WastedSeconds: t.Wasted.Seconds()}
		}
	}
	for _, x := range findings {
		f.Peak = max(f.Peak, int(x.Evidence["peak"]))
	}
	return f
}

// Judge sets OK and Disagreements: whether the exporter found what happened, and
// nothing else.
func (r *Result) Judge(o Options) {
	o = o.withDefaults()
	bad := func(format string, a ...any) { r.Disagreements = append(r.Disagreements, fmt.Sprintf(format, a...)) }
	if int(r.Found.Recomputes) != r.Truth.Recomputes {
		bad("the exporter counted %d recomputes, the origin %d", r.Found.Recomputes, r.Truth.Recomputes)
	}
	if int(r.Found.Early) != r.Truth.Early {
		bad("the exporter counted %d early recomputes, the origin %d", r.Found.Early, r.Truth.Early)
	}
	if o.Protect != ProtectXFetch && int(r.Found.Duplicates) != r.Truth.Duplicates {
		bad("the exporter counted %d duplicates, the origin %d", r.Found.Duplicates, r.Truth.Duplicates)
	}
	due, paged := o.due(r.Truth.PeakMax), false
	for _, f := range r.Findings {
		switch {
		case f.Severity != detectors.Page.String():
		case f.Detector == due:
			paged = true
		default:
			bad("the exporter paged for %s, which did not happen", f.Detector)
		}
	}
	switch {
	case due != "" && !paged:
		bad("%d recomputes ran at once and nobody was paged for %s", r.Truth.PeakMax, due)
	case due == hotKeyExpiry && math.Abs(float64(r.Found.Peak-r.Truth.PeakMax)) > peakTolerance*float64(r.Truth.PeakMax):
		bad("the exporter saw at most %d recomputes at once, the origin %d", r.Found.Peak, r.Truth.PeakMax)
	}
	r.OK = len(r.Disagreements) == 0
}

// Detectors a page of which can be due.
const (
	hotKeyExpiry           = "hot-key-expiry"
	processLocalCoalescing = "process-local-coalescing"
)

// due returns which detector should have paged if at most peak recomputes ran at
// once; none if nothing was wrong. Single-flight in each of many processes still
// asks the origin for as many as there are.
func (o Options) due(peak int) string {
	switch {
	case o.Protect == ProtectNone && peak >= max(20, o.Budget):
		return hotKeyExpiry
	case o.Protect == ProtectSingleFlight && peak >= max(5, o.Budget):
		return processLocalCoalescing
	default:
		return ""
	}
}

// peakTolerance allows for recomputes that begin or end between the two accounts'
// looks at the clock: microseconds, unless the machine is too busy to go on.
const peakTolerance = 0.05

// Expected returns what theory says of the mean number of recomputes per
// expiry, and on what grounds; zero if it says nothing exact.
func (o Options) Expected() (mean float64, grounds string) {
	o = o.withDefaults()
	switch o.Protect {
	case ProtectNone:
		return o.Rate*o.Recompute.Seconds() + 1, "rate x recompute time + 1"
	case ProtectXFetch:
		return math.E, "e, for XFetch with beta 1"
	default:
		return 0, fmt.Sprintf("at most one per instance, %d", o.Instances)
	}
}
