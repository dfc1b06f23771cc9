// Package detectors decides what kind of trouble a fleet is in.
//
// A [Detector] is fed one [signal.Tick] after another and answers each with
// what it finds. It is pure and deterministic: it has no clock, network, logger
// or goroutine, and knows the time only from the tick. So the same ticks give
// the same findings live, in a replay and in a simulation.
//
// A Detector keeps state between ticks (hysteresis, recurrence) and is not safe
// for concurrent use.
package detectors

import (
	"fmt"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Detector looks for one kind of trouble.
type Detector interface {
	// Doc describes it. Doc().ID names it everywhere.
	Doc() Doc
	// Observe takes the next tick and returns every finding that holds at
	// it: a finding is repeated, with fresh evidence, at each regular tick
	// for as long as it holds, and comes once more with Cleared set. An
	// urgent tick may only raise findings. Observe must not keep or change t.
	Observe(t *signal.Tick) []Finding
}

// Limited is a [Detector] that can say what it could not judge.
type Limited interface {
	Detector
	// Limits returns what kept the detector from judging a cache fully at the
	// last regular tick, sorted by cache. A cache with neither a finding nor
	// a limit is healthy as far as this detector can tell. The slice is
	// the caller's.
	Limits() []Limit
}

// Limit is one reason why a detector does not know enough of a cache.
type Limit struct {
	Cache string `json:"cache"`
	// Blind is set if nothing could be judged, so that silence says nothing.
	// Otherwise a cruder rule was used.
	Blind bool `json:"blind,omitempty"`
	// Reason is a sentence: what is missing, and what that means.
	Reason string `json:"reason"`
}

// Stateful is a [Detector] that learns, and can be told later what it had
// learnt: a baseline takes a week, and a restart must not cost it. What it has
// found is not part of it; findings come again from what is seen.
type Stateful interface {
	Detector
	// State returns what the detector has learnt, as versioned JSON of bounded
	// size; equal knowledge gives equal bytes.
	State() ([]byte, error)
	// Restore makes the detector know what State returned. Call it before the
	// first Observe. Bytes that State cannot have returned are refused with
	// an error, and the detector then knows what it knew before.
	Restore(state []byte) error
}

// Severity says who should care, and when.
type Severity uint8

// Severities, in order of urgency.
const (
	Info   Severity = iota // worth knowing
	Ticket                 // fix it in working hours
	Page                   // wake somebody
)

var severityNames = [...]string{"info", "ticket", "page"}

// String returns the lower-case name of s.
func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return "unknown"
}

// MarshalText encodes s by name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText accepts the names [Severity.String] returns.
func (s *Severity) UnmarshalText(b []byte) error {
	for i, n := range severityNames {
		if string(b) == n {
			*s = Severity(i)
			return nil
		}
	}
	return fmt.Errorf("parse severity %q: want one of %q", b, severityNames)
}

// Finding is what a detector says at one tick about one subject: a key of a
// cache, a cache, or an origin.
type Finding struct {
	Detector string     `json:"detector"`
	Service  string     `json:"service,omitempty"` // empty if several services share the cache
	Cache    string     `json:"cache"`
	Key      signal.Key `json:"key,omitzero"` // zero if the finding is about a whole cache
	// Origin is the name of the origin the cache's recomputes spend; empty if
	// it has none. Findings of one origin may have one cause.
	Origin   string   `json:"origin,omitempty"`
	Severity Severity `json:"severity"`
	// Priority is 1 or 2 for a page: 1 is the worse.
	Priority int `json:"priority,omitempty"`
	// Onset is when the trouble began, Detected the tick that first saw it.
	Onset    signal.Nanos `json:"onset"`
	Detected signal.Nanos `json:"detected"`
	// Cleared is set in the last finding of a subject: the trouble is over.
	Cleared bool `json:"cleared,omitempty"`
	// Summary says in one sentence what is wrong, with figures; Advice what
	// to do first. Neither holds the text of a key.
	Summary string `json:"summary"`
	Advice  string `json:"advice"`
	// Evidence holds the numbers behind the finding, in order of weight.
	Evidence []Evidence `json:"evidence"`
}

// Evidence is one number a human can agree or disagree with.
type Evidence struct {
	Name  string  `json:"name"` // lower-case, dotted: "peak", "duplicates", "wasted"
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"` // UCUM: "s", "1", "{recompute}"
	Note  string  `json:"note,omitempty"` // what it is held against, or why it is only a bound
}

// Get returns the value of the evidence called name, and whether there is one.
func (f *Finding) Get(name string) (float64, bool) {
	for _, e := range f.Evidence {
		if e.Name == name {
			return e.Value, true
		}
	}
	return 0, false
}

// Doc is a detector's documentation. docs/detectors.md, the command line and
// the runbooks are made from it.
type Doc struct {
	ID        string // kebab-case: file name, anchor, alert, panel
	Title     string
	Meaning   string // what it means when it fires
	Signal    string // what it looks at
	Condition string // when it fires, and when it clears
	Why       string // why these thresholds, with the source
	Traps     string // what it can be mistaken for
	Advice    string // the first thing to do
	// MayPage is set if the detector can wake somebody.
	MayPage bool
}

// seconds returns d in seconds, for evidence.
func seconds(d time.Duration) float64 { return d.Seconds() }
