package incident

import (
	"math"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// book holds incidents and the rules of their life. It is not safe for
// concurrent use.
type book struct {
	opts   Options
	open   map[subject]*Incident
	closed []*Incident           // in the order they were closed, oldest first
	recent map[subject]*Incident // the last closed of each subject, if still kept
	byID   map[string]*Incident
	// severities counts the open incidents of each, so that a finding with no
	// place to take is turned away without a search.
	severities map[detectors.Severity]int
	// unconfirmed holds resumed incidents no finding has confirmed yet.
	// confirmFrom is when waiting for one began.
	unconfirmed map[subject]struct{}
	confirmFrom signal.Nanos

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
		open:        map[subject]*Incident{},
		recent:      map[subject]*Incident{},
		byID:        map[string]*Incident{},
		severities:  map[detectors.Severity]int{},
		unconfirmed: map[subject]struct{}{},
		opened:      map[Labels]uint64{},
	}
}

// apply takes one finding.
func (b *book) apply(now signal.Nanos, f detectors.Finding) {
	f.Evidence = b.finite(f.Evidence)
	s := subjectOf(&f)
	inc, isOpen := b.open[s]
	switch {
	case isOpen && f.Cleared:
		b.clear(now, inc, f)
	case isOpen:
		b.update(now, inc, f)
	case f.Cleared: // of something this book never opened, or had no room for
	default:
		b.begin(now, s, f)
	}
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

// begin reopens the last incident of s, or opens one.
func (b *book) begin(now signal.Nanos, s subject, f detectors.Finding) {
	if !b.makeRoom(now, f.Severity) {
		b.stats.Overflowed++
		return
	}
	kind := Opened
	inc := b.recent[s]
	if inc != nil && b.opts.Regroup >= 0 && now.Sub(inc.Closed) <= b.opts.Regroup {
		kind = Reopened
		b.unfile(inc)
		inc.Closed = 0
		b.stats.Reopened++
	} else {
		inc = &Incident{Detector: f.Detector, Service: f.Service, Cache: f.Cache, Opened: now, Onset: onset(now, &f), Worst: f}
		inc.ID = newID(s, inc.Onset, func(id string) bool { return b.byID[id] != nil })
		b.byID[inc.ID] = inc
	}
	inc.Episodes++
	b.open[s] = inc
	b.take(now, inc, f)
	b.severities[inc.Severity]++
	b.count(inc, kind == Opened)
	b.record(inc, Change{At: now, Kind: kind})
}

// update takes a further finding about an open incident.
func (b *book) update(now signal.Nanos, inc *Incident, f detectors.Finding) {
	kind := Updated
	if f.Severity != inc.Severity || f.Priority != inc.Priority {
		kind = SeverityChanged
	}
	delete(b.unconfirmed, inc.subject())
	b.severities[inc.Severity]--
	b.take(now, inc, f)
	b.severities[inc.Severity]++
	b.count(inc, false)
	b.record(inc, Change{At: now, Kind: kind})
}

// take copies into inc what f says of it.
func (b *book) take(now signal.Nanos, inc *Incident, f detectors.Finding) {
	inc.Key = f.Key
	inc.Severity, inc.Priority = f.Severity, f.Priority
	inc.Onset = min(inc.Onset, onset(now, &f))
	inc.Updated = now
	inc.Finding = f
	if worse(&f, &inc.Worst) {
		inc.Worst = f
	}
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

// clear closes inc because f says so. Its last evidence is worth keeping if it
// says anything; its severity is not, the trouble being over.
func (b *book) clear(now signal.Nanos, inc *Incident, f detectors.Finding) {
	if f.Summary != "" {
		inc.Finding = f
	}
	inc.Updated = now
	b.close(now, inc, "")
}

// close ends inc and files it among the closed ones.
func (b *book) close(now signal.Nanos, inc *Incident, reason string) {
	s := inc.subject()
	delete(b.open, s)
	delete(b.unconfirmed, s)
	b.severities[inc.Severity]--
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

// makeRoom reports whether an incident of the given severity may open. If all
// places are taken, one of the least severe makes way: tickets must not keep a
// page out.
func (b *book) makeRoom(now signal.Nanos, severity detectors.Severity) bool {
	if len(b.open) < b.opts.MaxOpen {
		return true
	}
	if !b.anyBelow(severity) {
		return false
	}
	var least *Incident
	for _, inc := range b.open {
		if inc.Severity < severity && (least == nil || Compare(inc, least) > 0) {
			least = inc
		}
	}
	b.stats.Displaced++
	b.close(now, least, ReasonDisplaced)
	return true
}

// anyBelow reports whether an incident of less than the given severity is open.
func (b *book) anyBelow(severity detectors.Severity) bool {
	for s, n := range b.severities {
		if s < severity && n > 0 {
			return true
		}
	}
	return false
}

// expire closes resumed incidents that nothing has confirmed in time.
func (b *book) expire(now signal.Nanos) {
	if len(b.unconfirmed) == 0 {
		return
	}
	// A clock that was set back starts the wait again: too long is better
	// than too short.
	if b.confirmFrom == 0 || now < b.confirmFrom {
		b.confirmFrom = now
	}
	if now.Sub(b.confirmFrom) < b.opts.ConfirmWithin {
		return
	}
	var late []*Incident
	for s := range b.unconfirmed {
		late = append(late, b.open[s])
	}
	slices.SortFunc(late, Compare)
	for _, inc := range late {
		b.stats.Unconfirmed++
		b.close(now, inc, ReasonUnconfirmed)
	}
}

// resume takes over an incident from before a restart.
func (b *book) resume(inc *Incident) {
	b.byID[inc.ID] = inc
	if !inc.Open() {
		b.file(inc)
		return
	}
	s := inc.subject()
	b.open[s] = inc
	b.severities[inc.Severity]++
	b.unconfirmed[s] = struct{}{}
	b.count(inc, false)
	b.stats.Resumed++
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
	for _, inc := range b.open {
		out = append(out, *inc)
	}
	if all {
		for _, inc := range b.closed {
			out = append(out, *inc)
		}
	}
	return out
}
