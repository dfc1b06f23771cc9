package lab

import (
	"slices"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Incident is one trouble as people hear of it: findings that have one cause,
// from first to last. Instants are seconds since the start of the run; 0 is
// never.
type Incident struct {
	ID       string   `json:"id"`
	Detector string   `json:"detector"`      // its class, which is what was taken for the cause in the end
	Was      []string `json:"was,omitempty"` // classes it had before
	Cache    string   `json:"cache"`
	Key      string   `json:"key,omitempty"`
	Severity string   `json:"severity"` // the worst it came to
	Priority int      `json:"priority,omitempty"`
	Onset    float64  `json:"onset"`
	Opened   float64  `json:"opened"`
	Classed  float64  `json:"classed"`            // when it came to be of its class: Opened, or later
	Ticketed float64  `json:"ticketed,omitempty"` // first a ticket or page
	Paged    float64  `json:"paged,omitempty"`    // first a page
	Closed   float64  `json:"closed,omitempty"`
	// Pages is how often it came to be a page: somebody was woken each time.
	Pages int `json:"pages,omitempty"`
	// Episodes is how often it was opened.
	Episodes int    `json:"episodes"`
	Summary  string `json:"summary"`
	// Children are the findings that its own explains.
	Children []Child `json:"children,omitempty"`
	// PartOf is the ID of the incident that this one turned out to be part of,
	// Continues that of one of which it is what is left.
	PartOf    string `json:"part_of,omitempty"`
	Continues string `json:"continues,omitempty"`

	last     incident.Incident
	severity detectors.Severity // now, not the worst
}

// Child is a finding that an incident's explains.
type Child struct {
	Detector string  `json:"detector"`
	Cache    string  `json:"cache"`
	Key      string  `json:"key,omitempty"`
	Severity string  `json:"severity"`
	Detected float64 `json:"detected"`
	Cleared  float64 `json:"cleared,omitempty"`
	Summary  string  `json:"summary"`
}

// incidents writes down what becomes of incidents. It implements
// [incident.Listener].
type incidents struct {
	findings *findings // which incident they are part of is written there
	all      []*Incident
	byID     map[string]*Incident
	most     detectors.Severity // that any has come to
	// opened is called for every new incident, and woken whenever one wakes
	// somebody, unless they are nil.
	opened, woken func(*Incident)
}

// IncidentChanged implements [incident.Listener].
func (is *incidents) IncidentChanged(i incident.Incident, c incident.Change) {
	if c.Kind == incident.Resumed {
		return
	}
	x := is.byID[i.ID]
	anew := x == nil
	if anew {
		x = &Incident{ID: i.ID}
		is.byID[i.ID] = x
		is.all = append(is.all, x)
	}
	x.last = i
	if anew && is.opened != nil {
		is.opened(x)
	}
	is.most = max(is.most, i.Severity)
	is.assign(&i)
	if c.Kind != incident.Updated && x.change(is.findings.start, &i, c) && is.woken != nil {
		is.woken(x)
	}
}

// assign notes of which incident the findings in i are part. Of the children the
// incident does not list, it is not known.
func (is *incidents) assign(i *incident.Incident) {
	if !i.Open() {
		return
	}
	is.findings.assign(subject{i.Detector, i.Service, i.Cache, i.Key.ID}, i.ID)
	for n := range i.Children {
		if c := &i.Children[n]; c.Cleared == 0 {
			is.findings.assign(subject{c.Detector, c.Service, c.Cache, c.Key.ID}, i.ID)
		}
	}
}

// change takes in one entry of the timeline, and reports whether it wakes
// somebody.
func (x *Incident) change(start signal.Nanos, i *incident.Incident, c incident.Change) (woken bool) {
	now := c.At.Sub(start).Seconds()
	if c.Kind == incident.Closed {
		x.severity = detectors.Info
		return false
	}
	if c.Kind == incident.ClassChanged {
		x.Classed = now
		if !slices.Contains(x.Was, c.Was) {
			x.Was = append(x.Was, c.Was)
		}
	}
	woken = c.Severity == detectors.Page && x.severity < detectors.Page
	x.severity = c.Severity
	if x.Opened == 0 {
		x.Opened, x.Classed = now, now
	}
	if c.Severity >= detectors.Ticket && x.Ticketed == 0 {
		x.Ticketed = now
	}
	if woken {
		x.Pages++
	}
	if woken && x.Paged == 0 {
		x.Paged = now
	}
	if x.Severity == "" || c.Severity >= severityOf(x.Severity) {
		x.Severity = c.Severity.String()
	}
	if c.Priority > 0 && (x.Priority == 0 || c.Priority < x.Priority) {
		x.Priority = c.Priority
	}
	return woken
}

// finish fills in what only the last word on x says.
func (x *Incident) finish(start signal.Nanos) {
	i := &x.last
	since := func(at signal.Nanos) float64 {
		if at == 0 {
			return 0
		}
		return at.Sub(start).Seconds()
	}
	x.Detector, x.Cache, x.Key = i.Detector, i.Cache, keyText(i.Key)
	x.Onset, x.Closed, x.Episodes = since(i.Onset), since(i.Closed), i.Episodes
	x.Summary, x.PartOf, x.Continues = i.Worst.Summary, i.PartOf, i.Continues
	for n := range i.Children {
		c := &i.Children[n]
		x.Children = append(x.Children, Child{
			Detector: c.Detector, Cache: c.Cache, Key: keyText(c.Key), Severity: c.Severity.String(),
			Detected: since(c.Detected), Cleared: since(c.Cleared), Summary: c.Summary,
		})
	}
}

// list returns what was written down, in the order the incidents opened.
func (is *incidents) list() []Incident {
	out := make([]Incident, len(is.all))
	for n, x := range is.all {
		x.finish(is.findings.start)
		out[n] = *x
	}
	return out
}

// keyText returns a key as it is read, or its number if that is not known.
func keyText(k signal.Key) string {
	if k.Text == "" && k.ID != 0 {
		return k.ID.String()
	}
	return k.Text
}

// severityOf reads the name of a severity, which was made from one or checked
// when a file was read.
func severityOf(name string) detectors.Severity {
	s := detectors.Info
	_ = s.UnmarshalText([]byte(name))
	return s
}
