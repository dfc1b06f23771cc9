package score

// Score sums up outcomes. Its JSON form is an interface. Times are in seconds;
// what cannot be told, such as a share of nothing, is left out.
type Score struct {
	Scenarios int     `json:"scenarios"`
	Runs      int     `json:"runs"`
	Days      float64 `json:"simulated_days"`
	// Classes are the detectors of which anything was expected or found, by
	// name; Total is all of them together.
	Classes []Class `json:"classes"`
	Total   Class   `json:"total"`
	// Pages counts only what was expected, or came, as a page.
	Pages PageScore `json:"pages"`
	// Restart is what restarts of the exporter did; absent if there were none.
	Restart *RestartScore `json:"restart,omitempty"`
	// FalsePages is over all runs, and QuietFalsePages over those of scenarios
	// that expect nothing and allow no page.
	FalsePages      Rate `json:"false_pages"`
	QuietFalsePages Rate `json:"quiet_false_pages"`
	// Confusion has the cells of the matrix that are not empty, in order.
	Confusion []Cell `json:"confusion"`
	// Problems are all that went wrong, in the order of the runs.
	Problems []Problem `json:"problems"`
}

// Class is how well one detector did.
type Class struct {
	Detector string `json:"detector"`
	Expected int    `json:"expected"` // episodes, but for the void ones
	Found    int    `json:"found"`
	Missed   int    `json:"missed"`
	Void     int    `json:"void"`
	// FalsePages and FalseTickets are findings for nothing; Noise are further
	// findings about an episode.
	FalsePages   int `json:"false_pages"`
	FalseTickets int `json:"false_tickets"`
	Noise        int `json:"noise"`
	// Unasked are findings about trouble that did begin, which scenarios
	// neither expect nor forbid: neither right nor wrong.
	Unasked   int      `json:"unasked"`
	Precision *float64 `json:"precision,omitempty"`
	Recall    *float64 `json:"recall,omitempty"`
	// RecallLower is the exact one-sided 95 % lower bound on Recall.
	RecallLower *float64 `json:"recall_lower_95,omitempty"`
	// Delay is the time to detect. Open is the time from the first word to the
	// last, of findings that cleared; StillOpen counts those that did not
	// before the run ended. Clear is the time from the end of the trouble to
	// the last word; ClearedEarly counts findings that cleared before.
	Delay        *Spread `json:"delay,omitempty"`
	Open         *Spread `json:"open,omitempty"`
	StillOpen    int     `json:"still_open"`
	Clear        *Spread `json:"clear,omitempty"`
	ClearedEarly int     `json:"cleared_early"`
	// RangePrecision and RangeRecall compare the whole time a finding held with
	// the whole time the trouble was there.
	RangePrecision *float64 `json:"range_precision,omitempty"`
	RangeRecall    *float64 `json:"range_recall,omitempty"`
	// Flaps counts tickets and pages that came back without anything new having
	// happened; FlapsPerIncident divides it by those that did not.
	Flaps            int      `json:"flaps"`
	FlapsPerIncident *float64 `json:"flaps_per_incident,omitempty"`
}

// PageScore is how well pages do.
type PageScore struct {
	Expected  int      `json:"expected"`
	Found     int      `json:"found"`
	False     int      `json:"false"`
	Precision *float64 `json:"precision,omitempty"`
	Recall    *float64 `json:"recall,omitempty"`
	// RecallLower is the exact one-sided 95 % lower bound on Recall.
	RecallLower *float64 `json:"recall_lower_95,omitempty"`
	// Repeated counts pages beyond the first for one cause.
	Repeated int `json:"repeated"`
}

// RestartScore is how incidents fare that are open when the exporter is
// restarted.
type RestartScore struct {
	Runs int `json:"runs"`
	// Open is how many tickets and pages were open, Due how many of those were
	// there to be found again, and Found how many were, under their ID.
	Open  int      `json:"open"`
	Due   int      `json:"due"`
	Found int      `json:"found"`
	Share *float64 `json:"share,omitempty"` // Found of Due
	// Lower is the exact one-sided 95 % lower bound on Share.
	Lower *float64 `json:"share_lower_95,omitempty"`
	// Delay is the time until they were found.
	Delay *Spread `json:"delay,omitempty"`
	// Anew counts incidents that were opened for what one of those was about.
	Anew int `json:"anew"`
	// DoublePages counts pages for what somebody had been paged for before.
	DoublePages int `json:"double_pages"`
}

// Spread describes some times, of which there is at least one.
type Spread struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	Max   float64 `json:"max"`
}

// Rate is how often something happened.
type Rate struct {
	Events int     `json:"events"`
	Days   float64 `json:"days"`
	// PerDay is what was seen, and Upper the exact one-sided 95 % upper bound
	// on what it can be in truth. Absent if there were no days.
	PerDay *float64 `json:"per_day,omitempty"`
	Upper  *float64 `json:"upper_95,omitempty"`
}

// None is the class of what was not expected, or not found.
const None = "none"

// Cell counts episodes of one class that were found as another, or the same.
// [None] expected are false tickets and pages; [None] found are episodes of
// which nobody spoke.
type Cell struct {
	Expected string `json:"expected"`
	Found    string `json:"found"`
	Count    int    `json:"count"`
}

// Kinds of a [Problem].
const (
	Missed      = "missed"
	FalsePage   = "false page"
	FalseTicket = "false ticket"
	VoidEpisode = "void"        // the trouble never began
	WrongFigure = "figure"      // of the truth: the run is not what its source says
	NotResumed  = "not resumed" // an incident was not found again after a restart
	DoublePage  = "double page" // somebody was paged again after a restart
)

// Problem is one thing that went wrong in one run.
type Problem struct {
	Kind     string `json:"kind"`
	Scenario string `json:"scenario"`
	Seed     uint64 `json:"seed"`
	Shift    string `json:"shift,omitempty"`
	Detector string `json:"detector,omitempty"`
	Cache    string `json:"cache,omitempty"`
	Why      string `json:"why"`
}
