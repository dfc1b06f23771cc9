package score_test

import (
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/score"
)

func TestAGateSaysAllThatItDoesNotLetThrough(t *testing.T) {
	s := score.Sum(mixed()) // 20 of 21 pages found, one false, one twice
	for _, c := range []struct {
		name string
		s    *score.Score
		gate score.Gate
		want string
	}{
		{"nothing, if it asks for no more than there is", s, score.Gate{FalsePages: 1, PageRecall: 0.95, DoublePages: 1}, ""},
		{"false pages", s, score.Gate{PageRecall: 0.95, DoublePages: 1}, "1 false pages: want at most 0"},
		{"pages that did not come, and those that came twice", s, score.Gate{FalsePages: 1, PageRecall: 0.96},
			"20 of 21 expected pages came, which is 0.952 of them: want at least 0.96\n1 pages repeated after a restart: want at most 0"},
		{"no recall where no page is expected", score.Sum([]score.Outcome{{Scenario: "quiet", Quiet: true, Seconds: 60}}), score.Gate{PageRecall: 0.95}, ""},
		{"a score of nothing", score.Sum(nil), score.Gate{}, "nothing was run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := c.s.Check(c.gate); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
