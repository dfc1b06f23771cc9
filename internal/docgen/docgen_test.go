package docgen_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/docgen"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

const root = "../.."

func TestCommittedDocumentsAreUpToDate(t *testing.T) {
	docs, err := docgen.All(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range docs {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Errorf("%v: run `make generate`", err)
			continue
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is out of date: run `make generate` (-want +got):\n%s", name, diff)
		}
	}
}

func TestMetricsNamesEveryMetricAndEvent(t *testing.T) {
	doc, err := docgen.Metrics(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{semconv.EventWindow, semconv.EventVitals, semconv.AttrKeyID, semconv.AttrClosing}
	for _, m := range append(semconv.Application(), semconv.Exporter()...) {
		names = append(names, m.Name, m.OTel())
	}
	for _, n := range names {
		if !strings.Contains(string(doc), "`"+n+"`") {
			t.Errorf("docs/metrics.md does not mention %s", n)
		}
	}
	if regexp.MustCompile(`\bAttr[A-Z]`).Match(doc) {
		t.Error("docs/metrics.md calls an attribute by its Go name")
	}
}

func TestMetricsRefusesSourceItCannotRead(t *testing.T) {
	const file = "internal/semconv/attributes.go"
	tests := []struct {
		name string
		root fstest.MapFS
	}{
		{"the file is missing", fstest.MapFS{}},
		{"the file is not Go", fstest.MapFS{file: {Data: []byte("packag")}}},
		{"a constant is computed", fstest.MapFS{file: {Data: []byte("package p\nconst (\n\tA = 1 + 1\n)\n")}}},
		{"a constant is no string", fstest.MapFS{file: {Data: []byte("package p\nconst (\n\tA = 1\n)\n")}}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if doc, err := docgen.Metrics(tc.root); err == nil {
				t.Errorf("no error, and a document of %d bytes", len(doc))
			}
		})
	}
}

func TestDetectorsHasOneSectionADetectorWithAllItSays(t *testing.T) {
	got := string(docgen.Detectors([]detectors.Doc{
		{ID: "a-thing", Title: "A thing.", Meaning: "It\n\tmeans.", Signal: "Sees.", Condition: "Fires.", Why: "Because.", Traps: "Not this.", Advice: "Do.", MayPage: true},
		{ID: "b-thing", Title: "B thing"},
	}, []detectors.Relation{
		{Parent: "a-thing", Children: []string{"b-thing", "c-thing"}, Scope: detectors.SameOrigin, Lead: 90 * time.Second, Lesser: true, Why: "a makes b"},
		{Parent: "b-thing", Children: []string{"b-thing"}, Scope: detectors.SameKey, Lead: time.Minute, Why: "b is b"},
		{Parent: "c-thing", Children: []string{"b-thing"}, Scope: detectors.SameCache, Lead: math.MaxInt64, Why: "b becomes c"},
		{Parent: "a-thing", Children: []string{"d-thing"}, Scope: detectors.Apart, Why: "d is not a"},
		{Parent: "e-thing", Scope: detectors.Apart, Why: "e is e"},
	}))
	for _, want := range []string{
		"\n## a-thing\n\n**A thing.** May page. [Runbook](../alerts/runbooks/a-thing.md).\n",
		"**What it means.** It means.\n",
		"Sees.", "Fires.", "Because.", "Not this.", "Do.",
		"\n## b-thing\n\n**B thing.** [Runbook]",
		"| [a-thing](#a-thing) | [b-thing](#b-thing), [c-thing](#c-thing) | origin | 1.5 min before; any severity | a makes b |\n",
		"| [b-thing](#b-thing) | [b-thing](#b-thing) | key | 1 min apart | b is b |\n",
		"| [c-thing](#c-thing) | [b-thing](#b-thing) | cache | ever before | b becomes c |\n",
		"| [a-thing](#a-thing) | [d-thing](#d-thing) | d is not a |\n",
		"| [e-thing](#e-thing) | all that no other row names with it | e is e |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}
