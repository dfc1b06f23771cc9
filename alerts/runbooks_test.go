package alerts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/stampede-exporter/stampede-exporter/alerts"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// sections are what somebody who was woken needs, in the order they need it.
var sections = []string{"What it means", "First five minutes", "How to confirm", "Mitigations, in order", "How to verify"}

var (
	heading = regexp.MustCompile(`(?m)^## (.+)$`)
	query   = regexp.MustCompile("(?s)```promql\n(.*?)```")
	link    = regexp.MustCompile(`\]\(([^)#:]+\.md)(#[a-z-]+)?\)`)
)

func runbooks(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("runbooks/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no runbook: %v", err)
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[f] = string(b)
	}
	return out
}

func TestRunbooksHaveTheSectionsInOrder(t *testing.T) {
	for file, text := range runbooks(t) {
		var got []string
		for _, m := range heading.FindAllStringSubmatch(text, -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, sections) {
			t.Errorf("%s has sections %q, want %q", file, got, sections)
		}
	}
}

func TestEveryRunbookBelongsToAnAlertAndNamesIt(t *testing.T) {
	alert := map[string]string{}
	for _, r := range rules(alerts.Build(alerts.Options{})) {
		alert[filepath.Join("runbooks", filepath.Base(r.Annotations["runbook_url"]))] = r.Alert
	}
	for file, text := range runbooks(t) {
		title, _, _ := strings.Cut(text, "\n")
		if name := alert[file]; name == "" || !strings.HasSuffix(title, "("+name+")") {
			t.Errorf("%s is titled %q, want a title that ends in the name of its alert, %q", file, title, name)
		}
	}
}

func TestRunbooksNameMetricsAndFilesThatExist(t *testing.T) {
	var known []string
	for _, m := range append(semconv.Application(), semconv.Exporter()...) {
		known = append(known, m.Name)
	}
	for file, text := range runbooks(t) {
		for _, name := range metricNames(text) {
			if !slices.Contains(known, name) {
				t.Errorf("%s names %s, which is no metric", file, name)
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
		}
	}
}

// TestQueriesOfRunbooksParse has Prometheus look at every query as if it were a
// rule: a typing error found at night costs minutes.
func TestQueriesOfRunbooksParse(t *testing.T) {
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	type group struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	}
	var groups []group
	for file, text := range runbooks(t) {
		g := group{Name: file}
		for _, m := range query.FindAllStringSubmatch(text, -1) {
			g.Rules = append(g.Rules, rule{"runbook:query", m[1]})
		}
		if len(g.Rules) == 0 {
			t.Errorf("%s has no query to confirm with", file)
		}
		groups = append(groups, g)
	}
	b, err := yaml.Marshal(map[string]any{"groups": groups})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint=none", file)
}
