package incident

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// group is an open incident and the findings it is made of.
type group struct {
	*Incident
	lead    *member             // what explains the others; it gives the incident its class
	members map[subject]*member // with the lead

	touched bool       // something in it changed since it was last published
	pending ChangeKind // what to publish, if it is more than that
	was     string     // the class before, if that is what changed
}

func newGroup(i *Incident) *group { return &group{Incident: i, members: map[subject]*member{}} }

// opens reports whether nobody has heard yet that the incident is open.
func (g *group) opens() bool { return g.pending == Opened || g.pending == Reopened }

// changeClass puts a member at the head.
func (g *group) changeClass(m *member) {
	g.was, g.pending = g.Detector, ClassChanged
	g.lead = m
	g.Detector, g.Service, g.Cache = m.detector, m.service, m.cache
	// What was found under another class is no measure of this one.
	g.Worst = m.finding
}

// stayQuiet makes sure that a finding which is not to page does not do so soon
// after another one in the incident has.
func (g *group) stayQuiet(now signal.Nanos, while time.Duration) {
	severity, priority := g.urgency(now)
	if severity < detectors.Page {
		return
	}
	for _, m := range g.members {
		if m.quiet(now) {
			m.hush(now, while, priority)
		}
	}
}

// show copies into the incident what its findings say.
func (g *group) show(now signal.Nanos) {
	f := &g.lead.finding
	g.Key, g.Origin, g.Paged = f.Key, f.Origin, g.lead.paged
	if g.Onset == 0 || g.lead.begun < g.Onset {
		g.Onset = g.lead.begun
	}
	g.Updated = now
	g.Finding = *f
	if worse(f, &g.Worst) {
		g.Worst = *f
	}
	g.Severity, g.Priority = g.urgency(now)
	g.listChildren()
}

// urgency is that of the most urgent finding: no parent makes a child less
// urgent than it is.
func (g *group) urgency(now signal.Nanos) (severity detectors.Severity, priority int) {
	for _, m := range g.members {
		if s, p := m.urgency(now); compareUrgency(s, p, severity, priority) > 0 {
			severity, priority = s, p
		}
	}
	return severity, priority
}
