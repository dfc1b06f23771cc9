package incident

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Incident is one trouble, from its onset until it is over. The JSON field
// names are an interface and do not change.
//
// An Incident got from a [Manager] is a copy that stays as it is, but its
// slices are shared with other copies: read them, do not write to them.
type Incident struct {
	// ID is unique, safe in a URL and a file name, and the same whenever the
	// same ticks are looked at again.
	ID string `json:"id"`
	// Detector is the incident's class: what is taken for the cause. It, and
	// with it Service, Cache, Key, Origin, Finding and Worst, may change while
	// the incident is open: see [ClassChanged].
	Detector string `json:"detector"`
	Service  string `json:"service,omitempty"` // empty if several services share the cache
	Cache    string `json:"cache"`
	// Key is zero if the incident is about a whole cache. Its text is
	// untrusted.
	Key signal.Key `json:"key,omitzero"`
	// Origin is the name of the origin the trouble is at, if it is known.
	Origin string `json:"origin,omitempty"`
	// Severity and Priority are those of the most urgent finding that holds,
	// be it a child's; of a closed incident, those it had to the last.
	// Priority is 1, the worse, or 2 for a page, else 0.
	Severity detectors.Severity `json:"severity"`
	Priority int                `json:"priority,omitempty"`
	// Onset is the earliest onset named by a finding of its class, or of one
	// it had before. It is never zero.
	Onset signal.Nanos `json:"onset"`
	// Opened is when the manager first heard of it, Updated when it last
	// did, Closed when it ended; zero while it is open.
	Opened  signal.Nanos `json:"opened"`
	Updated signal.Nanos `json:"updated"`
	Closed  signal.Nanos `json:"closed,omitempty"`
	// Episodes counts how often it was opened: 1, and 1 for each reopening.
	Episodes int `json:"episodes"`
	// Finding is the latest finding of its class. Worst is the one of the
	// greatest severity, then priority, then value of its first evidence.
	Finding detectors.Finding `json:"finding"`
	Worst   detectors.Finding `json:"worst"`
	// Changes is the timeline, oldest first, with at most [MaxChanges]
	// entries: past that the first stays and the oldest of the rest go.
	// ChangesDropped counts those that went.
	Changes        []Change `json:"changes"`
	ChangesDropped int      `json:"changes_dropped,omitempty"`

	// Children are findings that this incident's explains, at most
	// [MaxChildren]: those that hold, the most urgent first, and then those
	// that are over, the latest first. MoreChildren counts others that hold.
	Children     []Child `json:"children,omitempty"`
	MoreChildren int     `json:"more_children,omitempty"`
	// PartOf is the ID of the incident that this one turned out to be part
	// of. It is empty while this one is open.
	PartOf string `json:"part_of,omitempty"`
	// Continues is the ID of an incident that is over, or of another cause
	// than was thought, and of which this one is what is left.
	Continues string `json:"continues,omitempty"`
	Paged     Paged  `json:"paged,omitzero"`
}

// Paged says that somebody has been woken for what a finding is about, by
// another incident that it was part of. Until then, a page of it that is no
// more urgent is only a ticket: nobody is to be woken twice for one cause.
type Paged struct {
	Until    signal.Nanos `json:"until"`
	Priority int          `json:"priority,omitempty"`
}

// MaxChanges bounds [Incident.Changes].
const MaxChanges = 64

// Change is one entry of an incident's timeline.
type Change struct {
	At   signal.Nanos `json:"at"`
	Kind ChangeKind   `json:"kind"`
	// Severity and Priority are the incident's from then on.
	Severity detectors.Severity `json:"severity"`
	Priority int                `json:"priority,omitempty"`
	// Reason says why, if the incident was closed and no finding said so.
	Reason string `json:"reason,omitempty"`
	// Detector and Was are the class from then on and the one before, if it
	// changed.
	Detector string `json:"detector,omitempty"`
	Was      string `json:"was,omitempty"`
}

// ChangeKind says what happened to an incident.
type ChangeKind string

// Kinds of change.
const (
	Opened          ChangeKind = "opened"
	SeverityChanged ChangeKind = "severity_changed" // or its priority
	Reopened        ChangeKind = "reopened"
	// ClassChanged: another finding turned out to be the cause. What gave the
	// incident its class before is now a child. The severity may have changed
	// too.
	ClassChanged ChangeKind = "class_changed"
	Closed       ChangeKind = "closed"
	// Updated and Resumed are told to listeners only; a timeline has no room
	// for them. Updated: fresh evidence, nothing else. Resumed: the incident
	// was already open when the listener came, from the state file or since.
	Updated ChangeKind = "updated"
	Resumed ChangeKind = "resumed"
)

// Reasons of a [Closed] change that no finding asked for.
const (
	ReasonUnconfirmed = "not confirmed after restart"
	ReasonDisplaced   = "displaced by a worse incident"
	// ReasonPartOf is followed by a space and the ID in [Incident.PartOf].
	ReasonPartOf = "part of incident"
)

// Open reports whether the incident is not over.
func (i *Incident) Open() bool { return i.Closed == 0 }

// record adds c to the timeline. It never changes the old slice, which copies
// of the incident may share.
func (i *Incident) record(c Change) {
	keep := i.Changes
	if len(keep) >= MaxChanges {
		i.ChangesDropped += len(keep) - MaxChanges + 1
		keep = slices.Concat(keep[:1], keep[len(keep)-MaxChanges+2:])
	}
	i.Changes = append(slices.Clip(keep), c)
}

// mostUrgent returns the most urgent priority the timeline knows of.
func (i *Incident) mostUrgent() int {
	priority := i.Priority
	for _, c := range i.Changes {
		if compareUrgency(c.Severity, c.Priority, c.Severity, priority) > 0 {
			priority = c.Priority
		}
	}
	return priority
}

// Compare orders incidents for display: open ones first, of those the worst and
// then the latest opened; then closed ones, the latest closed first. It is a
// total order on incidents with distinct IDs.
func Compare(a, b *Incident) int {
	if a.Open() != b.Open() {
		if a.Open() {
			return -1
		}
		return 1
	}
	if !a.Open() {
		return cmp.Or(cmp.Compare(b.Closed, a.Closed), strings.Compare(a.ID, b.ID))
	}
	return cmp.Or(
		compareUrgency(b.Severity, b.Priority, a.Severity, a.Priority),
		cmp.Compare(b.Opened, a.Opened),
		strings.Compare(a.ID, b.ID))
}

// compareUrgency is negative if a is less urgent than b. Of equal severities,
// priority 1 is above 2, which is above none.
func compareUrgency(a detectors.Severity, aPriority int, b detectors.Severity, bPriority int) int {
	rank := func(priority int) int {
		if priority <= 0 {
			return -1 << 30
		}
		return -priority
	}
	return cmp.Or(cmp.Compare(a, b), cmp.Compare(rank(aPriority), rank(bPriority)))
}

// worse reports whether a is a worse finding than b. Evidence comes in order of
// weight, so the first piece decides between findings of equal urgency.
func worse(a, b *detectors.Finding) bool {
	if c := compareUrgency(a.Severity, a.Priority, b.Severity, b.Priority); c != 0 {
		return c > 0
	}
	if len(a.Evidence) == 0 || len(b.Evidence) == 0 {
		return len(a.Evidence) > len(b.Evidence)
	}
	x, y := a.Evidence[0], b.Evidence[0]
	return x.Name == y.Name && x.Value > y.Value
}
