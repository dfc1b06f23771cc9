package detectors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// maxAlarms bounds the open findings of one detector. More than that is one
// trouble, and a thousand examples of it are enough.
const maxAlarms = 1000

// symptom is what a rule saw of one subject at one tick. A subject without a key
// is a whole cache.
type symptom struct {
	subject
	key      signal.Key
	service  string
	severity Severity
	priority int
	onset    signal.Nanos
	// ttl is the time to live of the key, 0 if it has none: a finding waits
	// for two of them before it clears.
	ttl time.Duration
	// events is how many times it happened; they are added up.
	events   uint64
	summary  string
	evidence []Evidence
}

// alarm is an open finding.
type alarm struct {
	symptom              // the latest that was as severe as the finding is
	detected, quietSince signal.Nanos
	total                uint64 // events since the onset
	news                 bool   // raised, or made worse, since it was last told
	origin               string // of the cache, as far as it was heard
}

// alarms turns what a rule sees into findings that open, last and clear as
// [Detector] promises.
type alarms struct {
	doc   *Doc
	after time.Duration // how long a subject must be quiet before its finding clears
	// calm says in words what is no longer so once it has: "no lock was lost".
	calm string
	// unit is what events are counted in, and total the name of the evidence
	// that holds their sum; empty if they are not told.
	unit, total string

	open    map[subject]*alarm
	refused map[string]bool // caches with a symptom there was no room for, since the last regular tick
}

func newAlarms(doc *Doc, after time.Duration, calm string) *alarms {
	return &alarms{doc: doc, after: after, calm: calm, open: map[subject]*alarm{}, refused: map[string]bool{}}
}

// raise opens a finding on s, or goes on with the one there is. Nothing makes a
// finding less severe while it is open.
func (l *alarms) raise(at signal.Nanos, s symptom) {
	a := l.open[s.subject]
	if a == nil {
		if len(l.open) >= maxAlarms {
			l.refused[s.cache] = true
			return
		}
		s.onset = min(cmp.Or(s.onset, at), at)
		l.open[s.subject] = &alarm{symptom: s, detected: at, quietSince: at, total: s.events, news: true}
		return
	}
	a.total += s.events
	a.quietSince = max(a.quietSince, at)
	v := verdict{severity: s.severity, priority: s.priority}
	if v.severity < a.severity || v.severity == a.severity && v.priority > a.priority {
		return
	}
	a.news = a.news || v.worseThan(a.severity, a.priority)
	s.onset = min(a.onset, cmp.Or(s.onset, at))
	s.service = a.service // it names the incident
	s.ttl = max(a.ttl, s.ttl)
	a.symptom = s
}

// keep holds the finding on s open, if there is one: what goes on is not enough
// to raise it, and too much to call it over.
func (l *alarms) keep(at signal.Nanos, s subject) {
	if a := l.open[s]; a != nil {
		a.quietSince = max(a.quietSince, at)
	}
}

// tell returns what to say at a tick: at an urgent one only what is new, else
// everything that holds, and what has cleared. Time at which nobody reported
// does not count as quiet.
func (l *alarms) tell(t *signal.Tick, caches map[string]*signal.CacheState) []Finding {
	var out []Finding
	for _, s := range slices.SortedFunc(maps.Keys(l.open), compareSubjects) {
		a := l.open[s]
		if t.Urgent && !a.news {
			continue
		}
		a.news = false
		if c := caches[s.cache]; c != nil {
			a.origin = cmp.Or(c.Origin.Name, a.origin)
		}
		f := l.finding(t.At, a)
		switch {
		case t.Urgent:
		case !reporting(caches[s.cache]) || s.key != 0 && !hears(caches[s.cache]):
			a.quietSince = max(a.quietSince, t.At)
		case t.At.Sub(a.quietSince) >= l.hold(a):
			f.Cleared = true
			f.Summary = fmt.Sprintf("%s: %s for %v.", placeOf(a.key, a.cache), l.calm, l.hold(a).Round(time.Second))
			delete(l.open, s)
		}
		out = append(out, f)
	}
	return out
}

func (l *alarms) hold(a *alarm) time.Duration { return max(l.after, twoLives(a.ttl)) }

func (l *alarms) finding(at signal.Nanos, a *alarm) Finding {
	f := Finding{
		Detector: l.doc.ID,
		Service:  a.service,
		Cache:    a.cache,
		Key:      a.symptom.key,
		Origin:   a.origin,
		Severity: a.severity,
		Priority: a.priority,
		Onset:    min(a.onset, at),
		Detected: min(a.detected, at),
		Summary:  a.summary,
		Advice:   l.doc.Advice,
		Evidence: slices.Clone(a.evidence),
	}
	if l.total != "" && a.total > 0 {
		f.Evidence = append(f.Evidence, Evidence{l.total, float64(a.total), l.unit, "since the onset"})
	}
	return f
}

// limits returns what kept a detector from judging caches at a regular tick: that
// of all detectors of this kind, and what of says of one cache that reports.
func (l *alarms) limits(t *signal.Tick, caches map[string]*signal.CacheState, of func(*signal.CacheState) []Limit) []Limit {
	var out []Limit
	for i := range t.Caches {
		c := &t.Caches[i]
		if !reporting(c) {
			out = append(out, Limit{c.Cache, true, "No instance has reported lately."})
			continue
		}
		out = append(out, of(c)...)
		if l.refused[c.Cache] {
			out = append(out, Limit{c.Cache, false, fmt.Sprintf("%d findings are open: there is no room for more.", len(l.open))})
		}
	}
	gone := map[string]bool{}
	for s := range l.open {
		if caches[s.cache] == nil {
			gone[s.cache] = true
		}
	}
	for cache := range gone {
		out = append(out, Limit{cache, true, "No instance has reported lately."})
	}
	clear(l.refused)
	slices.SortStableFunc(out, func(a, b Limit) int { return strings.Compare(a.Cache, b.Cache) })
	return out
}

// cachesOf returns the caches of a tick by name.
func cachesOf(t *signal.Tick) map[string]*signal.CacheState {
	m := make(map[string]*signal.CacheState, len(t.Caches))
	for i := range t.Caches {
		m[t.Caches[i].Cache] = &t.Caches[i]
	}
	return m
}

// serviceOf returns the service a cache belongs to, or what w says.
func serviceOf(c *signal.CacheState, w *signal.Window) string {
	if c == nil {
		return w.Service
	}
	return c.Service
}

// placeOf names a key by its group, never by itself, and its cache.
func placeOf(k signal.Key, cache string) string {
	switch {
	case k == signal.Key{}:
		return "Cache " + cache
	case k.Group == "":
		return "A key in cache " + cache
	}
	return k.Group + " in cache " + cache
}

// sortedKeys returns the keys of a tick by subject, so that what is found does
// not depend on their order.
func sortedKeys(t *signal.Tick) []*signal.KeyState {
	out := make([]*signal.KeyState, len(t.Keys))
	for i := range t.Keys {
		out[i] = &t.Keys[i]
	}
	sortUnlessSorted(out, func(a, b *signal.KeyState) int {
		return compareSubjects(keySubject(a.Window), keySubject(b.Window))
	})
	return out
}

// sortedEpisodes returns the episodes of a tick by subject, then start.
func sortedEpisodes(t *signal.Tick) []*signal.Episode {
	out := make([]*signal.Episode, len(t.Episodes))
	for i := range t.Episodes {
		out[i] = &t.Episodes[i]
	}
	sortUnlessSorted(out, func(a, b *signal.Episode) int {
		return cmp.Or(compareSubjects(subjectOf(a), subjectOf(b)), cmp.Compare(a.Started, b.Started))
	})
	return out
}

// sortUnlessSorted sorts what mostly is: the fleet makes ticks in order.
func sortUnlessSorted[T any](s []T, by func(a, b T) int) {
	if !slices.IsSortedFunc(s, by) {
		slices.SortStableFunc(s, by)
	}
}

func keySubject(w *signal.Window) subject { return subject{w.Cache, w.Key.ID} }

// isNews reports whether an episode may raise a finding: one that was over for
// long when it was shown improves the evidence and wakes nobody.
func isNews(at signal.Nanos, e *signal.Episode) bool {
	return !e.Final || at.Sub(e.Window.End) <= lateAfter
}
