package lab

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
)

// Result is what a run came to. Its JSON form is an interface. Instants are
// seconds since the start of the run.
type Result struct {
	Scenario string    `json:"scenario"`
	Seed     uint64    `json:"seed"`
	Seconds  float64   `json:"seconds"` // of the run
	Findings []Finding `json:"findings"`
	// Incidents are the findings joined by cause, in the order they opened.
	Incidents []Incident `json:"incidents"`
	// Restart is set if the exporter was restarted.
	Restart *Restart           `json:"restart,omitempty"`
	Truth   map[string]float64 `json:"truth"`
	// Onsets are when each kind of trouble really began, and when it was over;
	// see docs/scenarios.md.
	Onsets []rig.Onset `json:"-"`
	// Checks are the scenario's expectations, each met or not.
	Checks []Check `json:"checks"`
	OK     bool    `json:"ok"`
}

// Finding is one thing a detector said, from its first word on it to its last.
type Finding struct {
	Detector string  `json:"detector"`
	Cache    string  `json:"cache"`
	Key      string  `json:"key,omitempty"` // empty if it is about a whole cache
	Severity string  `json:"severity"`      // the worst it came to
	Priority int     `json:"priority,omitempty"`
	Onset    float64 `json:"onset"`
	Detected float64 `json:"detected"`           // first said, at any severity
	Ticketed float64 `json:"ticketed,omitempty"` // first said as a ticket or page; 0 if it never was
	Paged    float64 `json:"paged,omitempty"`    // first said as a page; 0 if it never was
	Urged    float64 `json:"urged,omitempty"`    // first said as a page of priority 1; 0 if it never was
	Cleared  float64 `json:"cleared,omitempty"`  // 0 if it held until the end
	// Incident is the ID of the incident it was part of, the last if there were
	// several; empty if that lists too many others.
	Incident string             `json:"incident,omitempty"`
	Summary  string             `json:"summary"`
	Evidence map[string]float64 `json:"evidence"`

	raised [3]time.Duration // when it first came to each severity or more
}

// Check is one thing the scenario asks for.
type Check struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Why  string `json:"why,omitempty"` // if it is not
	// Figure is its name, if it is a figure of the truth that is checked.
	Figure string `json:"figure,omitempty"`
	// Delay is the time from the true onset to the finding; for an
	// expectation that was met.
	Delay float64 `json:"delay,omitempty"`
}

// Failures returns the checks that were not met.
func (r *Result) Failures() []Check {
	var out []Check
	for _, c := range r.Checks {
		if !c.OK {
			out = append(out, c)
		}
	}
	return out
}
