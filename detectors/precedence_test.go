package detectors_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

// ids are those of all detectors: a public interface.
var ids = []string{
	"budget-exceeded", "coalescing-bypass", "delta-poisoning", "early-refresh-excess", "early-refresh-ineffective",
	"expiry-forecast", "hot-key-expiry", "lock-convoy", "lock-lost", "mass-invalidation", "metastable-loop",
	"orphaned-lock", "overload", "penetration", "process-local-coalescing", "retry-storm", "stale-overwrite",
	"synchronized-expiry", "underdosed-jitter", "vulnerable",
}

func TestPrecedenceListsEveryDetectorOnce(t *testing.T) {
	got := detectors.Precedence()
	slices.Sort(got)
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, doc := range detectors.Docs() {
		if !slices.Contains(got, doc.ID) {
			t.Errorf("%s has no precedence", doc.ID)
		}
	}
}

// pair is two detectors, the one that comes first by name first.
type pair struct{ a, b string }

func pairOf(a, b string) pair {
	if a > b {
		a, b = b, a
	}
	return pair{a, b}
}

func TestEveryTwoDetectorsAreRelatedInOneWay(t *testing.T) {
	related, apart := map[pair]int{}, map[pair]bool{}
	for _, r := range detectors.Relations() {
		children := r.Children
		if len(children) == 0 && r.Scope == detectors.Apart {
			children = ids
		}
		for _, c := range children {
			switch {
			case c == r.Parent:
			case r.Scope == detectors.Apart:
				apart[pairOf(r.Parent, c)] = true
			default:
				related[pairOf(r.Parent, c)]++
			}
		}
	}
	for i, a := range ids {
		for _, b := range ids[:i] {
			switch n := related[pairOf(a, b)]; {
			case n > 1:
				t.Errorf("%s and %s are related %d times", a, b, n)
			case n == 0 && !apart[pairOf(a, b)]:
				t.Errorf("nothing says how %s and %s go together", a, b)
			}
		}
	}
	// A row that names two as apart must not be overruled by another.
	for _, r := range detectors.Relations() {
		for _, c := range r.Children {
			if r.Scope == detectors.Apart && related[pairOf(r.Parent, c)] > 0 {
				t.Errorf("%s and %s are both apart and related", r.Parent, c)
			}
		}
	}
}

func TestNoDetectorExplainsOneThatComesBeforeIt(t *testing.T) {
	order := detectors.Precedence()
	for _, r := range detectors.Relations() {
		parent := slices.Index(order, r.Parent)
		if parent < 0 {
			t.Errorf("%s is no detector", r.Parent)
		}
		for _, c := range r.Children {
			child := slices.Index(order, c)
			if child < 0 {
				t.Errorf("%s is no detector", c)
			}
			if r.Scope != detectors.Apart && child <= parent && c != r.Parent {
				t.Errorf("%s explains %s, which comes before it", r.Parent, c)
			}
		}
	}
}

func TestEveryRelationIsWhole(t *testing.T) {
	for _, r := range detectors.Relations() {
		switch related := r.Scope != detectors.Apart; {
		case r.Why == "" || strings.HasSuffix(r.Why, "."):
			t.Errorf("%s and %s: the reason is %q, want half a sentence", r.Parent, r.Children, r.Why)
		case related && (r.Lead <= 0 || len(r.Children) == 0):
			t.Errorf("%s and %s: the lead is %v, want one", r.Parent, r.Children, r.Lead)
		case !related && (r.Lead != 0 || r.Lesser):
			t.Errorf("%s and %s are apart, and yet one leads", r.Parent, r.Children)
		}
	}
}

// What the sources say of root causes, written down once more.
func TestPrecedenceOfRootCauses(t *testing.T) {
	explains := func(parent, child string) bool {
		return slices.ContainsFunc(detectors.Relations(), func(r detectors.Relation) bool {
			return r.Parent == parent && r.Scope != detectors.Apart && slices.Contains(r.Children, child)
		})
	}
	chain := []string{"metastable-loop", "mass-invalidation", "penetration", "synchronized-expiry", "hot-key-expiry"}
	for i, parent := range chain {
		for _, child := range chain[i+1:] {
			if !explains(parent, child) {
				t.Errorf("%s does not explain %s", parent, child)
			}
		}
	}
}
