package incident

import (
	"cmp"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// member is a finding that holds. Between two calls of [book.apply] every
// member is in a group.
type member struct {
	subject
	finding detectors.Finding // the latest
	opened  signal.Nanos      // when it was first heard of
	begun   signal.Nanos      // the earliest onset it named
	rose    signal.Nanos      // when its severity last rose; zero if it never did
	paged   Paged
	in      *group
	from    string // the ID of the last incident it was in before; empty if there was none
}

func newMember(now signal.Nanos, f detectors.Finding) *member {
	return &member{subject: subjectOf(&f), finding: f, opened: now, begun: onset(now, &f)}
}

// leads reports whether m gives its incident its class.
func (m *member) leads() bool { return m.in != nil && m.in.lead == m }

// since is when m began to be what it is: a ticket of long ago that now pages
// is as good as new.
func (m *member) since() signal.Nanos { return max(m.begun, m.rose) }

// urgency returns the severity and priority that m asks for at an instant.
func (m *member) urgency(now signal.Nanos) (detectors.Severity, int) {
	if m.finding.Severity == detectors.Page && m.quiet(now) {
		return detectors.Ticket, 0
	}
	return m.finding.Severity, m.finding.Priority
}

// news reports whether f, which is about m, is worse than what somebody was
// paged for.
func (m *member) news(f *detectors.Finding) bool {
	return f.Severity > m.finding.Severity ||
		compareUrgency(f.Severity, f.Priority, detectors.Page, m.paged.Priority) > 0
}

// quiet reports whether m is not to page at an instant.
func (m *member) quiet(now signal.Nanos) bool { return now < m.paged.Until }

// hush takes note that somebody was paged, with a priority, by an incident that
// m is part of: m is not to page for a while.
func (m *member) hush(now signal.Nanos, while time.Duration, priority int) {
	if !m.quiet(now) || compareUrgency(detectors.Page, priority, detectors.Page, m.paged.Priority) > 0 {
		m.paged.Priority = priority
	}
	m.paged.Until = now.Add(max(0, while))
}

// compareMembers orders findings by how much they are worth showing: the most
// urgent first, and of those the first to begin. It is a total order.
func compareMembers(a, b *member) int {
	return cmp.Or(
		compareUrgency(b.finding.Severity, b.finding.Priority, a.finding.Severity, a.finding.Priority),
		cmp.Compare(a.begun, b.begun),
		compareSubjects(a.subject, b.subject))
}

// onset is when f says the trouble began, or the best there is instead.
func onset(now signal.Nanos, f *detectors.Finding) signal.Nanos {
	for _, at := range []signal.Nanos{f.Onset, f.Detected} {
		if at > 0 {
			return at
		}
	}
	return max(now, 1)
}
