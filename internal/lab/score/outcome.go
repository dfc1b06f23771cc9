package score

import "github.com/stampede-exporter/stampede-exporter/internal/lab"

// Outcome is what came of one run. Times are in seconds.
type Outcome struct {
	Scenario string
	Seed     uint64
	Shift    string  // empty for the scenario as it is
	Seconds  float64 // virtual time
	Quiet    bool    // no finding is expected and no page allowed
	Episodes []Episode
	// False are tickets and pages for nothing.
	False []Alarm
	// Unasked are tickets and pages about trouble that did begin, but that the
	// scenario neither expects nor forbids.
	Unasked []Alarm
	// Repeated counts pages beyond the first for one cause.
	Repeated int
	// Classes are detectors of which there was anything to say, by name.
	Classes []ClassOutcome
	// Restart is what a restart of the exporter did to a run of its own; nil if
	// there was none.
	Restart *lab.Restart
	// Figures are those of the truth that the run did not come to.
	Figures []string
}

// ClassOutcome compares when one detector's findings held in a run with when the
// trouble was there.
type ClassOutcome struct {
	Detector string
	// Real is how many stretches of trouble were to be found, Recall the sum
	// of how well each was; Predicted is how many findings were tickets or
	// pages, Precision the sum of how well each told of trouble.
	Real, Predicted   int
	Recall, Precision float64
	// Alarms counts tickets and pages, and Flaps those that came back without
	// anything new having happened.
	Alarms, Flaps int
}

// Episode is one expectation in one run.
type Episode struct {
	Detector string
	Cache    string
	Severity string
	// Void is set if the trouble never began in this run: nothing was there to
	// be found. It counts for nothing else.
	Void  bool
	Found bool
	// FoundAs is the detector that spoke of it instead, if none did the empty
	// string; Detector itself if it spoke, be it too late or too low.
	FoundAs string
	// Delay is the time from the onset to the finding; negative if it has none.
	Delay float64
	// Open is how long the finding held; negative if it held until the end.
	Open float64
	// Clear is how long after the end of the trouble the finding cleared;
	// negative if that cannot be told. Early is set if it cleared while the
	// trouble lasted.
	Clear float64
	Early bool
	// Noise counts further tickets and pages about the same.
	Noise int
	Why   string // if it was not found
}

// Alarm is a ticket or page.
type Alarm struct {
	Detector string
	Cache    string
	Page     bool
	At       float64
	// Confused is set if it is what an episode was found as: the confusion
	// matrix has it there.
	Confused bool
	Why      string
}
