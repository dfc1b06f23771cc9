package score

import (
	"fmt"
	"math"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// judge holds one run against its scenario.
type judge struct {
	sc        *scenario.Scenario
	end       float64 // of the run
	findings  []lab.Finding
	incidents []lab.Incident
	truth     truth
	taken     []bool // findings that an episode is about, be it as further word of it
	confused  []bool // incidents that an episode was found as
}

// Judge holds r, which is a run of sc, against what sc expects and forbids and
// what really happened. It changes neither.
func Judge(sc *scenario.Scenario, r *lab.Result) Outcome {
	j := &judge{
		sc: sc, end: r.Seconds, findings: r.Findings, incidents: r.Incidents, truth: newTruth(sc, r.Onsets),
		taken: make([]bool, len(r.Findings)), confused: make([]bool, len(r.Incidents)),
	}
	out := Outcome{
		Scenario: r.Scenario, Seed: r.Seed, Seconds: r.Seconds,
		Quiet: Quiet(sc), Repeated: repeated(r.Incidents),
	}
	for i := range sc.Expect {
		out.Episodes = append(out.Episodes, j.episode(&sc.Expect[i]))
	}
	// Only when every episode has its own is it known what is left over.
	for i := range sc.Expect {
		j.confuse(&sc.Expect[i], &out.Episodes[i])
	}
	j.leftOver(&out)
	out.Classes = j.classes()
	for _, c := range r.Failures() {
		if c.Figure != "" {
			out.Figures = append(out.Figures, c.What+": "+c.Why)
		}
	}
	return out
}

// Quiet reports whether sc expects nothing and allows no page.
func Quiet(sc *scenario.Scenario) bool { return sc.Forbid.Pages && len(sc.Expect) == 0 }

// episode looks for what x expects. A finding counts even if another explains
// it: x may be about what comes before that.
func (j *judge) episode(x *scenario.Expectation) Episode {
	e := Episode{Detector: x.Detector, Cache: x.Cache, Severity: x.Severity, Delay: -1, Open: -1, Clear: -1}
	onset, known := j.truth.onset(x)
	least := severity(x.Severity)
	e.Why = "it never came"
	for i := range j.findings {
		f := &j.findings[i]
		if !about(x, f) {
			continue
		}
		e.FoundAs = f.Detector
		at, ok := raised(f, least)
		if x.Priority == 1 {
			at, ok = f.Urged, f.Urged > 0
		}
		why := j.wrong(x, f, at, ok, onset, known)
		switch {
		case why != "" && !e.Found:
			e.Why = why
		case why == "" && !e.Found:
			e.found(f, at-onset)
			e.Clear, e.Early = j.truth.cleared(f)
			if x.Detector == forecast || !known {
				e.Delay = -1
			}
			j.taken[i] = true
			continue
		}
		// Word of it once it has begun is no false alarm, be it late or mild.
		if begun, ok := raised(f, detectors.Ticket); ok && known && (begun >= onset || x.Detector == forecast) {
			j.taken[i] = true
			e.Noise++
		}
	}
	e.Void = !known && !e.Found && x.Detector != forecast
	return e
}

func (e *Episode) found(f *lab.Finding, delay float64) {
	e.Found, e.Why, e.Delay = true, "", delay
	if f.Cleared > 0 {
		e.Open = f.Cleared - f.Detected
	}
}

// about reports whether f speaks of what x expects.
func about(x *scenario.Expectation, f *lab.Finding) bool {
	return f.Detector == x.Detector && f.Cache == x.Cache && (x.Key == "" || x.Key == f.Key)
}

// wrong returns why f, which came to the severity x wants at that time, is not
// what x expects.
func (j *judge) wrong(x *scenario.Expectation, f *lab.Finding, at float64, came bool, onset float64, known bool) string {
	switch {
	case !came:
		if f.Priority > 0 {
			return fmt.Sprintf("it came as %s of priority %d only", f.Severity, f.Priority)
		}
		return fmt.Sprintf("it came as %s only", f.Severity)
	case at < x.After.Seconds():
		return fmt.Sprintf("it came at %.3f s, which is before %v", at, x.After)
	case x.Detector == forecast:
		if known && at >= onset {
			return fmt.Sprintf("it came at %.3f s, and what it warns of at %.3f s", at, onset)
		}
		return ""
	case !known && x.Within > 0:
		return fmt.Sprintf("it came at %.3f s, but the trouble never began", at)
	case at < onset:
		return fmt.Sprintf("it came at %.3f s, before the trouble began at %.3f s", at, onset)
	case x.Within > 0 && at-onset > x.Within.Seconds():
		return fmt.Sprintf("it came at %.3f s, %.3f s after the trouble began", at, at-onset)
	}
	return ""
}

// confuse finds out what an episode that was not found was taken for: the worst
// incident about its origin, in its time, that no episode of the scenario is
// about.
func (j *judge) confuse(x *scenario.Expectation, e *Episode) {
	if e.Found || e.Void || e.FoundAs != "" {
		return
	}
	onset, _ := j.truth.onset(x)
	end := math.Inf(1)
	if x.Within > 0 {
		end = onset + x.Within.Seconds()
	}
	best := -1
	for n := range j.incidents {
		i := &j.incidents[n]
		at, _, alarm := alarmOf(i)
		if !alarm || j.told(i) || j.expects(i.Detector) || !j.sc.SameOrigin(i.Cache, x.Cache) {
			continue
		}
		if at > end || i.Closed > 0 && i.Closed < onset {
			continue
		}
		if best < 0 || severity(i.Severity) > severity(j.incidents[best].Severity) {
			best = n
		}
	}
	if best >= 0 {
		e.FoundAs = j.incidents[best].Detector
		j.confused[best] = true
	}
}

// expects reports whether the scenario expects the detector of anything.
func (j *judge) expects(detector string) bool {
	return slices.ContainsFunc(j.sc.Expect, func(x scenario.Expectation) bool { return x.Detector == detector })
}
