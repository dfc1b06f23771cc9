package score_test

import (
	"math"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/score"
)

// held is a page that held so long.
func held(from, to float64) lab.Finding {
	return with(finding("overload", "page", from), func(f *lab.Finding) { f.Cleared = to })
}

func real(seconds ...time.Duration) []rig.Onset {
	var out []rig.Onset
	for i := 0; i < len(seconds); i += 2 {
		out = append(out, stretch("overload", seconds[i]*time.Second, seconds[i+1]*time.Second))
	}
	return out
}

// The wanted values are what the definitions of the paper come to by hand, with
// alpha 1/2: recall is 1/2 + 1/2 * share/overlapping, precision share/overlapping.
func TestRangesAreHeldAgainstEachOther(t *testing.T) {
	const expect = "expect: [{detector: overload, cache: a, severity: page}]\n"
	for _, c := range []struct {
		name              string
		onsets            []rig.Onset
		findings          []lab.Finding
		recall, precision float64 // sums
		real, predicted   int
	}{
		{"all of it and nothing else", real(100, 200), []lab.Finding{held(100, 200)}, 1, 1, 1, 1},
		{"the second half of it", real(100, 200), []lab.Finding{held(150, 200)}, 0.75, 1, 1, 1},
		{"half of it, and as long after", real(100, 200), []lab.Finding{held(150, 250)}, 0.75, 0.5, 1, 1},
		{"none of it", real(100, 200), []lab.Finding{held(200, 300)}, 0, 0, 1, 1},
		{"nothing at all", real(100, 200), nil, 0, 0, 1, 0},
		{"in two pieces, each half of it", real(100, 200), []lab.Finding{held(100, 150), held(150, 200)}, 1, 2, 1, 2},
		{"in two pieces with a gap", real(100, 200), []lab.Finding{held(100, 140), held(160, 200)}, 0.5 + 0.5*0.8/2, 2, 1, 2},
		{"two at one stretch", real(100, 200, 300, 400), []lab.Finding{held(100, 400)}, 2, 200.0 / 300 / 2, 2, 1},
		{"until the end of the run", real(100, 200), []lab.Finding{finding("overload", "page", 100)}, 1, 0.2, 1, 1},
		{"for an instant", real(100, 100), []lab.Finding{held(100, 110)}, 1, 0.1, 1, 1},
		{"as a ticket only", real(100, 200), []lab.Finding{with(finding("overload", "ticket", 100), func(f *lab.Finding) { f.Cleared = 200 })}, 0, 1, 1, 1},
		{"with another cache of the origin, which is the same trouble", real(100, 200),
			[]lab.Finding{with(held(100, 200), func(f *lab.Finding) { f.Cache = "b" })}, 0, 1, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := score.Judge(parse(t, base+expect), result(c.onsets, c.findings)).Classes[0]
			if got.Real != c.real || got.Predicted != c.predicted || math.Abs(got.Recall-c.recall) > 1e-9 || math.Abs(got.Precision-c.precision) > 1e-9 {
				t.Errorf("%d real ranges with a recall of %.4f, %d predicted with a precision of %.4f: want %d, %.4f, %d, %.4f",
					got.Real, got.Recall, got.Predicted, got.Precision, c.real, c.recall, c.predicted, c.precision)
			}
		})
	}
}

func TestTroubleWithTwoKeysAtOnceIsThereOnce(t *testing.T) {
	var onsets []rig.Onset
	for _, key := range []string{"a:0", "a:1"} {
		o := stretch("hot-key-expiry", 100*time.Second, 200*time.Second)
		o.Key = key
		onsets = append(onsets, o)
	}
	f := with(finding("hot-key-expiry", "page", 100), func(f *lab.Finding) { f.Cleared = 200 })
	got := score.Judge(parse(t, base+"forbid: [overload]\n"), result(onsets, []lab.Finding{f})).Classes[0]
	if got.Predicted != 1 || got.Precision != 1 {
		t.Errorf("%d ranges with a precision of %v: want 1, and all of it", got.Predicted, got.Precision)
	}
}

func TestOnlyTroubleThatIsExpectedIsToBeFound(t *testing.T) {
	sc := parse(t, base+"expect: [{detector: overload, cache: a, severity: page, after: 150s}, {detector: overload, cache: a, after: 250s}]\n")
	got := score.Judge(sc, result(real(100, 120, 200, 220, 300, 320), nil)).Classes[0]
	if got.Real != 2 {
		t.Errorf("%d ranges to be found: want the two that begin after 150 s, each once", got.Real)
	}
}

func TestAFlapIsAnAlarmThatComesBackThoughNothingNewHappened(t *testing.T) {
	again := func(detector string, times ...float64) []lab.Finding {
		var out []lab.Finding
		for i := 0; i < len(times); i += 2 {
			out = append(out, with(finding(detector, "ticket", times[i]), func(f *lab.Finding) { f.Cleared = times[i+1] }))
		}
		return out
	}
	for _, c := range []struct {
		name     string
		onsets   []rig.Onset
		findings []lab.Finding
		want     int
	}{
		{"for the same trouble", real(100, 300), again("overload", 101, 150, 160, 200, 210, 300), 2},
		{"for trouble that is over", real(100, 120), again("overload", 101, 150, 160, 200), 1},
		{"not for new trouble", real(100, 120, 155, 170), again("overload", 101, 150, 160, 200), 0},
		{"not if it is about another key", real(100, 300), append(again("overload", 101, 150),
			with(again("overload", 160, 200)[0], func(f *lab.Finding) { f.Key = "a:1" })), 0},
		{"for a state", nil, again("vulnerable", 101, 150, 160, 200), 1},
		{"for a forecast of the same", []rig.Onset{stretch("synchronized-expiry", 300*time.Second, 310*time.Second)},
			again("expiry-forecast", 101, 150, 160, 200), 1},
		{"not for the next forecast", []rig.Onset{stretch("synchronized-expiry", 150*time.Second, 155*time.Second)},
			again("expiry-forecast", 101, 151, 160, 200), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			classes := score.Judge(parse(t, base+"forbid: [lock-lost]\n"), result(c.onsets, c.findings)).Classes
			if got := classes[0]; got.Flaps != c.want || got.Alarms != len(c.findings) {
				t.Errorf("%d flaps in %d alarms, want %d in %d", got.Flaps, got.Alarms, c.want, len(c.findings))
			}
		})
	}
}
