package score_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/score"
)

func TestThirtyQuietDaysShowAtMostOneFalsePageInTen(t *testing.T) {
	s := score.Sum([]score.Outcome{{Scenario: "quiet", Seconds: 30 * 86400, Quiet: true}})
	if got := *s.QuietFalsePages.Upper; math.Abs(got-0.0999) > 0.0001 {
		t.Errorf("the bound is %v a day, want 0.0999", got)
	}
	if s.Total.Recall != nil || s.Total.Precision != nil || s.Pages.Precision != nil {
		t.Errorf("shares of nothing: %+v", s)
	}
}

func TestOnlyFalsePagesOfQuietRunsCountForQuietRuns(t *testing.T) {
	s := score.Sum([]score.Outcome{
		{Scenario: "quiet", Seconds: 43200, Quiet: true, False: []score.Alarm{{Detector: "overload", Page: true}, {Detector: "overload"}}},
		{Scenario: "loud", Seconds: 43200, False: []score.Alarm{{Detector: "overload", Page: true}}},
	})
	if s.FalsePages.Events != 2 || s.FalsePages.Days != 1 || *s.FalsePages.PerDay != 2 {
		t.Errorf("all runs: %+v", s.FalsePages)
	}
	if s.QuietFalsePages.Events != 1 || s.QuietFalsePages.Days != 0.5 || *s.QuietFalsePages.PerDay != 2 {
		t.Errorf("quiet runs: %+v", s.QuietFalsePages)
	}
}

// mixed is a bit of everything.
func mixed() []score.Outcome {
	var out []score.Outcome
	for i := range 20 {
		out = append(out, score.Outcome{Scenario: "loud", Seed: uint64(1001 + i), Seconds: 3600, Episodes: []score.Episode{{
			Detector: "hot-key-expiry", Cache: "feed", Severity: "page", Found: true, FoundAs: "hot-key-expiry",
			Delay: float64(i + 1), Open: float64(10 * (i + 1)), Clear: float64(2 * (i + 1)), Noise: 1,
		}}, Classes: []score.ClassOutcome{
			{Detector: "hot-key-expiry", Real: 2, Recall: 1.5, Predicted: 1, Precision: 0.25, Alarms: 2, Flaps: 1},
		}})
	}
	return append(out,
		score.Outcome{Scenario: "loud", Seed: 1021, Shift: "slow", Seconds: 3600,
			Episodes: []score.Episode{{Detector: "hot-key-expiry", Cache: "feed", Severity: "page", FoundAs: "synchronized-expiry", Delay: -1, Open: -1, Clear: -1, Why: "it never came"}},
			Restart:  &lab.Restart{Stopped: 67, Open: 3, Due: 2, Found: 1, Missing: []string{"overload on feed"}, Delays: []float64{4}, DoublePages: 1},
			Repeated: 2,
			False:    []score.Alarm{{Detector: "synchronized-expiry", Cache: "feed", Page: true, At: 7, Confused: true, Why: "no such trouble had begun"}},
		},
		score.Outcome{Scenario: "knife-edge", Seed: 1001, Seconds: 3600,
			Episodes: []score.Episode{
				{Detector: "metastable-loop", Cache: "feed", Severity: "page", Void: true, Delay: -1, Open: -1, Clear: -1},
				{Detector: "overload", Cache: "feed", Severity: "ticket", Found: true, FoundAs: "overload", Delay: -1, Open: -1, Clear: -1, Early: true},
				{Detector: "lock-convoy", Cache: "feed", Severity: "ticket", Delay: -1, Open: -1, Clear: -1, Why: "it never came"},
			},
			False:   []score.Alarm{{Detector: "lock-lost", Cache: "feed", At: 9, Why: "it is forbidden"}},
			Unasked: []score.Alarm{{Detector: "retry-storm", Cache: "feed", Page: true}},
			Figures: []string{"truth reads in [1, 2]: it is 3"},
		})
}

func TestSumCountsEveryEpisodeOnce(t *testing.T) {
	s := score.Sum(mixed())
	byName := map[string]score.Class{}
	for _, c := range s.Classes {
		byName[c.Detector] = c
	}
	want := score.Class{
		Detector: "hot-key-expiry", Expected: 21, Found: 20, Missed: 1, Noise: 20,
		Precision: new(1.0), Recall: new(20.0 / 21), RecallLower: new(score.ShareLower(20, 21)),
		Delay:          &score.Spread{Count: 20, P50: 10, P95: 19, Max: 20},
		Open:           &score.Spread{Count: 20, P50: 100, P95: 190, Max: 200},
		Clear:          &score.Spread{Count: 20, P50: 20, P95: 38, Max: 40},
		RangePrecision: new(0.25), RangeRecall: new(0.75), Flaps: 20, FlapsPerIncident: new(1.0),
	}
	if diff := cmp.Diff(want, byName["hot-key-expiry"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := byName["metastable-loop"]; c.Expected != 0 || c.Void != 1 || c.Recall != nil {
		t.Errorf("what never began counts: %+v", c)
	}
	if c := byName["overload"]; c.StillOpen != 1 || c.ClearedEarly != 1 || c.Delay != nil || c.Open != nil || c.Clear != nil {
		t.Errorf("what held until the end has no time to clear: %+v", c)
	}
	if s.Total.Expected != 23 || s.Total.Found != 21 || s.Total.FalsePages != 1 || s.Total.FalseTickets != 1 || s.Total.Unasked != 1 {
		t.Errorf("total: %+v", s.Total)
	}
	cells := []score.Cell{
		{"hot-key-expiry", "hot-key-expiry", 20}, {"hot-key-expiry", "synchronized-expiry", 1},
		{"lock-convoy", "none", 1}, {"none", "lock-lost", 1}, {"overload", "overload", 1},
	}
	if diff := cmp.Diff(cells, s.Confusion); diff != "" {
		t.Errorf("confusion (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(score.PageScore{Expected: 21, Found: 20, False: 1, Precision: new(20.0 / 21), Recall: new(20.0 / 21), RecallLower: new(score.ShareLower(20, 21)), Repeated: 2}, s.Pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	restart := &score.RestartScore{
		Runs: 1, Open: 3, Due: 2, Found: 1, Share: new(0.5), Lower: new(score.ShareLower(1, 2)),
		Delay: &score.Spread{Count: 1, P50: 4, P95: 4, Max: 4}, DoublePages: 1,
	}
	if diff := cmp.Diff(restart, s.Restart); diff != "" {
		t.Errorf("restarts (-want +got):\n%s", diff)
	}
	var kinds []string
	for _, p := range s.Problems {
		kinds = append(kinds, p.Kind)
	}
	if diff := cmp.Diff([]string{"missed", "false page", "not resumed", "double page", "void", "missed", "false ticket", "figure"}, kinds); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestNothingToSumIsNoTrouble(t *testing.T) {
	s := score.Sum(nil)
	js, err := json.Marshal(s)
	if err != nil || strings.Contains(string(js), "null") {
		t.Errorf("%s, %v", js, err)
	}
	var text strings.Builder
	if err := s.WriteText(&text); err != nil || !strings.Contains(text.String(), "nothing was run") {
		t.Errorf("%v:\n%s", err, &text)
	}
}
