package semconv_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

func all() []semconv.Metric { return slices.Concat(semconv.Application(), semconv.Exporter()) }

func TestNoTwoMetricsShareAName(t *testing.T) {
	for what, name := range map[string]func(semconv.Metric) string{
		"Prometheus name":    func(m semconv.Metric) string { return m.Name },
		"OpenTelemetry name": semconv.Metric.OTel,
		"help":               func(m semconv.Metric) string { return m.Help },
	} {
		seen := map[string]string{}
		for _, m := range all() {
			if other, ok := seen[name(m)]; ok {
				t.Errorf("%s and %s share the %s %q", other, m.Name, what, name(m))
			}
			seen[name(m)] = m.Name
		}
	}
}

func TestMetricsKeepTheConventions(t *testing.T) {
	name := regexp.MustCompile(`^stampede_[a-z]+(_[a-z]+)*$`)
	otel := regexp.MustCompile(`^stampede\.[a-z]+([_.][a-z]+)*$`)
	unit := regexp.MustCompile(`^(s|1|\{[a-z]+\}(/s)?)$`)
	for _, m := range all() {
		seconds := strings.HasSuffix(strings.TrimSuffix(m.Name, "_total"), "_seconds")
		broken := map[string]bool{
			"its name is lower-case words":                   !name.MatchString(m.Name),
			"its OpenTelemetry name is dotted, without unit": !otel.MatchString(m.OTel()),
			"its kind is known":                              !slices.Contains([]semconv.Kind{semconv.Counter, semconv.Gauge, semconv.Histogram}, m.Kind),
			"a counter, and nothing else, ends in _total":    strings.HasSuffix(m.Name, "_total") != (m.Kind == semconv.Counter),
			"its unit is one of UCUM that we use":            !unit.MatchString(m.Unit),
			"it ends in _seconds if that is its unit":        seconds != (m.Unit == "s"),
			"a histogram measures seconds":                   m.Kind == semconv.Histogram && m.Unit != "s",
			"a ratio says so":                                strings.HasSuffix(m.Name, "_ratio") && m.Unit != "1",
			"its help is a sentence":                         !strings.HasSuffix(m.Help, ".") || strings.ToUpper(m.Help[:1]) != m.Help[:1],
		}
		for rule, is := range broken {
			if is {
				t.Errorf("%s (%s, unit %s): want that %s", m.Name, m.Kind, m.Unit, rule)
			}
		}
	}
}

func TestMetricsPassPromlint(t *testing.T) {
	for _, m := range all() {
		problems, err := promlint.New(strings.NewReader(exposition(m))).Lint()
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// exposition is m with one empty series, as Prometheus would scrape it.
func exposition(m semconv.Metric) string {
	labels := make([]string, 0, len(m.Labels))
	for _, l := range m.Labels {
		labels = append(labels, l+`=""`)
	}
	set := "{" + strings.Join(labels, ",") + "}"
	head := fmt.Sprintf("# HELP %s %s\n# TYPE %[1]s %[3]s\n", m.Name, m.Help, m.Kind)
	if m.Kind != semconv.Histogram {
		return head + m.Name + set + " 0\n"
	}
	inf := "{" + strings.Join(append(labels, `le="+Inf"`), ",") + "}"
	return head + m.Name + "_bucket" + inf + " 0\n" + m.Name + "_sum" + set + " 0\n" + m.Name + "_count" + set + " 0\n"
}

func TestLabelsAreBoundedAndOrdinary(t *testing.T) {
	known := values(t, "metrics.go", "Label")
	for _, m := range all() {
		seen := map[string]bool{}
		for _, l := range m.Labels {
			if !slices.Contains(known, l) {
				t.Errorf("%s has the label %q, which has no constant", m.Name, l)
			}
			if seen[l] {
				t.Errorf("%s has the label %q twice", m.Name, l)
			}
			seen[l] = true
		}
		// A key has millions of values, and may be somebody's name.
		for _, forbidden := range []string{"key", "key_id", "key_text"} {
			if seen[forbidden] {
				t.Errorf("%s has the label %q: keys are never labels", m.Name, forbidden)
			}
		}
	}
}

func TestEveryMetricIsListedOnce(t *testing.T) {
	var declared, listed []string
	for _, spec := range specs(t, "metrics.go", token.VAR) {
		if lit, ok := spec.Values[0].(*ast.CompositeLit); ok && fmt.Sprint(lit.Type) == "Metric" {
			declared = append(declared, text(t, lit.Elts[0]))
		}
	}
	for _, m := range all() {
		listed = append(listed, m.Name)
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if diff := cmp.Diff(declared, listed); diff != "" {
		t.Errorf("Application and Exporter list other metrics than are declared (-declared +listed):\n%s", diff)
	}
}

func TestAttributesAreUniqueAndNamespaced(t *testing.T) {
	name := regexp.MustCompile(`^(stampede|cache)(\.[a-z]+(_[a-z]+)*)+$`)
	seen := map[string]bool{}
	for _, v := range append(values(t, "attributes.go", "Attr"), values(t, "attributes.go", "Event")...) {
		if !name.MatchString(v) {
			t.Errorf("%q is not dotted lower-case words under stampede", v)
		}
		if seen[v] {
			t.Errorf("%q is used twice", v)
		}
		seen[v] = true
	}
	if len(seen) == 0 {
		t.Error("no attribute found")
	}
}

// values returns the values of the constants in file whose names start with
// prefix.
func values(t *testing.T, file, prefix string) []string {
	t.Helper()
	var out []string
	for _, spec := range specs(t, file, token.CONST) {
		for i, n := range spec.Names {
			if strings.HasPrefix(n.Name, prefix) {
				out = append(out, text(t, spec.Values[i]))
			}
		}
	}
	return out
}

// specs returns what is declared in file with tok.
func specs(t *testing.T, file string, tok token.Token) []*ast.ValueSpec {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []*ast.ValueSpec
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == tok {
			for _, s := range g.Specs {
				out = append(out, s.(*ast.ValueSpec))
			}
		}
	}
	return out
}

func text(t *testing.T, e ast.Expr) string {
	t.Helper()
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		t.Fatalf("%T is not a literal", e)
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAlertName(t *testing.T) {
	for id, want := range map[string]string{
		"hot-key-expiry": "StampedeHotKeyExpiry",
		"convoy":         "StampedeConvoy",
		"a--b-":          "StampedeAB",
	} {
		if got := semconv.AlertName(id); got != want {
			t.Errorf("AlertName(%q) is %q, want %q", id, got, want)
		}
	}
}
