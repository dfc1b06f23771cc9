package incident

import (
	"cmp"
	"math"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// book holds incidents and the rules of their life. It is not safe for
// concurrent use.
type book struct {
	opts     Options
	kin      *kinship
	findings map[subject]*member   // those that hold
	places   places                // the same
	open     map[string]*group     // by ID
	closed   []*Incident           // in the order they were closed, oldest first
	recent   map[subject]*Incident // the last closed of each subject, if still kept
	byID     map[string]*Incident
	// severities counts the findings of each, so that one with no place to
	// take is turned away without a search.
	severities map[detectors.Severity]int
	// unconfirmed holds findings from before a restart that have not come
	// again yet. confirmFrom is when waiting for them began.
	unconfirmed map[*member]struct{}
	confirmFrom signal.Nanos

	unsettled map[*member]struct{} // findings that have no place, or perhaps not the right one
	touched   []*group             // since they were last published
	absorbed  []*Incident          // that are still to be closed

	changes []changed // since they were last taken
	dirty   bool      // something changed since it was last asked
	stats   Stats     // all but Series
	opened  map[Labels]uint64
}

// changed is an incident as it was right after a change.
type changed struct {
	incident Incident
	change   Change
}

func newBook(o Options) *book {
	return &book{
		opts:        o,
		kin:         newKinship(detectors.Relations(), detectors.Precedence()),
		findings:    map[subject]*member{},
		places:      places{},
		open:        map[string]*group{},
		recent:      map[subject]*Incident{},
		byID:        map[string]*Incident{},
		severities:  map[detectors.Severity]int{},
		unconfirmed: map[*member]struct{}{},
		unsettled:   map[*member]struct{}{},
		opened:      map[Labels]uint64{},
	}
}

// apply takes what was found at one tick. Of findings of one subject the last
// counts; otherwise their order makes no difference.
func (b *book) apply(now signal.Nanos, fs []detectors.Finding) {
	found := ordered(fs)
	b.clear(now, found)
	for _, f := range found {
		if !f.Cleared {
			b.take(now, *f)
		}
	}
	b.expire(now)
	b.settle(now)
	b.publish(now)
}

// ordered returns the last finding of each subject, in the order of subjects.
func ordered(fs []detectors.Finding) []*detectors.Finding {
	found := make([]*detectors.Finding, len(fs))
	for i := range fs {
		found[i] = &fs[i]
	}
	slices.SortStableFunc(found, func(a, b *detectors.Finding) int { return compareSubjects(subjectOf(a), subjectOf(b)) })
	last := found[:0]
	for i, f := range found {
		if i+1 == len(found) || subjectOf(f) != subjectOf(found[i+1]) {
			last = append(last, f)
		}
	}
	return last
}

// clear takes the clearing ones of findings, children first: those that end
// with their parent have not outlived it. What is not known (the book never
// heard of it, or had no room) is nothing.
func (b *book) clear(now signal.Nanos, found []*detectors.Finding) {
	var heads []*member
	for _, f := range found {
		m := b.findings[subjectOf(f)]
		if m == nil || !f.Cleared {
			continue
		}
		if !m.leads() {
			b.lose(now, m, "")
			continue
		}
		// Its last evidence is worth keeping if it says anything; its
		// severity is not, the trouble being over.
		if f.Summary != "" {
			m.in.Finding = *f
			m.in.Finding.Evidence = b.finite(f.Evidence)
		}
		heads = append(heads, m)
	}
	for _, m := range heads {
		b.lose(now, m, "")
	}
}

// take takes one finding that holds.
func (b *book) take(now signal.Nanos, f detectors.Finding) {
	f.Evidence = b.finite(f.Evidence)
	m := b.findings[subjectOf(&f)]
	if m != nil {
		b.update(now, m, f)
		return
	}
	if !b.makeRoom(now, f.Severity) {
		b.stats.Overflowed++
		return
	}
	m = newMember(now, f)
	b.add(m)
	b.unsettled[m] = struct{}{}
}

// finite returns a copy of evidence without values that JSON has no way to say.
func (b *book) finite(evidence []detectors.Evidence) []detectors.Evidence {
	evidence = slices.Clone(evidence)
	n := len(evidence)
	evidence = slices.DeleteFunc(evidence, func(e detectors.Evidence) bool {
		return math.IsNaN(e.Value) || math.IsInf(e.Value, 0)
	})
	b.stats.EvidenceDropped += uint64(n - len(evidence))
	return evidence
}

// add begins to keep account of m.
func (b *book) add(m *member) {
	b.findings[m.subject] = m
	b.places.add(m)
	b.severities[m.finding.Severity]++
}

// remove ends it.
func (b *book) remove(m *member) {
	delete(b.findings, m.subject)
	delete(b.unconfirmed, m)
	b.places.remove(m)
	b.severities[m.finding.Severity]--
}

// update takes a further finding of a subject.
func (b *book) update(now signal.Nanos, m *member, f detectors.Finding) {
	delete(b.unconfirmed, m)
	b.touch(m.in)
	old, begun := m.finding, m.begun
	moved := f.Origin != old.Origin
	if moved {
		b.places.remove(m)
	}
	if m.news(&f) {
		m.paged = Paged{}
	}
	m.finding, m.begun = f, min(m.begun, onset(now, &f))
	if moved {
		b.places.add(m)
	}
	b.severities[old.Severity]--
	b.severities[f.Severity]++
	if f.Severity > old.Severity {
		m.rose = max(now, 1)
		b.release(m)
	}
	if moved || f.Severity != old.Severity || m.begun != begun {
		b.unsettled[m] = struct{}{}
	}
}

// release takes a child out of its incident, to be given its place anew: a rise
// of its severity may be news that its parent does not explain.
func (b *book) release(m *member) {
	if m.in == nil || m.leads() {
		return
	}
	delete(m.in.members, m.subject)
	m.from, m.in = m.in.ID, nil
}

// touch makes sure that g is published.
func (b *book) touch(g *group) {
	if g != nil && !g.touched {
		g.touched = true
		b.touched = append(b.touched, g)
	}
}

// publish brings incidents up to date with their findings, and records what
// became of each: one change, the most telling. Incidents that were absorbed
// close last, so that nobody believes for a moment that the trouble is over.
func (b *book) publish(now signal.Nanos) {
	touched := b.touched
	b.touched = nil
	touched = slices.DeleteFunc(touched, func(g *group) bool { return b.open[g.ID] != g })
	slices.SortFunc(touched, func(x, y *group) int { return compareSubjects(x.lead.subject, y.lead.subject) })
	for _, g := range touched {
		c := Change{At: now, Kind: cmp.Or(g.pending, Updated)}
		severity, priority := g.Severity, g.Priority
		g.stayQuiet(now, b.opts.Regroup)
		g.show(now)
		switch {
		case c.Kind == ClassChanged:
			c.Detector, c.Was = g.Detector, g.was
		case c.Kind == Updated && (g.Severity != severity || g.Priority != priority):
			c.Kind = SeverityChanged
		}
		g.touched, g.pending, g.was = false, "", ""
		b.count(g.Incident, c.Kind == Opened)
		b.record(g.Incident, c)
	}
	for _, inc := range b.absorbed {
		b.stats.Absorbed++
		b.close(now, inc, ReasonPartOf+" "+inc.PartOf)
	}
	b.absorbed = nil
}

// record completes c, adds it to the timeline if it belongs there, and keeps it
// for listeners.
func (b *book) record(inc *Incident, c Change) {
	c.Severity, c.Priority = inc.Severity, inc.Priority
	if c.Kind != Updated {
		inc.record(c)
	}
	b.dirty = true
	b.changes = append(b.changes, changed{*inc, c})
}

// takeChanges returns what changed since it was last called, and whether any of
// it belongs in a timeline.
func (b *book) takeChanges() (changes []changed, urgent bool) {
	changes, b.changes = b.changes, nil
	return changes, slices.ContainsFunc(changes, func(c changed) bool { return c.change.Kind != Updated })
}

// copies returns copies of the open incidents and, if all is set, of the closed
// ones, in no order.
func (b *book) copies(all bool) []Incident {
	n := len(b.open)
	if all {
		n += len(b.closed)
	}
	out := make([]Incident, 0, n)
	for _, g := range b.open {
		out = append(out, *g.Incident)
	}
	if all {
		for _, inc := range b.closed {
			out = append(out, *inc)
		}
	}
	return out
}
