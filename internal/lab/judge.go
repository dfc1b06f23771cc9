package lab

import (
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
		r.Checks = append(r.Checks, r.absent("no page", func(f *Finding) bool { return f.raised[detectors.Page] >= 0 }))
	}
	for _, d := range sc.Forbid.Detectors {
		r.Checks = append(r.Checks, r.absent("no "+d, func(f *Finding) bool {
			return f.Detector == d && f.raised[detectors.Ticket] >= 0
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
		switch {
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
	if x.Within > 0 {
		s += " within " + x.Within.String()
	}
	if x.After > 0 {
		s += " after " + x.After.String()
	}
	return s
}

// absent checks that nothing found is what it should not be.
func (r *Result) absent(what string, wrong func(*Finding) bool) Check {
	c := Check{What: what, OK: true}
	var said []string
	for i := range r.Findings {
		if f := &r.Findings[i]; wrong(f) {
			said = append(said, fmt.Sprintf("%s on %s %s as %s at %.3fs", f.Detector, f.Cache, f.Key, f.Severity, f.Detected))
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
