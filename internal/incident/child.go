package incident

import (
	"slices"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// MaxChildren bounds [Incident.Children].
	MaxChildren = 16
	// MaxChildEvidence bounds [Child.Evidence].
	MaxChildEvidence = 4
)

// Child is a finding that another explains: evidence of the trouble an incident
// is about, and no incident of its own. The JSON field names are an interface
// and do not change.
type Child struct {
	Detector string     `json:"detector"`
	Service  string     `json:"service,omitempty"`
	Cache    string     `json:"cache"`
	Key      signal.Key `json:"key,omitzero"` // its text is untrusted
	Origin   string     `json:"origin,omitempty"`
	// Severity and Priority are its own; the incident's are no lower.
	Severity detectors.Severity `json:"severity"`
	Priority int                `json:"priority,omitempty"`
	Onset    signal.Nanos       `json:"onset"`
	Detected signal.Nanos       `json:"detected"` // by its detector, first
	// Cleared is when it was over, zero while it holds. A child that held
	// when the incident closed keeps a zero.
	Cleared signal.Nanos `json:"cleared,omitempty"`
	Summary string       `json:"summary"`
	// Evidence is the first few pieces of the finding's.
	Evidence []detectors.Evidence `json:"evidence,omitempty"`
	// Incident is the ID of another incident the child has been in: the last
	// one before, or once this one is closed, the one it went on in.
	Incident string `json:"incident,omitempty"`
	// Paged is the finding's; see [Incident.Paged].
	Paged Paged `json:"paged,omitzero"`
}

func (c *Child) subject() subject { return subject{c.Detector, c.Service, c.Cache, c.Key.ID} }

// child describes m. The slice of evidence is shared, and clipped.
func (m *member) child() Child {
	f := &m.finding
	n := min(len(f.Evidence), MaxChildEvidence)
	return Child{
		Detector: f.Detector, Service: f.Service, Cache: f.Cache, Key: f.Key, Origin: f.Origin,
		Severity: f.Severity, Priority: f.Priority, Onset: m.begun, Detected: f.Detected,
		Summary: f.Summary, Evidence: f.Evidence[:n:n],
		Incident: m.from, Paged: m.paged,
	}
}

// member makes a finding of what is known of it after a restart.
func (c *Child) member(g *group) *member {
	m := newMember(g.Opened, detectors.Finding{
		Detector: c.Detector, Service: c.Service, Cache: c.Cache, Key: c.Key, Origin: c.Origin,
		Severity: c.Severity, Priority: c.Priority, Onset: c.Onset, Detected: c.Detected,
		Summary: c.Summary, Evidence: c.Evidence,
	})
	m.paged, m.from, m.in = c.Paged, c.Incident, g
	return m
}

// listChildren makes the incident list the members beside its lead, the most
// urgent first, and then those that have left, the last to leave first. It
// never changes the old list, which copies of the incident may share.
func (g *group) listChildren() {
	if len(g.members) <= 1 && len(g.Children) == 0 {
		return
	}
	holding := make([]*member, 0, len(g.members))
	for _, m := range g.members {
		if m != g.lead {
			holding = append(holding, m)
		}
	}
	slices.SortFunc(holding, compareMembers)
	shown := min(len(holding), MaxChildren)
	list := make([]Child, 0, min(MaxChildren, shown+len(g.Children)))
	for _, m := range holding[:shown] {
		list = append(list, m.child())
	}
	for _, c := range g.Children {
		if c.Cleared != 0 && len(list) < MaxChildren && g.members[c.subject()] == nil {
			list = append(list, c)
		}
	}
	g.Children, g.MoreChildren = list, len(holding)-shown
}

// leave takes out a member that is over, and lists it as that.
func (g *group) leave(now signal.Nanos, m *member) {
	delete(g.members, m.subject)
	c := m.child()
	c.Cleared = max(now, 1)
	others := slices.DeleteFunc(slices.Clone(g.Children), func(o Child) bool { return o.subject() == m.subject })
	g.Children = append([]Child{c}, others...)
}

// wentOn notes in which incident a child of a closed one went on.
func (i *Incident) wentOn(s subject, id string) {
	if n := slices.IndexFunc(i.Children, func(c Child) bool { return c.subject() == s }); n >= 0 {
		i.Children = slices.Clone(i.Children)
		i.Children[n].Incident = id
	}
}
