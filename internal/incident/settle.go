package incident

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// settle gives every finding its place: in the incident of one that explains
// it, or at the head of its own. Incidents that turn out to have one cause
// become one.
//
// It goes from causes to what they cause, in the order of
// [detectors.Precedence]. So whatever could explain a finding has its place
// before the finding gets one, a single pass is enough, and the order in which
// findings came does not matter. After it, no finding at the head of an
// incident is explained by one in another.
func (b *book) settle(now signal.Nanos) {
	for _, m := range b.heads() {
		p := b.parent(m)
		switch {
		case m.in == nil && p == nil:
			b.begin(now, m)
		case m.in == nil:
			b.join(p.in, m)
		case p != nil && m.leads(): // another may have taken the lead since
			b.merge(now, p.in, m.in)
		}
	}
}

// heads returns the findings that have no place yet, and those at the head of
// an incident for which something changed: they, or what may explain them.
// Causes come first.
func (b *book) heads() []*member {
	if len(b.unsettled) == 0 {
		return nil
	}
	heads := map[*member]struct{}{}
	for m := range b.unsettled {
		if m.in == nil || m.leads() {
			heads[m] = struct{}{}
		}
		for _, r := range b.kin.ofParent[m.detector] {
			for c := range b.places.near(m, r.child, r.scope) {
				if c.leads() {
					heads[c] = struct{}{}
				}
			}
		}
	}
	clear(b.unsettled)
	return slices.SortedFunc(maps.Keys(heads), b.compareCauses)
}

// compareCauses orders findings from causes to what they cause. It is a total
// order.
func (b *book) compareCauses(x, y *member) int {
	return cmp.Or(
		cmp.Compare(b.kin.rank(x.detector), b.kin.rank(y.detector)),
		compareMembers(x, y))
}

// parent returns the finding in another incident that best explains m, or nil:
// the one closest to the cause, if there are several.
func (b *book) parent(m *member) *member {
	var best *member
	for _, r := range b.kin.ofChild[m.detector] {
		for p := range b.places.near(m, r.parent, r.scope) {
			if p.in != nil && p.in != m.in && r.explains(p, m) && (best == nil || b.compareCauses(p, best) < 0) {
				best = p
			}
		}
	}
	return best
}

// explained returns the open incident at whose head is a finding that m
// explains, or nil: the most urgent, and of those the first to open, if there
// are several.
func (b *book) explained(m *member) *group {
	var best *group
	better := func(g *group) bool {
		return best == nil || cmp.Or(
			compareUrgency(g.Severity, g.Priority, best.Severity, best.Priority),
			cmp.Compare(best.Opened, g.Opened),
			cmp.Compare(best.ID, g.ID)) > 0
	}
	for _, r := range b.kin.ofParent[m.detector] {
		for c := range b.places.near(m, r.child, r.scope) {
			if c.leads() && r.explains(m, c) && better(c.in) {
				best = c.in
			}
		}
	}
	return best
}

// join makes m part of g.
func (b *book) join(g *group, m *member) {
	if m.in != nil {
		m.from = m.in.ID
	}
	if m.from == g.ID {
		m.from = "" // it had left for a moment
	} else if old := b.byID[m.from]; old != nil && !old.Open() {
		old.wentOn(m.subject, g.ID)
	}
	m.in = g
	g.members[m.subject] = m
	b.touch(g)
}

// merge makes g part of the incident with what explains its head. But if g is
// the more severe, it is the one to go on, under the other's class: to end a
// page and wake people anew would say that there are two troubles, and that one
// is over.
func (b *book) merge(now signal.Nanos, cause, g *group) {
	severity, _ := cause.urgency(now)
	if g.Severity <= severity || cause.opens() {
		b.absorb(now, cause, g)
		return
	}
	lead := cause.lead
	b.absorb(now, g, cause)
	g.changeClass(lead)
}

// absorb makes everything in g part of into, and has g closed.
func (b *book) absorb(now signal.Nanos, into, g *group) {
	g.show(now)
	delete(b.open, g.ID)
	for _, m := range g.members {
		b.join(into, m)
	}
	g.members = nil
	g.PartOf = into.ID
	b.absorbed = append(b.absorbed, g.Incident)
}

// begin puts m at the head of an incident: its own of lately, one that it
// explains, or a new one. One that is more severe than m is not given up for
// its own: see merge.
func (b *book) begin(now signal.Nanos, m *member) {
	g, last := b.explained(m), b.lately(now, m)
	severity, _ := m.urgency(now)
	switch {
	case g != nil && (last == nil || g.Severity > severity):
		b.join(g, m)
		g.changeClass(m)
	case last != nil:
		b.reopen(last, m)
	default:
		b.create(now, m)
	}
}

// lately returns the last incident of m's subject, if it has not been over for
// long.
func (b *book) lately(now signal.Nanos, m *member) *Incident {
	inc := b.recent[m.subject]
	if inc == nil || b.opts.Regroup < 0 || now.Sub(inc.Closed) > b.opts.Regroup {
		return nil
	}
	return inc
}

// reopen opens an incident again.
func (b *book) reopen(inc *Incident, m *member) {
	b.unfile(inc)
	inc.Closed, inc.PartOf = 0, ""
	b.stats.Reopened++
	b.put(inc, m, Reopened)
}

// create opens a new incident.
func (b *book) create(now signal.Nanos, m *member) {
	inc := &Incident{Detector: m.detector, Service: m.service, Cache: m.cache, Opened: now, Onset: m.begun, Worst: m.finding}
	inc.ID = newID(m.subject, inc.Onset, func(id string) bool { return b.byID[id] != nil })
	b.byID[inc.ID] = inc
	b.put(inc, m, Opened)
}

// put puts m at the head of an incident that opens.
func (b *book) put(inc *Incident, m *member, kind ChangeKind) {
	g := newGroup(inc)
	g.lead, g.pending = m, kind
	b.open[inc.ID] = g
	b.join(g, m)
	inc.Continues = m.from
	inc.Episodes++
}
