package build_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"go.yaml.in/yaml/v3"

	"github.com/stampede-exporter/stampede-exporter/dashboards"
	"github.com/stampede-exporter/stampede-exporter/dashboards/build"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/internal/tooltest"
)

// shipped is what this package looks at in a dashboard's JSON.
type shipped struct {
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ UID string }
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
	Targets []struct {
		RefID        string `json:"refId"`
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
		Datasource   struct{ UID string }
	}
}

func overview(t *testing.T) shipped {
	t.Helper()
	var s shipped
	if err := json.Unmarshal(dashboards.Overview, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// graphs are the panels that show something, as opposed to headings.
func (s shipped) graphs() []panel {
	return slices.DeleteFunc(slices.Clone(s.Panels), func(p panel) bool { return p.Type == "row" })
}

func TestCommittedDashboardIsUpToDate(t *testing.T) {
	d, err := build.Overview()
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want)+"\n", string(dashboards.Overview)); diff != "" {
		t.Errorf("overview.json is out of date: run `make generate` (-want +got):\n%s", diff)
	}
}

func TestDashboardIsWhatItsSchemaAllows(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	var d dashboard.Dashboard
	err := d.UnmarshalJSONStrict(dashboards.Overview)
	// The SDK returns an empty list of errors where others return nil.
	var list cog.BuildErrors
	if errors.As(err, &list) && len(list) == 0 {
		return
	}
	if err != nil {
		t.Error(err)
	}
}

func TestEveryPanelExplainsItself(t *testing.T) {
	ids := map[int]string{}
	for _, p := range overview(t).Panels {
		if other, ok := ids[p.ID]; ok || p.ID == 0 {
			t.Errorf("panel %q has id %d, as has %q", p.Title, p.ID, other)
		}
		ids[p.ID] = p.Title
	}
	titles := map[string]bool{}
	for _, p := range overview(t).graphs() {
		if p.Title == "" || titles[p.Title] {
			t.Errorf("panel %d is titled %q: want a title of its own", p.ID, p.Title)
		}
		titles[p.Title] = true
		if !strings.HasSuffix(p.Description, ".") {
			t.Errorf("panel %q: want a description, got %q", p.Title, p.Description)
		}
		if p.FieldConfig.Defaults.Unit == "" {
			t.Errorf("panel %q has no unit", p.Title)
		}
		if p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q asks %q, want the data source the reader chose", p.Title, p.Datasource.UID)
		}
	}
}

func TestEveryQueryCanBeToldApart(t *testing.T) {
	for _, p := range overview(t).graphs() {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q asks nothing", p.Title)
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.RefID == "" || refs[q.RefID] {
				t.Errorf("panel %q has a query with the id %q: want one of its own", p.Title, q.RefID)
			}
			refs[q.RefID] = true
			if q.LegendFormat == "" {
				t.Errorf("panel %q: query %s has no legend", p.Title, q.RefID)
			}
			if q.Datasource.UID != "${datasource}" {
				t.Errorf("panel %q: query %s asks %q, want the data source the reader chose", p.Title, q.RefID, q.Datasource.UID)
			}
		}
	}
}

func TestPanelsFillTheirLines(t *testing.T) {
	const columns = 24
	line := map[int]int{} // width by y
	for _, p := range overview(t).graphs() {
		line[p.GridPos.Y] += p.GridPos.W
	}
	for y, width := range line {
		if width != columns {
			t.Errorf("the line at %d is %d columns wide, want %d", y, width, columns)
		}
	}
}

var (
	metricName = regexp.MustCompile(`\bstampede_[a-z_]+`)
	rateRange  = regexp.MustCompile(`(rate|increase|max_over_time)\([^[]*\[([^\]]*)\]`)
)

func TestQueriesUseMetricsThatExist(t *testing.T) {
	var known []string
	for _, m := range append(semconv.Application(), semconv.Exporter()...) {
		known = append(known, m.Name)
		if m.Kind == semconv.Histogram {
			known = append(known, m.Name+"_bucket")
		}
	}
	names := metricName.FindAllString(string(dashboards.Overview), -1)
	if len(names) == 0 {
		t.Fatal("no metric in overview.json")
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			t.Errorf("%s is no metric", name)
		}
	}
}

func TestRangesFollowTheScrapeInterval(t *testing.T) {
	for _, p := range overview(t).graphs() {
		for _, q := range p.Targets {
			for _, m := range rateRange.FindAllStringSubmatch(q.Expr, -1) {
				if m[2] != "$__rate_interval" {
					t.Errorf("panel %q: %s over %s, want $__rate_interval", p.Title, m[1], m[2])
				}
			}
		}
	}
}

// TestPrometheusAcceptsTheQueries has Prometheus look at every query as if it
// were a rule.
func TestPrometheusAcceptsTheQueries(t *testing.T) {
	fill := strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$cache", ".*")
	var rules []map[string]string
	for _, p := range overview(t).graphs() {
		for _, q := range p.Targets {
			rules = append(rules, map[string]string{"record": "panel:query", "expr": fill.Replace(q.Expr)})
		}
	}
	b, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tooltest.Path(t, "promtool"), "check", "rules", "--lint=none", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
