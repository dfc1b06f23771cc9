package alerts_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/stampede-exporter/stampede-exporter/alerts"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/internal/tooltest"
)

func rules(f alerts.File) []alerts.Rule {
	var out []alerts.Rule
	for _, g := range f.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

func TestCommittedRulesAreUpToDate(t *testing.T) {
	var got alerts.File
	d := yaml.NewDecoder(bytes.NewReader(alerts.YAML))
	d.KnownFields(true)
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(alerts.Build(alerts.Options{}), got); diff != "" {
		t.Errorf("stampede.yaml is out of date: run `make generate` (-want +got):\n%s", diff)
	}
}

// promtool runs the real promtool and fails t with what it says if it fails.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(tooltest.Path(t, "promtool"), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestPrometheusAcceptsTheRules(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", "stampede.yaml")
}

func TestPrometheusEvaluatesTheRulesAsTheirTestsSay(t *testing.T) {
	for _, file := range testFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			promtool(t, "test", "rules", file)
		})
	}
}

func testFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("tests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test of rules: %v", err)
	}
	return files
}

// testFile is what this package needs of a file of promtool's tests.
type testFile struct {
	FuzzyCompare bool `yaml:"fuzzy_compare"`
	Tests        []struct {
		Name   string
		Alerts []struct {
			Name   string     `yaml:"alertname"`
			Alerts []expected `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

type expected struct {
	Labels map[string]string `yaml:"exp_labels"`
}

func TestEveryRuleIsTestedToFireToStayQuietAndToResolve(t *testing.T) {
	type alert struct{ name, severity string }
	fires, resolves, quiet := map[alert]bool{}, map[string]bool{}, map[string]bool{}
	for _, file := range testFiles(t) {
		f := decode(t, file)
		if !f.FuzzyCompare {
			t.Errorf("%s: want fuzzy_compare: true, as sums of floats are not exact", file)
		}
		for _, c := range f.Tests {
			fired := map[string]bool{}
			for _, a := range c.Alerts {
				for _, e := range a.Alerts {
					fires[alert{a.Name, e.Labels["severity"]}] = true
				}
				if len(a.Alerts) == 0 {
					quiet[a.Name] = true
					resolves[a.Name] = resolves[a.Name] || fired[a.Name]
				}
				fired[a.Name] = len(a.Alerts) > 0
			}
		}
	}
	for _, r := range rules(alerts.Build(alerts.Options{})) {
		severities := []string{r.Labels["severity"]}
		if severities[0] == "" { // that of the series
			severities = []string{"page", "ticket"}
		}
		for _, s := range severities {
			if !fires[alert{r.Alert, s}] {
				t.Errorf("%s: no test in which it fires with severity %s", r.Alert, s)
			}
		}
		if !quiet[r.Alert] || !resolves[r.Alert] {
			t.Errorf("%s: tested to stay quiet: %t, to resolve: %t; want both", r.Alert, quiet[r.Alert], resolves[r.Alert])
		}
	}
}

func decode(t *testing.T, file string) testFile {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var f testFile
	if err := yaml.Unmarshal(b, &f); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return f
}

func TestRulesHaveWhatPeopleAndRoutesNeed(t *testing.T) {
	for _, r := range rules(alerts.Build(alerts.Options{Runbooks: "https://wiki.example/"})) {
		for _, name := range []string{"summary", "description"} {
			if r.Annotations[name] == "" {
				t.Errorf("%s has no annotation %s", r.Alert, name)
			}
		}
		file, ok := strings.CutPrefix(r.Annotations["runbook_url"], "https://wiki.example/")
		if _, err := os.Stat(filepath.Join("runbooks", file)); !ok || err != nil {
			t.Errorf("%s: runbook_url is %q: want a file of runbooks under the URL given", r.Alert, r.Annotations["runbook_url"])
		}
		// An alert whose labels change with its value is a new alert each time.
		for name, value := range r.Labels {
			if strings.Contains(value, "{{") {
				t.Errorf("%s: the label %s is a template: %s", r.Alert, name, value)
			}
		}
	}
}

func TestSeverityOfAnIncidentIsLeftAlone(t *testing.T) {
	for _, r := range rules(alerts.Build(alerts.Options{})) {
		if strings.Contains(r.Expr, semconv.Incidents.Name) && len(r.Labels) > 0 {
			t.Errorf("%s sets labels %v: they would differ from those of the alert the exporter pushes", r.Alert, r.Labels)
		}
	}
}

func TestRulesUseMetricsThatExist(t *testing.T) {
	var known []string
	for _, m := range append(semconv.Application(), semconv.Exporter()...) {
		known = append(known, m.Name)
	}
	for _, r := range rules(alerts.Build(alerts.Options{})) {
		for _, text := range []string{r.Expr, r.Annotations["summary"], r.Annotations["description"]} {
			for _, name := range metricNames(text) {
				if !slices.Contains(known, name) {
					t.Errorf("%s uses %s, which is no metric", r.Alert, name)
				}
			}
		}
	}
}

var metricName = regexp.MustCompile(`\bstampede_[a-z_]+`)

// metricNames returns the names of metrics in text, a histogram's without the
// ending of its parts.
func metricNames(text string) []string {
	names := metricName.FindAllString(text, -1)
	for i, n := range names {
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			n = strings.TrimSuffix(n, part)
		}
		names[i] = n
	}
	return names
}

func TestOptionsReachTheRules(t *testing.T) {
	f := alerts.Build(alerts.Options{Job: `watch"dog`})
	found := false
	for _, r := range rules(f) {
		found = found || strings.Contains(r.Expr, `up{job="watch\"dog"}`)
	}
	if !found {
		t.Error("no rule asks for the job given, quoted")
	}
}
