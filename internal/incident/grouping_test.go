package incident_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// story is a listener that writes down what becomes of incidents, which it
// calls A, B and so on as they open.
type story struct {
	names map[string]string // by ID
	lines []string
	fresh bool // write down fresh evidence too
}

func (s *story) name(id string) string {
	if s.names == nil {
		s.names = map[string]string{}
	}
	if s.names[id] == "" {
		s.names[id] = string(rune('A' + len(s.names)))
	}
	return s.names[id]
}

func (s *story) IncidentChanged(i incident.Incident, c incident.Change) {
	if c.Kind == incident.Updated && !s.fresh {
		return
	}
	line := fmt.Sprintf("%v %s %s: %s %s", c.At.Sub(epoch), s.name(i.ID), c.Kind, i.Detector, c.Severity)
	if c.Priority > 0 {
		line += fmt.Sprintf("/%d", c.Priority)
	}
	if c.Was != "" {
		line += ", was " + c.Was
	}
	if id, ok := strings.CutPrefix(c.Reason, incident.ReasonPartOf+" "); ok {
		line += ", part of " + s.name(id)
	} else if c.Reason != "" {
		line += ", " + c.Reason
	}
	s.lines = append(s.lines, line)
}

// children returns who is a child of whom now: "A: hot-key-expiry".
func (s *story) children(m *incident.Manager) []string {
	var out []string
	for _, i := range m.Open() {
		for _, c := range i.Children {
			line := s.name(i.ID) + ": " + c.Detector
			if c.Cleared != 0 {
				line += fmt.Sprintf(", over at %v", c.Cleared.Sub(epoch))
			}
			if c.Incident != "" {
				line += ", from " + s.name(c.Incident)
			}
			out = append(out, line)
		}
	}
	return out
}

func origin(name string) func(*detectors.Finding) {
	return func(f *detectors.Finding) { f.Origin = name }
}

func begins(s float64) func(*detectors.Finding) { return onset(after(s)) }

var p1 = severity(detectors.Page, 1)

// Findings of cache redis, which spends origin db, unless a test says otherwise.
func hot(change ...func(*detectors.Finding)) detectors.Finding {
	return page(append([]func(*detectors.Finding){origin("db")}, change...)...)
}

func of(id string, change ...func(*detectors.Finding)) detectors.Finding {
	return hot(append([]func(*detectors.Finding){detector(id)}, change...)...)
}

type step struct {
	at       float64 // seconds
	findings []detectors.Finding
}

func tick(at float64, fs ...detectors.Finding) step { return step{at, fs} }

func TestGrouping(t *testing.T) {
	low := severity(detectors.Ticket, 0)
	tests := []struct {
		name     string
		opts     incident.Options
		steps    []step
		heard    []string
		children []string // at the end
	}{
		{
			name:     "what is explained by an open incident's finding becomes a child, and no incident",
			steps:    []step{tick(0, of("synchronized-expiry")), tick(1, hot(begins(1)))},
			heard:    []string{"0s A opened: synchronized-expiry page/2"},
			children: []string{"A: hot-key-expiry"},
		},
		{
			name:  "what explains an open incident's finding changes its class in place",
			steps: []step{tick(0, hot()), tick(10, of("synchronized-expiry"))},
			heard: []string{"0s A opened: hot-key-expiry page/2",
				"10s A class_changed: synchronized-expiry page/2, was hot-key-expiry"},
			children: []string{"A: hot-key-expiry"},
		},
		{
			name:     "both at one tick are one incident, of the class of the cause",
			steps:    []step{tick(0, hot(), of("synchronized-expiry"))},
			heard:    []string{"0s A opened: synchronized-expiry page/2"},
			children: []string{"A: hot-key-expiry"},
		},
		{
			name:  "of several incidents explained, the most urgent changes its class and the others become part of it",
			steps: []step{tick(0, hot(low, key(1))), tick(1, hot(key(2))), tick(2, hot(low, key(3))), tick(10, of("mass-invalidation"))},
			heard: []string{"0s A opened: hot-key-expiry ticket", "1s B opened: hot-key-expiry page/2", "2s C opened: hot-key-expiry ticket",
				"10s B class_changed: mass-invalidation page/2, was hot-key-expiry",
				"10s A closed: hot-key-expiry ticket, part of B", "10s C closed: hot-key-expiry ticket, part of B"},
			children: []string{"B: hot-key-expiry", "B: hot-key-expiry, from A", "B: hot-key-expiry, from C"},
		},
		{
			name: "a retry storm becomes a metastable loop, however long it took",
			steps: []step{tick(0, of("retry-storm")), tick(1, of("budget-exceeded", low, begins(1))),
				tick(3600, of("metastable-loop", p1, begins(3500)))},
			heard: []string{"0s A opened: retry-storm page/2",
				"1h0m0s A class_changed: metastable-loop page/1, was retry-storm"},
			children: []string{"A: retry-storm", "A: budget-exceeded"},
		},
		{
			name:     "a loop explains what happens in other caches of its origin, and only of that",
			steps:    []step{tick(0, of("metastable-loop", p1)), tick(1, hot(cache("users"), begins(1)), hot(cache("carts"), origin("other"), begins(1)))},
			heard:    []string{"0s A opened: metastable-loop page/1", "1s B opened: hot-key-expiry page/2"},
			children: []string{"A: hot-key-expiry"},
		},
		{
			name:     "origins without a name are told apart by cache",
			steps:    []step{tick(0, of("overload", origin(""))), tick(1, of("retry-storm", origin("")), of("retry-storm", origin(""), cache("users")))},
			heard:    []string{"0s A opened: overload page/2", "1s B opened: retry-storm page/2"},
			children: []string{"A: retry-storm"},
		},
		{
			name:     "what explains one key does not explain another",
			steps:    []step{tick(0, of("orphaned-lock", key(1))), tick(1, hot(key(1)), hot(key(2)))},
			heard:    []string{"0s A opened: orphaned-lock page/2", "1s B opened: hot-key-expiry page/2"},
			children: []string{"A: hot-key-expiry"},
		},
		{
			name:  "what began long before is not explained",
			steps: []step{tick(0, hot()), tick(300, of("synchronized-expiry", begins(290)))},
			heard: []string{"0s A opened: hot-key-expiry page/2", "5m0s B opened: synchronized-expiry page/2"},
		},
		{
			name: "but is once it gets worse, and goes on by itself without a second page",
			steps: []step{tick(0, hot(low)), tick(300, of("synchronized-expiry", begins(290))), tick(310, hot()),
				tick(400, of("synchronized-expiry", begins(290), cleared)), tick(401, hot()), tick(402, hot(cleared))},
			heard: []string{"0s A opened: hot-key-expiry ticket", "5m0s B opened: synchronized-expiry page/2",
				"5m10s A closed: hot-key-expiry page/2, part of B",
				"6m40s B closed: synchronized-expiry page/2", "6m40s A reopened: hot-key-expiry ticket", "6m42s A closed: hot-key-expiry ticket"},
		},
		{
			name:  "a ticket does not explain a page",
			steps: []step{tick(0, hot(low)), tick(1, of("overload", begins(1)))},
			heard: []string{"0s A opened: hot-key-expiry ticket", "1s B opened: overload page/2"},
		},
		{
			name:     "unless it says so, and then it is a page",
			steps:    []step{tick(0, of("penetration", low)), tick(1, of("budget-exceeded", begins(1)))},
			heard:    []string{"0s A opened: penetration ticket", "1s A severity_changed: penetration page/2"},
			children: []string{"A: budget-exceeded"},
		},
		{
			name: "an incident is as urgent as the most urgent finding that holds",
			steps: []step{tick(0, of("mass-invalidation")), tick(1, of("retry-storm", p1, begins(1))),
				tick(2, of("retry-storm", p1, begins(1), cleared))},
			heard: []string{"0s A opened: mass-invalidation page/2", "1s A severity_changed: mass-invalidation page/1",
				"2s A severity_changed: mass-invalidation page/2"},
			children: []string{"A: retry-storm, over at 2s"},
		},
		{
			name:     "a child that gets worse than what explains it has an incident of its own",
			steps:    []step{tick(0, hot(low)), tick(1, of("budget-exceeded", low, begins(1))), tick(100, of("budget-exceeded", begins(1)))},
			heard:    []string{"0s A opened: hot-key-expiry ticket", "1m40s B opened: budget-exceeded page/2"},
			children: nil,
		},
		{
			name: "what outlives its parent goes on by itself and pages nobody until it gets worse than what was paged for",
			steps: []step{tick(0, of("mass-invalidation")), tick(1, of("retry-storm", begins(1)), of("budget-exceeded", low, begins(1))),
				tick(60, of("mass-invalidation", cleared)), tick(61, of("retry-storm", begins(1))), tick(62, of("retry-storm", p1, begins(1)))},
			heard: []string{"0s A opened: mass-invalidation page/2", "1m0s A closed: mass-invalidation page/2",
				"1m0s B opened: retry-storm ticket", "1m2s B severity_changed: retry-storm page/1"},
			children: []string{"B: budget-exceeded, from A"},
		},
		{
			name: "or until the regroup time is over",
			steps: []step{tick(0, of("mass-invalidation")), tick(1, of("retry-storm", begins(1))), tick(60, of("mass-invalidation", cleared)),
				tick(1859, of("retry-storm", begins(1))), tick(1860, of("retry-storm", begins(1)))},
			heard: []string{"0s A opened: mass-invalidation page/2", "1m0s A closed: mass-invalidation page/2",
				"1m0s B opened: retry-storm ticket", "31m0s B severity_changed: retry-storm page/2"},
		},
		{
			name: "it pages at once if incidents are never reopened",
			opts: incident.Options{Regroup: -1},
			steps: []step{tick(0, of("mass-invalidation")), tick(1, of("retry-storm", begins(1))),
				tick(60, of("mass-invalidation", cleared))},
			heard: []string{"0s A opened: mass-invalidation page/2", "1m0s A closed: mass-invalidation page/2", "1m0s B opened: retry-storm page/2"},
		},
		{
			name: "what comes anew to what is left is news, and pages",
			steps: []step{tick(0, of("synchronized-expiry")), tick(1, hot(key(1), begins(1))), tick(60, of("synchronized-expiry", cleared)),
				tick(70, of("overload", begins(70)))},
			heard: []string{"0s A opened: synchronized-expiry page/2", "1m0s A closed: synchronized-expiry page/2",
				"1m0s B opened: hot-key-expiry ticket", "1m10s B severity_changed: hot-key-expiry page/2"},
			children: []string{"B: overload"},
		},
		{
			name: "a parent that comes and goes keeps its incident, and so does the child",
			steps: []step{tick(0, hot()), tick(1, of("overload")), tick(100, of("overload"), hot(cleared)),
				tick(101, of("metastable-loop", p1)), tick(200, of("metastable-loop", cleared)),
				tick(300, of("metastable-loop", p1)), tick(400, of("metastable-loop", cleared)), tick(500, of("overload", cleared))},
			heard: []string{"0s A opened: hot-key-expiry page/2", "1m40s A closed: hot-key-expiry page/2", "1m40s B opened: overload ticket",
				"1m41s B class_changed: metastable-loop page/1, was overload", "3m20s B closed: metastable-loop page/1", "3m20s C opened: overload ticket",
				"5m0s B reopened: metastable-loop page/1", "5m0s C closed: overload ticket, part of B",
				"6m40s B closed: metastable-loop page/1", "6m40s C reopened: overload ticket", "8m20s C closed: overload ticket"},
		},
		{
			name: "what turns out to explain a page changes the class of that, and does not page anew",
			steps: []step{tick(0, of("penetration", low, cache("users"), origin(""))), tick(1, of("budget-exceeded", begins(1))),
				tick(2, of("penetration", low, cache("users")))},
			heard: []string{"0s A opened: penetration ticket", "1s B opened: budget-exceeded page/2",
				"2s B class_changed: penetration page/2, was budget-exceeded", "2s A closed: penetration ticket, part of B"},
			children: []string{"B: budget-exceeded"},
		},
		{
			name:  "unless nobody has heard of that yet",
			steps: []step{tick(0, of("budget-exceeded")), tick(1, of("mass-invalidation", low), of("penetration", low))},
			heard: []string{"0s A opened: budget-exceeded page/2", "1s B opened: mass-invalidation page/2",
				"1s A closed: budget-exceeded page/2, part of B"},
			children: []string{"B: budget-exceeded, from A", "B: penetration"},
		},
		{
			name: "nor does what comes back and explains a page",
			steps: []step{tick(0, of("penetration", low)), tick(10, of("penetration", cleared)), tick(20, of("budget-exceeded", begins(20))),
				tick(30, of("penetration", low, begins(20)))},
			heard: []string{"0s A opened: penetration ticket", "10s A closed: penetration ticket", "20s B opened: budget-exceeded page/2",
				"30s B class_changed: penetration page/2, was budget-exceeded"},
			children: []string{"B: budget-exceeded"},
		},
		{
			name:     "what turns out to have begun earlier explains more",
			steps:    []step{tick(0, hot()), tick(300, of("synchronized-expiry", begins(290))), tick(310, of("synchronized-expiry", begins(30)))},
			heard:    []string{"0s A opened: hot-key-expiry page/2", "5m0s B opened: synchronized-expiry page/2", "5m10s A closed: hot-key-expiry page/2, part of B"},
			children: []string{"B: hot-key-expiry, from A"},
		},
		{
			name: "an incident that is reopened begins without what went on by itself",
			steps: []step{tick(0, of("mass-invalidation"), of("retry-storm")), tick(60, of("mass-invalidation", cleared)),
				tick(70, of("retry-storm", cleared)), tick(80, of("mass-invalidation"))},
			heard: []string{"0s A opened: mass-invalidation page/2", "1m0s A closed: mass-invalidation page/2", "1m0s B opened: retry-storm ticket",
				"1m10s B closed: retry-storm ticket", "1m20s A reopened: mass-invalidation page/2"},
		},
		{
			name: "somebody who was paged with priority 1 is not paged again after another page of less",
			steps: []step{tick(0, of("metastable-loop", p1), of("mass-invalidation", p1)),
				tick(1, of("metastable-loop", cleared), of("metastable-loop", cache("users"))), tick(2, of("metastable-loop", cache("users"), cleared)),
				tick(3, of("mass-invalidation", p1))},
			heard: []string{"0s A opened: metastable-loop page/1", "1s A closed: metastable-loop page/1",
				"1s B opened: metastable-loop page/2", "2s B closed: metastable-loop page/2", "2s C opened: mass-invalidation ticket"},
		},
		{
			name: "nor if the first page had become one of less",
			steps: []step{tick(0, of("mass-invalidation")), tick(1, of("retry-storm", p1, begins(1))), tick(2, of("retry-storm", cleared)),
				tick(3, of("overload", begins(3))), tick(4, of("mass-invalidation", cleared), of("overload", p1, begins(3)))},
			heard: []string{"0s A opened: mass-invalidation page/2", "1s A severity_changed: mass-invalidation page/1",
				"2s A severity_changed: mass-invalidation page/2", "4s A closed: mass-invalidation page/2", "4s B opened: overload ticket"},
		},
		{
			name: "nor soon after another page of the same incident",
			steps: []step{tick(0, of("synchronized-expiry"), hot(key(1))), tick(60, of("synchronized-expiry", cleared)),
				tick(1000, of("overload", begins(1000))), tick(1100, of("overload", cleared)), tick(1900, hot(key(1))), tick(2950, hot(key(1)))},
			heard: []string{"0s A opened: synchronized-expiry page/2", "1m0s A closed: synchronized-expiry page/2", "1m0s B opened: hot-key-expiry ticket",
				"16m40s B severity_changed: hot-key-expiry page/2", "18m20s B severity_changed: hot-key-expiry ticket",
				"49m10s B severity_changed: hot-key-expiry page/2"},
			children: []string{"B: overload, over at 18m20s"},
		},
		{
			name: "children that are left are one incident if one of them explains the others",
			steps: []step{tick(0, of("metastable-loop", p1), of("synchronized-expiry"), hot(key(1)), hot(key(2)), hot(cache("users"))),
				tick(60, of("metastable-loop", cleared))},
			heard: []string{"0s A opened: metastable-loop page/1", "1m0s A closed: metastable-loop page/1",
				"1m0s B opened: hot-key-expiry ticket", "1m0s C opened: synchronized-expiry ticket"},
			children: []string{"C: hot-key-expiry, from A", "C: hot-key-expiry, from A"},
		},
		{
			name:  "what ends together with its parent is over with it",
			steps: []step{tick(0, of("mass-invalidation"), hot()), tick(60, of("mass-invalidation", cleared), hot(cleared))},
			heard: []string{"0s A opened: mass-invalidation page/2", "1m0s A closed: mass-invalidation page/2"},
		},
		{
			name: "an explanation reaches through a child",
			steps: []step{tick(0, of("synchronized-expiry")), tick(1, of("overload", begins(1))),
				tick(2, of("lock-convoy", low, cache("users"), begins(2)))},
			heard:    []string{"0s A opened: synchronized-expiry page/2"},
			children: []string{"A: overload", "A: lock-convoy"},
		},
		{
			name:     "a forecast that comes true is part of what it foretold",
			steps:    []step{tick(0, of("expiry-forecast", low)), tick(3000, of("synchronized-expiry", begins(2990)))},
			heard:    []string{"0s A opened: expiry-forecast ticket", "50m0s A class_changed: synchronized-expiry page/2, was expiry-forecast"},
			children: []string{"A: expiry-forecast"},
		},
		{
			name: "a build that bypasses coalescing is the root of the dogpiles, even of a page while it is a ticket",
			steps: []step{tick(0, hot()), tick(60, of("coalescing-bypass", low, begins(30))),
				tick(70, hot(key(9), p1, begins(70)))},
			heard: []string{"0s A opened: hot-key-expiry page/2",
				"1m0s A class_changed: coalescing-bypass page/2, was hot-key-expiry",
				"1m10s A severity_changed: coalescing-bypass page/1"},
			children: []string{"A: hot-key-expiry", "A: hot-key-expiry"},
		},
		{
			name: "mitigations that are badly tuned are incidents of their own",
			steps: []step{tick(0, of("metastable-loop", p1), of("early-refresh-ineffective", low), of("delta-poisoning", low),
				of("underdosed-jitter", low), of("vulnerable", severity(detectors.Info, 0)))},
			heard: []string{"0s A opened: delta-poisoning ticket", "0s B opened: early-refresh-ineffective ticket",
				"0s C opened: metastable-loop page/1", "0s D opened: underdosed-jitter ticket", "0s E opened: vulnerable info"},
		},
		{
			name: "a child that makes way for something worse leaves its incident open",
			opts: incident.Options{MaxOpen: 2},
			steps: []step{tick(0, of("mass-invalidation"), of("budget-exceeded", low)),
				tick(1, hot(cache("users"), origin("other")))},
			heard:    []string{"0s A opened: mass-invalidation page/2", "1s B opened: hot-key-expiry page/2"},
			children: []string{"A: budget-exceeded, over at 1s"},
		},
		{
			name: "children of what makes way for something worse go on",
			opts: incident.Options{MaxOpen: 2},
			steps: []step{tick(0, of("penetration", severity(detectors.Info, 0))), tick(1, of("budget-exceeded", begins(1))),
				tick(2, hot(cache("users"), origin("other")))},
			heard: []string{"0s A opened: penetration info", "1s A severity_changed: penetration page/2",
				"2s A closed: penetration page/2, displaced by a worse incident", "2s B opened: budget-exceeded ticket", "2s C opened: hot-key-expiry page/2"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var s story
			tc.opts.Listeners = []incident.Listener{&s}
			m := newManager(t, tc.opts)
			for _, step := range tc.steps {
				m.Apply(after(step.at), step.findings)
			}
			if diff := cmp.Diff(tc.heard, s.lines); diff != "" {
				t.Errorf("changes heard (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.children, s.children(m)); diff != "" {
				t.Errorf("children (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAChildSaysWhatItIs(t *testing.T) {
	m := newManager(t, incident.Options{})
	m.Apply(after(0), []detectors.Finding{of("mass-invalidation")})
	child := hot(begins(1), func(f *detectors.Finding) {
		f.Summary = "Readers meet."
		f.Evidence = nil
		for i := range 9 {
			f.Evidence = append(f.Evidence, detectors.Evidence{Name: fmt.Sprint("e", i), Value: float64(i)})
		}
	})
	m.Apply(after(2), []detectors.Finding{child})
	got := m.Open()[0]
	want := []incident.Child{{
		Detector: "hot-key-expiry", Service: "shop", Cache: "redis", Key: child.Key, Origin: "db",
		Severity: detectors.Page, Priority: 2, Onset: after(1), Detected: after(0), Summary: "Readers meet.",
		Evidence: child.Evidence[:incident.MaxChildEvidence],
	}}
	if diff := cmp.Diff(want, got.Children); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	if got.Origin != "db" || got.Updated != after(2) {
		t.Errorf("the incident is at origin %q, updated at %v: want db, and when the child came", got.Origin, got.Updated.Sub(epoch))
	}

	m.Apply(after(3), []detectors.Finding{hot(begins(1), cleared)})
	want[0].Cleared = after(3)
	if diff := cmp.Diff(want, m.Open()[0].Children); diff != "" {
		t.Errorf("children after it cleared (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(signal.Nanos(0), got.Children[0].Cleared); diff != "" {
		t.Errorf("a copy has changed (-want +got):\n%s", diff)
	}
}

func TestIncidentsSayHowTheyBelongTogether(t *testing.T) {
	m := newManager(t, incident.Options{})
	low := severity(detectors.Ticket, 0)
	m.Apply(after(0), []detectors.Finding{hot(key(1)), hot(low, key(2))})
	m.Apply(after(1), []detectors.Finding{of("mass-invalidation")})
	flush, absorbed := m.All()[0], m.All()[1]
	if absorbed.PartOf != flush.ID || flush.Children[1].Incident != absorbed.ID {
		t.Errorf("%s is part of %q, and its finding in %s was in %q", absorbed.ID, absorbed.PartOf, flush.ID, flush.Children[1].Incident)
	}
	m.Apply(after(2), []detectors.Finding{of("mass-invalidation", cleared)})
	flush, _ = m.Get(flush.ID)
	if len(flush.Children) != 2 {
		t.Fatalf("the incident has children %v, want two", flush.Children)
	}
	for i, c := range flush.Children {
		went, ok := m.Get(c.Incident)
		if !ok || !went.Open() || went.Continues != flush.ID || went.Key.ID != c.Key.ID || went.PartOf != "" {
			t.Errorf("child %d went on in %+v", i, went)
		}
	}
}

func TestAClassThatChangesKeepsTheIDAndTheEarliestOnset(t *testing.T) {
	m := newManager(t, incident.Options{})
	m.Apply(after(10), []detectors.Finding{of("retry-storm", begins(3))})
	before := m.Open()[0]
	loop := of("metastable-loop", p1, begins(8), peak(1), origin("db"), func(f *detectors.Finding) { f.Service = "" })
	m.Apply(after(20), []detectors.Finding{loop})
	got := m.Open()[0]
	if got.ID != before.ID || got.Onset != after(3) || got.Opened != after(10) || got.Episodes != 1 {
		t.Errorf("the incident is now %+v", got)
	}
	if diff := cmp.Diff(loop, got.Finding); diff != "" {
		t.Errorf("finding (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(loop, got.Worst); diff != "" {
		t.Errorf("worst finding (-want +got):\n%s", diff)
	}
	want := []incident.Change{
		{At: after(10), Kind: incident.Opened, Severity: detectors.Page, Priority: 2},
		{At: after(20), Kind: incident.ClassChanged, Severity: detectors.Page, Priority: 1, Detector: "metastable-loop", Was: "retry-storm"},
	}
	if diff := cmp.Diff(want, got.Changes); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}
	series := map[string]int{}
	for _, s := range m.Stats().Series {
		series[s.Detector] = s.Open
	}
	if diff := cmp.Diff(map[string]int{"retry-storm": 0, "metastable-loop": 1}, series); diff != "" {
		t.Errorf("open by class (-want +got):\n%s", diff)
	}
}

func TestChildrenAreBoundedAndTheWorstAreShown(t *testing.T) {
	m := newManager(t, incident.Options{})
	fs := []detectors.Finding{of("mass-invalidation")}
	for i := range 100 {
		f := hot(key(uint64(i)), severity(detectors.Ticket, 0))
		if i >= 95 {
			f.Severity, f.Priority = detectors.Page, 2
		}
		fs = append(fs, f)
	}
	m.Apply(after(0), fs)
	got := m.Open()
	if len(got) != 1 || len(got[0].Children) != incident.MaxChildren || got[0].MoreChildren != 100-incident.MaxChildren {
		t.Fatalf("%d incidents, the first with %d children and %d more", len(got), len(got[0].Children), got[0].MoreChildren)
	}
	for i, c := range got[0].Children {
		if (i < 5) != (c.Severity == detectors.Page) {
			t.Errorf("child %d is a %v", i, c.Severity)
		}
	}
	for i := range fs[1:] {
		fs[i+1].Cleared = true
	}
	m.Apply(after(1), fs)
	if got := m.Open(); len(got[0].Children) != incident.MaxChildren || got[0].MoreChildren != 0 {
		t.Errorf("after they cleared it lists %d children and %d more", len(got[0].Children), got[0].MoreChildren)
	}
}
