package alertmanager

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// resolvedFor is how long, at least, the end of an alert is repeated: an
	// Alertmanager that restarts meanwhile must not think it still fires.
	resolvedFor = 5 * time.Minute
	// maxResolved bounds how many ended alerts are repeated. The end of one
	// more is not sent; Alertmanager ends it when the end it was last given
	// passes.
	maxResolved = 10_000
)

// identity is what makes an alert one: its labels.
type identity struct {
	detector, service, cache string
	severity                 detectors.Severity
}

func identify(i *incident.Incident) identity {
	return identity{i.Detector, i.Service, i.Cache, i.Severity}
}

// group is the incidents behind one alert.
type group struct {
	identity
	members map[string]incident.Incident // open ones, by ID
	last    incident.Incident            // the last to leave; leads if there are no members
	start   signal.Nanos                 // earliest onset since it began to fire
	end     signal.Nanos                 // zero while there are members
	version uint64                       // of its last change
}

// ordered returns the members, the worst first and of those the latest.
func (g *group) ordered() []*incident.Incident {
	out := make([]*incident.Incident, 0, len(g.members))
	for _, i := range g.members {
		out = append(out, &i)
	}
	slices.SortFunc(out, incident.Compare)
	return out
}

// alerts is what fires and what has lately ended. It is not safe for concurrent
// use.
type alerts struct {
	min      detectors.Severity
	linger   time.Duration // how long ended groups are kept
	groups   map[identity]*group
	home     map[string]identity // the group of each incident, by the incident's ID
	resolved int                 // groups that have ended
	version  uint64              // counts changes
}

func newAlerts(min detectors.Severity, resend time.Duration) alerts {
	return alerts{
		min:    min,
		linger: max(resolvedFor, 4*resend),
		groups: map[identity]*group{},
		home:   map[string]identity{},
	}
}

// put takes note of an incident, and reports whether an alert changed by more
// than its figures.
func (a *alerts) put(i incident.Incident, c incident.Change) bool {
	id := identify(&i)
	old, known := a.home[i.ID]
	fires := i.Open() && i.Severity >= a.min
	if known && (!fires || old != id) {
		// Either the incident is over, or it goes on under another alert. For
		// the old alert that comes to the same, but it must not end with the
		// words of another class.
		if i.Open() {
			a.leave(old, a.groups[old].members[i.ID], c.At)
		} else {
			a.leave(old, i, i.Closed)
		}
	}
	if !fires {
		return known
	}
	a.join(id, i, c)
	return !known || old != id || c.Kind != incident.Updated
}

// join adds or updates a member.
func (a *alerts) join(id identity, i incident.Incident, c incident.Change) {
	g := a.groups[id]
	if g == nil {
		g = &group{identity: id, members: map[string]incident.Incident{}}
		a.groups[id] = g
	} else if g.end != 0 {
		a.resolved--
	}
	if len(g.members) == 0 {
		g.start, g.end = i.Onset, 0
	}
	_, known := g.members[i.ID]
	g.members[i.ID] = i
	g.start = min(g.start, i.Onset)
	a.home[i.ID] = id
	if !known || c.Kind != incident.Updated {
		a.touch(g)
	}
}

// leave takes a member out; without members the alert ends.
func (a *alerts) leave(id identity, i incident.Incident, at signal.Nanos) {
	g := a.groups[id]
	delete(g.members, i.ID)
	delete(a.home, i.ID)
	a.touch(g)
	if len(g.members) > 0 {
		return
	}
	if a.resolved >= maxResolved {
		delete(a.groups, id)
		return
	}
	g.last, g.end = i, max(at, g.start)
	a.resolved++
}

func (a *alerts) touch(g *group) {
	a.version++
	g.version = a.version
}

// since returns copies of the groups that changed after the given version,
// sorted, and forgets those that ended long ago.
func (a *alerts) since(version uint64, now time.Time) []group {
	var out []group
	for id, g := range a.groups {
		switch {
		case g.end != 0 && now.Sub(g.end.Time()) > a.linger:
			delete(a.groups, id)
			a.resolved--
		case g.version > version:
			c := *g
			c.members = maps.Clone(g.members)
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b group) int {
		return cmp.Or(
			cmp.Compare(b.severity, a.severity), // pages first, should a later batch fail
			strings.Compare(a.detector, b.detector),
			strings.Compare(a.service, b.service),
			strings.Compare(a.cache, b.cache))
	})
	return out
}
