package incident_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// about is what a finding is about.
type about struct {
	detector, cache string
	key             signal.KeyID
}

func aboutOf(f *detectors.Finding) about  { return about{f.Detector, f.Cache, f.Key.ID} }
func headOf(i *incident.Incident) about   { return about{i.Detector, i.Cache, i.Key.ID} }
func aboutChild(c *incident.Child) about  { return about{c.Detector, c.Cache, c.Key.ID} }
func (a about) String() string            { return fmt.Sprint(a.detector, "|", a.cache, "|", a.key) }
func compareAbout(a, b about) int         { return strings.Compare(a.String(), b.String()) }
func sorted[V any](m map[about]V) []about { return slices.SortedFunc(maps.Keys(m), compareAbout) }

// known is what a test knows of a finding that holds.
type known struct {
	f      detectors.Finding
	begun  signal.Nanos
	rose   signal.Nanos
	paged  signal.Nanos // when it was last a page in one, since it last rose
	urgent int          // its most urgent priority then
}

func (k *known) since() signal.Nanos { return max(k.begun, k.rose) }

// world is a random fleet in trouble, and what a test knows of it.
type world struct {
	now   float64
	holds map[about]*known
}

var (
	// Some detectors only page, some only open tickets.
	pagesOnly = []string{"metastable-loop", "mass-invalidation", "synchronized-expiry", "orphaned-lock"}
	byKey     = []string{"hot-key-expiry", "process-local-coalescing", "lock-convoy", "orphaned-lock", "lock-lost", "stale-overwrite"}
	origins   = map[string]string{"a": "db", "b": "db", "c": "other", "d": ""}
)

// tick returns the findings of one more tick: some new, most of those that
// hold, and some that clear.
func (w *world) tick(t *rapid.T) []detectors.Finding {
	w.now += rapid.SampledFrom([]float64{0.1, 1, 1, 1, 30, 60, 600, 1799, 1801}).Draw(t, "step")
	var fs []detectors.Finding
	for _, a := range sorted(w.holds) {
		if rapid.IntRange(0, 9).Draw(t, "silent") == 0 {
			continue
		}
		f := w.holds[a].f
		f.Cleared = rapid.IntRange(0, 7).Draw(t, "clears") == 0
		if rapid.IntRange(0, 3).Draw(t, "worse") == 0 {
			f.Severity = max(f.Severity, anySeverity(t, f.Detector))
		}
		if f.Severity == detectors.Page && f.Priority != 1 { // it does not fall either
			f.Priority = rapid.IntRange(1, 2).Draw(t, "priority")
		}
		fs = append(fs, f)
	}
	for range rapid.IntRange(0, 3).Draw(t, "new") {
		f := w.anyNew(t)
		if _, holds := w.holds[aboutOf(&f)]; !holds && !slices.ContainsFunc(fs, func(o detectors.Finding) bool { return aboutOf(&o) == aboutOf(&f) }) {
			fs = append(fs, f)
		}
	}
	w.learn(fs)
	return fs
}

func anySeverity(t *rapid.T, detector string) detectors.Severity {
	if slices.Contains(pagesOnly, detector) {
		return detectors.Page
	}
	return detectors.Severity(rapid.IntRange(0, 2).Draw(t, "severity"))
}

func (w *world) anyNew(t *rapid.T) detectors.Finding {
	id := rapid.SampledFrom(detectors.Precedence()).Draw(t, "detector")
	at := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "cache")
	f := of(id, cache(at), origin(origins[at]), severity(anySeverity(t, id), 0),
		begins(max(0, w.now-rapid.SampledFrom([]float64{0, 1, 50, 100, 2000}).Draw(t, "age"))))
	if slices.Contains(byKey, id) {
		f.Key.ID = signal.KeyID(rapid.IntRange(1, 2).Draw(t, "key"))
	}
	if f.Severity == detectors.Page {
		f.Priority = rapid.IntRange(1, 2).Draw(t, "priority")
	}
	return f
}

// learn takes note of findings.
func (w *world) learn(fs []detectors.Finding) {
	for _, f := range fs {
		a := aboutOf(&f)
		k := w.holds[a]
		switch {
		case f.Cleared:
			delete(w.holds, a)
			continue
		case k == nil:
			k = &known{begun: f.Onset}
			w.holds[a] = k
		case f.Severity > k.f.Severity:
			k.rose, k.paged = after(w.now), 0
		}
		k.begun = min(k.begun, f.Onset)
		k.f = f
	}
}

// explains reports whether one finding that holds explains another.
func (w *world) explains(p, c *known) bool {
	for _, r := range detectors.Relations() {
		if r.Parent != p.f.Detector || !slices.Contains(r.Children, c.f.Detector) {
			continue
		}
		same := p.f.Cache == c.f.Cache
		switch r.Scope {
		case detectors.Apart:
			continue
		case detectors.SameKey:
			same = same && p.f.Key.ID == c.f.Key.ID
		case detectors.SameOrigin:
			same = same || p.f.Origin != "" && p.f.Origin == c.f.Origin
		}
		if same && c.since() >= p.since()-signal.Nanos(r.Lead) && (r.Lesser || p.f.Severity >= c.f.Severity) {
			return true
		}
	}
	return false
}

// visible returns which open incident shows each finding that holds, and fails
// if one does twice.
func visible(t *rapid.T, open []incident.Incident) map[about]*incident.Incident {
	shown := map[about]*incident.Incident{}
	show := func(a about, i *incident.Incident) {
		if shown[a] != nil {
			t.Fatalf("%v is in incident %s and in %s", a, shown[a].ID, i.ID)
		}
		shown[a] = i
	}
	for n := range open {
		i := &open[n]
		show(headOf(i), i)
		for c := range i.Children {
			if i.Children[c].Cleared == 0 {
				show(aboutChild(&i.Children[c]), i)
			}
		}
	}
	return shown
}

// check holds what the manager shows against what holds.
func (w *world) check(t *rapid.T, m *incident.Manager) {
	open := m.Open()
	shown := visible(t, open)
	hidden := 0
	for i := range open {
		hidden += open[i].MoreChildren
		if open[i].PartOf != "" || len(open[i].Children) > incident.MaxChildren {
			t.Fatalf("incident %s is open as %+v", open[i].ID, open[i])
		}
	}
	if len(shown)+hidden != len(w.holds) {
		t.Fatalf("%d findings are shown and %d counted, of %d that hold", len(shown), hidden, len(w.holds))
	}
	for a, i := range shown {
		k := w.holds[a]
		if k == nil {
			t.Fatalf("incident %s shows %v, which is over", i.ID, a)
		}
		if k.f.Severity > i.Severity && k.paged == 0 {
			t.Fatalf("incident %s is a %v, but %v in it a %v", i.ID, i.Severity, a, k.f.Severity)
		}
	}
	for i := range open {
		for j := range open {
			p, c := headOf(&open[i]), headOf(&open[j])
			if i != j && w.explains(w.holds[p], w.holds[c]) {
				t.Fatalf("%v explains %v, and both have an incident", p, c)
			}
		}
	}
}

// wake fails if an incident that has become a page is no news to whoever was
// paged before: if every finding in it that pages has been in a page since it
// last got worse, and not long ago.
func (w *world) wake(t *rapid.T, i *incident.Incident, members []about) {
	for _, a := range members {
		k := w.holds[a]
		if k == nil || k.f.Severity < detectors.Page {
			continue
		}
		if k.paged == 0 || k.f.Priority < k.urgent || after(w.now)-k.paged >= signal.Nanos(30*time.Minute) {
			return
		}
	}
	t.Fatalf("incident %s (%s) pages at %v for what somebody was paged for before", i.ID, i.Detector, w.now)
}

// watch follows what pages.
func (w *world) watch(t *rapid.T, m *incident.Manager, paging map[string]bool) {
	members := map[string][]about{}
	open := m.Open()
	for a, i := range visible(t, open) {
		members[i.ID] = append(members[i.ID], a)
	}
	still := map[string]bool{}
	for n := range open {
		i := &open[n]
		if i.Severity < detectors.Page {
			continue
		}
		still[i.ID] = true
		if !paging[i.ID] && i.MoreChildren == 0 {
			w.wake(t, i, members[i.ID])
		}
	}
	for n := range open {
		i := &open[n]
		for _, a := range members[i.ID] {
			k := w.holds[a]
			if i.Severity < detectors.Page || k.f.Severity < detectors.Page || i.Priority > k.f.Priority {
				continue // nobody was paged for this one
			}
			if k.paged == 0 || k.f.Priority < k.urgent {
				k.urgent = k.f.Priority
			}
			k.paged = after(w.now)
		}
	}
	clear(paging)
	maps.Copy(paging, still)
}

func TestOneIncidentAndOnePageForEachCause(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, other := newWorldManager(t), newWorldManager(t)
		w := &world{holds: map[about]*known{}}
		paging := map[string]bool{}
		shuffle := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range rapid.IntRange(1, 40).Draw(t, "ticks") {
			fs := w.tick(t)
			one.Apply(after(w.now), fs)
			w.check(t, one)
			w.watch(t, one, paging)

			shuffle.Shuffle(len(fs), func(i, j int) { fs[i], fs[j] = fs[j], fs[i] })
			other.Apply(after(w.now), fs)
			if diff := cmp.Diff(one.All(), other.All()); diff != "" {
				t.Fatalf("incidents depend on the order of findings (-in order +shuffled):\n%s", diff)
			}
		}
	})
}

// tidy is a listener that holds what it hears against what listeners are
// promised.
type tidy struct{ t *rapid.T }

func (l tidy) IncidentChanged(i incident.Incident, c incident.Change) {
	if c.Kind != incident.Updated && c != i.Changes[len(i.Changes)-1] {
		l.t.Fatalf("the timeline does not end with what is told: %+v", c)
	}
	if (c.Kind == incident.Closed) == i.Open() {
		l.t.Fatalf("%s, and the incident is closed at %d", c.Kind, i.Closed)
	}
	if c.Severity != i.Severity || c.Priority != i.Priority {
		l.t.Fatalf("the change is of severity %v/%d, the incident of %v/%d", c.Severity, c.Priority, i.Severity, i.Priority)
	}
}

func newWorldManager(t *rapid.T) *incident.Manager {
	m, err := incident.New(incident.Options{Listeners: []incident.Listener{tidy{t}}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
