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
	findings  []lab.Finding
	explained []bool
	truth     truth
	taken     []bool // by an episode, as what it expects or as further word of it
	confused  []bool // with an episode that was not found
}

// Judge holds r, which is a run of sc, against what sc expects and forbids and
// what really happened. It changes neither.
func Judge(sc *scenario.Scenario, r *lab.Result) Outcome {
	n := len(r.Findings)
	j := &judge{
		sc: sc, findings: r.Findings, explained: explained(sc, r.Findings), truth: newTruth(sc, r.Onsets),
		taken: make([]bool, n), confused: make([]bool, n),
	}
	out := Outcome{
		Scenario: r.Scenario, Seed: r.Seed, Seconds: r.Seconds,
		Quiet: sc.Forbid.Pages && len(sc.Expect) == 0,
	}
	for i := range sc.Expect {
		out.Episodes = append(out.Episodes, j.episode(&sc.Expect[i]))
	}
	// Only when every episode has its own is it known what is left over.
	for i := range sc.Expect {
		j.confuse(&sc.Expect[i], &out.Episodes[i])
	}
	j.leftOver(&out)
	for _, c := range r.Failures() {
		if c.Figure != "" {
			out.Figures = append(out.Figures, c.What+": "+c.Why)
		}
	}
	return out
}

// episode looks for what x expects. A finding counts even if another explains
// it: x may be about what comes before that.
func (j *judge) episode(x *scenario.Expectation) Episode {
	e := Episode{Detector: x.Detector, Cache: x.Cache, Severity: x.Severity, Delay: -1, Open: -1}
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
		why := j.wrong(x, f, at, ok, onset, known)
		switch {
		case why != "" && !e.Found:
			e.Why = why
		case why == "" && !e.Found:
			e.found(f, at-onset)
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
// root finding about its origin, in its time, that no episode of the scenario is
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
	for i := range j.findings {
		f := &j.findings[i]
		at, ok := raised(f, detectors.Ticket)
		if !ok || j.explained[i] || j.taken[i] || j.expects(f.Detector) || !sameOrigin(j.sc, f.Cache, x.Cache) {
			continue
		}
		if at > end || f.Cleared > 0 && f.Cleared < onset {
			continue
		}
		if best < 0 || severity(f.Severity) > severity(j.findings[best].Severity) {
			best = i
		}
	}
	if best >= 0 {
		e.FoundAs = j.findings[best].Detector
		j.confused[best] = true
	}
}

// expects reports whether the scenario expects the detector of anything.
func (j *judge) expects(detector string) bool {
	return slices.ContainsFunc(j.sc.Expect, func(x scenario.Expectation) bool { return x.Detector == detector })
}

// leftOver judges the root findings that no episode has taken, and pages that
// are forbidden whoever has.
func (j *judge) leftOver(out *Outcome) {
	for i := range j.findings {
		f := &j.findings[i]
		at, ok := raised(f, detectors.Ticket)
		if !ok || j.explained[i] {
			continue
		}
		paged, page := raised(f, detectors.Page)
		if page {
			at = paged
		}
		why := ""
		switch {
		case j.sc.Forbid.Pages && page:
			why = "pages are forbidden"
		case j.taken[i]:
			continue
		case slices.Contains(j.sc.Forbid.Detectors, f.Detector):
			why = "it is forbidden"
		case !j.truth.justifies(f, at):
			why = "no such trouble had begun"
		}
		alarm := Alarm{f.Detector, f.Cache, page, at, j.confused[i], why}
		if why == "" {
			out.Unasked = append(out.Unasked, alarm)
		} else {
			out.False = append(out.False, alarm)
		}
	}
}
