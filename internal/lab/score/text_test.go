package score_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/score"
)

var update = flag.Bool("update", false, "write testdata/score.txt anew")

func text(t *testing.T, s *score.Score) string {
	t.Helper()
	var b strings.Builder
	if err := s.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheTextIsAsItWas(t *testing.T) {
	golden := filepath.Join("testdata", "score.txt")
	got := text(t, score.Sum(mixed()))
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheTextKeepsTo120Columns(t *testing.T) {
	var out []score.Outcome
	for _, a := range scenario.DetectorNames() {
		for _, b := range scenario.DetectorNames() {
			for range 3 {
				out = append(out, score.Outcome{Scenario: strings.Repeat("long", 30), Seconds: 1e6, Episodes: []score.Episode{
					{Detector: a, Cache: "feed", Severity: "page", FoundAs: b, Found: true, Delay: 1e7, Open: 1e7, Clear: 1e7, Noise: 400},
					{Detector: a, Cache: "feed", Severity: "page", Why: "it never came"},
				}, Repeated: 400, Restart: &lab.Restart{Open: 400, Due: 400, Found: 400, DoublePages: 400},
					Classes: []score.ClassOutcome{{Detector: a, Real: 1, Recall: 1, Predicted: 1, Precision: 1, Alarms: 2, Flaps: 1}}})
			}
		}
	}
	got := text(t, score.Sum(out))
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 120 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(got, "\nand 2360 more\n") {
		t.Errorf("the text does not say how many problems it leaves out:\n%s", got)
	}
}
