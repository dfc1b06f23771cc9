package incident_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
)

// ledger is a listener that holds what it hears against the rules.
type ledger struct {
	t    *rapid.T
	open map[string]string // subject -> incident
}

func name(i *incident.Incident) string {
	return fmt.Sprint(i.Detector, "|", i.Service, "|", i.Cache, "|", i.Key.ID)
}

func (l *ledger) IncidentChanged(i incident.Incident, c incident.Change) {
	id, isOpen := l.open[name(&i)]
	switch c.Kind {
	case incident.Opened, incident.Reopened:
		if isOpen {
			l.t.Fatalf("%s is opened as %s while %s is open", name(&i), i.ID, id)
		}
		l.open[name(&i)] = i.ID
	default:
		if !isOpen || id != i.ID {
			l.t.Fatalf("%s of %s, but %q is open", c.Kind, i.ID, id)
		}
		if c.Kind == incident.Closed {
			delete(l.open, name(&i))
		}
	}
}

func TestNoCauseEverHasTwoOpenIncidentsNorOneAfterItCleared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &ledger{t: t, open: map[string]string{}}
		m, err := incident.New(incident.Options{
			Keep:      rapid.IntRange(1, 5).Draw(t, "keep"),
			MaxOpen:   rapid.IntRange(1, 6).Draw(t, "max open"),
			Listeners: []incident.Listener{l},
		})
		if err != nil {
			t.Fatal(err)
		}
		at := 0.0
		for range rapid.IntRange(1, 60).Draw(t, "ticks") {
			at += rapid.SampledFrom([]float64{-100, 0, 1, 60, 1799, 1801}).Draw(t, "step")
			fs := rapid.SliceOfN(rapid.Custom(anyFinding), 0, 6).Draw(t, "findings")
			m.Apply(after(at), fs)
			checkAgainst(t, m, l, fs)
		}
	})
}

func anyFinding(t *rapid.T) detectors.Finding {
	return page(
		severity(detectors.Severity(rapid.IntRange(0, 2).Draw(t, "severity")), rapid.IntRange(0, 2).Draw(t, "priority")),
		key(uint64(rapid.IntRange(0, 3).Draw(t, "key"))),
		cache(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "cache")),
		onset(after(float64(rapid.IntRange(0, 3).Draw(t, "onset")))),
		func(f *detectors.Finding) { f.Cleared = rapid.Bool().Draw(t, "cleared") },
	)
}

// checkAgainst holds the manager's lists against what its listener heard and
// what was applied last.
func checkAgainst(t *rapid.T, m *incident.Manager, l *ledger, fs []detectors.Finding) {
	last := map[string]bool{}
	for i := range fs {
		f := &fs[i]
		last[fmt.Sprint(f.Detector, "|", f.Service, "|", f.Cache, "|", f.Key.ID)] = f.Cleared
	}
	seen := map[string]bool{}
	ids := map[string]bool{}
	all := m.All()
	for i := range all {
		inc := &all[i]
		if ids[inc.ID] {
			t.Fatalf("id %s is there twice", inc.ID)
		}
		ids[inc.ID] = true
		if i > 0 && incident.Compare(&all[i-1], inc) >= 0 {
			t.Fatalf("incidents %s and %s are out of order", all[i-1].ID, inc.ID)
		}
		if !inc.Open() {
			continue
		}
		if seen[name(inc)] {
			t.Fatalf("%s has two open incidents", name(inc))
		}
		seen[name(inc)] = true
		if l.open[name(inc)] != inc.ID {
			t.Fatalf("%s is open, but listeners know of %q", inc.ID, l.open[name(inc)])
		}
		if last[name(inc)] {
			t.Fatalf("%s is open after it cleared", name(inc))
		}
	}
	if len(seen) != len(l.open) {
		t.Fatalf("%d incidents are open, but listeners know of %d", len(seen), len(l.open))
	}
}
