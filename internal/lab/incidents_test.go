package lab_test

import (
	"slices"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

func TestFindingsOfOneCauseAreOneIncident(t *testing.T) {
	r := run(t, load(t, "orphaned-lock"), lab.Options{})
	i := slices.IndexFunc(r.Incidents, func(i lab.Incident) bool { return i.Detector == "orphaned-lock" })
	if i < 0 {
		t.Fatalf("no incident of that class: %+v", r.Incidents)
	}
	inc := r.Incidents[i]
	if inc.Severity != "page" || inc.Pages != 1 || inc.Paged == 0 || inc.Episodes != 1 || inc.Key != "feed:0" {
		t.Errorf("%+v: want one page about feed:0", inc)
	}
	if !slices.ContainsFunc(inc.Children, func(c lab.Child) bool { return c.Detector == "lock-convoy" }) {
		t.Errorf("the readers that wait are not part of it: %+v", inc.Children)
	}
	for _, f := range r.Findings {
		if f.Incident != inc.ID {
			t.Errorf("%s is part of incident %q, want %q", f.Detector, f.Incident, inc.ID)
		}
	}
}

func TestAQuietRunHasListsThatAreEmptyAndNotAbsent(t *testing.T) {
	r := run(t, load(t, "single-flight"), lab.Options{})
	if r.Findings == nil || r.Incidents == nil {
		t.Errorf("findings %v, incidents %v: as JSON they must be lists", r.Findings, r.Incidents)
	}
}

func TestARestartOfTheExporterLosesNoIncidentAndPagesNobodyTwice(t *testing.T) {
	for _, c := range []struct {
		name string
		due  bool
	}{
		{"hot-key-naive", true},
		{"look-aside-1000", true},
		// By the time the exporter is back, the lock's time is over.
		{"orphaned-lock", false},
	} {
		r := run(t, load(t, c.name), lab.Options{Restart: true})
		x := r.Restart
		if x == nil || x.Open == 0 || x.Up-x.Stopped != 3 {
			t.Fatalf("%s: restart %+v: want one of 3 s, with something open", c.name, x)
		}
		if x.Found != x.Due || (x.Due > 0) != c.due || x.Anew != 0 || x.DoublePages != 0 {
			t.Errorf("%s: restart %+v: want all that is due to be found again, and nothing twice", c.name, x)
		}
	}
}

func TestWithoutAnythingToInterruptThereIsNoRestart(t *testing.T) {
	sc := load(t, "single-flight")
	if r := run(t, sc, lab.Options{Restart: true}); lab.Restarts(sc) || r.Restart != nil {
		t.Errorf("there was one: %+v", r.Restart)
	}
}

func TestTroubleConcernsAFindingThatMayBeAboutIt(t *testing.T) {
	sc := &scenario.Scenario{Caches: map[string]scenario.Cache{"a": {Origin: "db"}, "b": {Origin: "db"}, "c": {Origin: "other"}}}
	whole, key := rig.Onset{Detector: "overload", Cache: "a"}, rig.Onset{Detector: "overload", Cache: "a", Key: "a:0"}
	for _, c := range []struct {
		name                 string
		o                    rig.Onset
		detector, cache, key string
		want                 bool
	}{
		{"of that cache", whole, "overload", "a", "", true},
		{"of another of the same origin", whole, "overload", "b", "", true},
		{"of another origin", whole, "overload", "c", "", false},
		{"of another kind", whole, "lock-lost", "a", "", false},
		{"of the whole cache, if the finding is about a key", whole, "overload", "a", "a:1", true},
		{"of a key, if the finding is about the whole cache", key, "overload", "a", "", true},
		{"of that key", key, "overload", "a", "a:0", true},
		{"of another key", key, "overload", "a", "a:1", false},
	} {
		if got := lab.Concerns(sc, &c.o, c.detector, c.cache, c.key); got != c.want {
			t.Errorf("trouble %s: %v, want %v", c.name, got, c.want)
		}
	}
}
