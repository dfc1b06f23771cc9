package archtest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/alerts"
	"github.com/stampede-exporter/stampede-exporter/dashboards"
	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

func docs(t *testing.T) []detectors.Doc {
	t.Helper()
	list, err := detectors.All(detectors.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var out []detectors.Doc
	for _, d := range list {
		out = append(out, d.Doc())
	}
	if len(out) == 0 {
		t.Fatal("there is no detector")
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestEveryDetectorSaysWhatItDoes(t *testing.T) {
	id := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, d := range docs(t) {
		if !id.MatchString(d.ID) {
			t.Errorf("the id %q is not kebab-case", d.ID)
		}
		for name, text := range map[string]string{
			"Title": d.Title, "Meaning": d.Meaning, "Signal": d.Signal, "Condition": d.Condition,
			"Why": d.Why, "Traps": d.Traps, "Advice": d.Advice,
		} {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s: its Doc has no %s", d.ID, name)
			}
		}
		read(t, filepath.Join("detectors", strings.ReplaceAll(d.ID, "-", "_")+".go"))
	}
}

func TestDetectorsAreListedInOrderAndOnce(t *testing.T) {
	var got []string
	for _, d := range docs(t) {
		got = append(got, d.ID)
	}
	if want := slices.Compact(slices.Sorted(slices.Values(got))); !slices.Equal(got, want) {
		t.Errorf("detectors.All lists %q, want %q", got, want)
	}
}

func TestEveryDetectorHasADocumentARunbookAndAPanel(t *testing.T) {
	document := read(t, "docs/detectors.md")
	for _, d := range docs(t) {
		if !strings.Contains(document, "\n## "+d.ID+"\n") {
			t.Errorf("%s has no section in docs/detectors.md", d.ID)
		}
		runbook := read(t, "alerts/runbooks/"+d.ID+".md")
		if link := "docs/detectors.md#" + d.ID; !strings.Contains(runbook, link) {
			t.Errorf("the runbook of %s does not link to %s", d.ID, link)
		}
		// In JSON, the quotes of a selector are escaped.
		selector := fmt.Sprintf(`%s=\"%s\"`, semconv.LabelDetector, d.ID)
		if !strings.Contains(string(dashboards.Overview), selector) {
			t.Errorf("%s has no panel that shows its incidents", d.ID)
		}
	}
}

func TestEveryDetectorHasAnAlertAndEveryAlertOfOneADetector(t *testing.T) {
	selector := regexp.MustCompile(semconv.LabelDetector + `="([^"]*)"`)
	got := map[string]string{} // the alert, by detector
	for _, g := range alerts.Build(alerts.Options{}).Groups {
		for _, r := range g.Rules {
			if m := selector.FindStringSubmatch(r.Expr); m != nil {
				got[m[1]] = r.Alert
			}
		}
	}
	want := map[string]string{}
	for _, d := range docs(t) {
		want[d.ID] = semconv.AlertName(d.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alerts by detector (-want +got):\n%s", diff)
	}
}

func TestEveryRunbookAndPanelOfADetectorIsOfOneThatExists(t *testing.T) {
	known := map[string]bool{}
	for _, d := range docs(t) {
		known[d.ID] = true
	}
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile(semconv.LabelDetector+`=\\"([^"\\]*)\\"`).FindAllStringSubmatch(string(dashboards.Overview), -1) {
		shown[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^## ([a-z-]+)$`).FindAllStringSubmatch(read(t, "docs/detectors.md"), -1) {
		shown[m[1]] = true
	}
	for _, id := range slices.Sorted(maps.Keys(shown)) {
		if !known[id] {
			t.Errorf("%s is shown, and no detector", id)
		}
	}
}
