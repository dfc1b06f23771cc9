package lab

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// judgeFindings holds what was found against what sc asks for.
func (r *Result) judgeFindings(sc *scenario.Scenario) {
	for i := range sc.Expect {
		r.Checks = append(r.Checks, r.expected(&sc.Expect[i]))
	}
	if sc.Forbid.Pages {
		r.Checks = append(r.Checks, r.absent("no page", func(i *Incident) bool { return i.Pages > 0 }))
	}
	for _, d := range sc.Forbid.Detectors {
		r.Checks = append(r.Checks, r.absent("no "+d, func(i *Incident) bool {
			return i.Detector == d && i.Ticketed > 0 && i.PartOf == ""
		}))
	}
}

// judgeTruth holds the figures against what sc asks for, and sums up.
func (r *Result) judgeTruth(sc *scenario.Scenario) {
	for _, name := range slices.Sorted(maps.Keys(sc.Truth)) {
		r.Checks = append(r.Checks, r.figure(name, sc.Truth[name]))
	}
	r.OK = len(r.Failures()) == 0
}

// expected looks for a finding that must come.
func (r *Result) expected(x *scenario.Expectation) Check {
	c := Check{What: describe(x)}
	least := detectors.Info
	_ = least.UnmarshalText([]byte(x.Severity)) // checked when the file was read
	onset, known := r.onset(x)
	near := ""
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Detector != x.Detector || f.Cache != x.Cache || x.Key != "" && f.Key != x.Key {
			continue
		}
		raised := f.raised[least]
		if x.Priority == 1 {
			raised = f.urged()
		}
		switch {
		case raised < 0 && x.Priority == 1 && f.Priority > 0:
			near = fmt.Sprintf("it came as %s of priority %d only", f.Severity, f.Priority)
		case raised < 0:
			near = fmt.Sprintf("it came as %s only", f.Severity)
		case raised < x.After:
			near = fmt.Sprintf("it came at %v, which is before %v", raised, x.After)
		case x.Detector == "expiry-forecast":
			return c.forecast(onset, known, raised)
		case !known && x.Within > 0:
			near = fmt.Sprintf("it came at %v, but the trouble never began", raised)
		case raised < onset:
			near = fmt.Sprintf("it came at %v, before the trouble began at %v", raised, onset)
		case x.Within > 0 && raised-onset > x.Within:
			near = fmt.Sprintf("it came at %v, %v after the trouble began at %v", raised, raised-onset, onset)
		case least == detectors.Page && !r.woke(f):
			near = fmt.Sprintf("it came at %v, as part of incident %s, which woke nobody", raised, f.Incident)
		default:
			c.OK, c.Delay = true, (raised - onset).Seconds()
			return c
		}
	}
	c.Why = near
	if c.Why == "" {
		c.Why = "it never came"
		if !known {
			c.Why += ", and nor did the trouble"
		}
	}
	return c
}

// woke reports whether the incident that f is part of woke somebody, or one that
// this continues did. What is part of too large an incident to be listed in it is
// part of one that did.
func (r *Result) woke(f *Finding) bool {
	id := f.Incident
	for range r.Incidents { // no chain is longer
		n := slices.IndexFunc(r.Incidents, func(i Incident) bool { return i.ID == id })
		if n < 0 {
			break
		}
		i := &r.Incidents[n]
		if i.Pages > 0 {
			return true
		}
		id = cmp.Or(i.PartOf, i.Continues)
	}
	return f.Incident == ""
}

// urged returns when f first came with priority 1, or -1 if it never did.
func (f *Finding) urged() time.Duration {
	if f.Urged == 0 {
		return -1
	}
	return time.Duration(f.Urged * float64(time.Second))
}

// forecast judges a warning: it must come before what it warns of. Where that
// never came, because something was done about it in time, any time is right.
func (c Check) forecast(onset time.Duration, known bool, raised time.Duration) Check {
	if known && raised >= onset {
		c.Why = fmt.Sprintf("it came at %v, and what it warns of at %v", raised, onset)
		return c
	}
	c.OK = true
	return c
}

// onset returns when what x expects to be found really began.
func (r *Result) onset(x *scenario.Expectation) (time.Duration, bool) {
	want := x.Detector
	switch want {
	case "expiry-forecast":
		want = "synchronized-expiry"
	case "vulnerable":
		return x.After, true // a state, not an event
	}
	for _, o := range r.Onsets {
		if o.Detector == want && o.Cache == x.Cache && o.At >= x.After && (x.Key == "" || o.Key == "" || o.Key == x.Key) {
			return o.At, true
		}
	}
	return 0, false
}

func describe(x *scenario.Expectation) string {
	s := x.Detector + " on " + x.Cache
	if x.Key != "" {
		s += " key " + x.Key
	}
	s += " as " + x.Severity
	if x.Priority > 0 {
		s += fmt.Sprintf(" of priority %d", x.Priority)
	}
	if x.Within > 0 {
		s += " within " + x.Within.String()
	}
	if x.After > 0 {
		s += " after " + x.After.String()
	}
	return s
}

// absent checks that no incident is what it should not be.
func (r *Result) absent(what string, wrong func(*Incident) bool) Check {
	c := Check{What: what, OK: true}
	var said []string
	for n := range r.Incidents {
		if i := &r.Incidents[n]; wrong(i) {
			said = append(said, fmt.Sprintf("%s on %s %s as %s at %.3fs", i.Detector, i.Cache, i.Key, i.Severity, i.Opened))
		}
	}
	if n := len(said); n > 0 {
		const shown = 3
		c.OK, c.Why = false, strings.Join(said[:min(n, shown)], "; ")
		if n > shown {
			c.Why += fmt.Sprintf("; and %d more", n-shown)
		}
	}
	return c
}

// figure checks one figure of the truth.
func (r *Result) figure(name string, f scenario.Figure) Check {
	v, ok := r.Truth[name]
	low, high := math.Inf(-1), math.Inf(1)
	if f.Min != nil {
		low = *f.Min
	}
	if f.Max != nil {
		high = *f.Max
	}
	if f.Mean != nil {
		room := f.Tolerance * math.Abs(*f.Mean)
		if *f.Mean == 0 {
			room = f.Tolerance
		}
		low, high = *f.Mean-room, *f.Mean+room
	}
	c := Check{Figure: name, What: fmt.Sprintf("truth %s in [%.6g, %.6g]", name, low, high), OK: ok && v >= low && v <= high}
	switch {
	case !ok:
		c.Why = "nothing happened that it could be told from"
	case !c.OK:
		c.Why = fmt.Sprintf("it is %.6g", v)
	}
	return c
}
