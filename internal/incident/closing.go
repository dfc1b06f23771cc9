package incident

import (
	"cmp"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// lose forgets a finding that is over. If it was at the head of an incident,
// that is over too, and its children are to be given another place.
func (b *book) lose(now signal.Nanos, m *member, reason string) {
	b.remove(m)
	delete(b.unsettled, m)
	switch g := m.in; {
	case g == nil:
	case g.lead != m:
		g.leave(now, m)
		b.touch(g)
	default:
		g.Updated = now
		b.end(now, g, reason)
	}
}

// end closes an incident. Somebody who was paged by it knows of its children.
func (b *book) end(now signal.Nanos, g *group, reason string) {
	delete(b.open, g.ID)
	delete(g.members, g.lead.subject)
	g.lead = nil
	g.listChildren()
	for _, m := range g.members {
		m.from, m.in = g.ID, nil
		if g.Severity == detectors.Page {
			m.hush(now, b.opts.Regroup, g.mostUrgent())
		}
		b.unsettled[m] = struct{}{}
	}
	b.close(now, g.Incident, reason)
}

// close ends an incident that is no longer among the open ones.
func (b *book) close(now signal.Nanos, inc *Incident, reason string) {
	// The clock may have been set back, but nothing ends before it began, and
	// zero would mean that it did not end.
	inc.Closed = max(now, inc.Opened, 1)
	b.file(inc)
	b.stats.Closed++
	b.record(inc, Change{At: now, Kind: Closed, Reason: reason})
}

// file remembers a closed incident and forgets the oldest if there are too
// many.
func (b *book) file(inc *Incident) {
	b.closed = append(b.closed, inc)
	b.recent[inc.subject()] = inc
	for len(b.closed) > b.opts.Keep {
		oldest := b.closed[0]
		b.unfile(oldest)
		delete(b.byID, oldest.ID)
	}
}

// unfile takes inc out of the closed ones.
func (b *book) unfile(inc *Incident) {
	i := slices.Index(b.closed, inc)
	b.closed = slices.Delete(b.closed, i, i+1)
	if s := inc.subject(); b.recent[s] == inc {
		delete(b.recent, s)
	}
}

// makeRoom reports whether there is room for a finding of the given severity.
// If all places are taken, one of the least severe makes way, the last to come
// of those: tickets must not keep a page out.
func (b *book) makeRoom(now signal.Nanos, severity detectors.Severity) bool {
	if len(b.findings) < b.opts.MaxOpen {
		return true
	}
	if !b.anyBelow(severity) {
		return false
	}
	var least *member
	for _, m := range b.findings {
		if least == nil || cmp.Or(
			cmp.Compare(least.finding.Severity, m.finding.Severity),
			cmp.Compare(m.opened, least.opened),
			compareSubjects(m.subject, least.subject)) > 0 {
			least = m
		}
	}
	b.stats.Displaced++
	b.lose(now, least, ReasonDisplaced)
	return true
}

// anyBelow reports whether a finding of less than the given severity holds.
func (b *book) anyBelow(severity detectors.Severity) bool {
	for s, n := range b.severities {
		if s < severity && n > 0 {
			return true
		}
	}
	return false
}
