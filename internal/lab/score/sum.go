package score

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

const secondsPerDay = float64(24 * time.Hour / time.Second)

// Sum sums up outcomes.
func Sum(outcomes []Outcome) *Score {
	s := &summing{
		score:   Score{Runs: len(outcomes), Confusion: []Cell{}, Problems: []Problem{}},
		classes: map[string]*tally{}, cells: map[[2]string]int{}, scenarios: map[string]bool{},
	}
	for i := range outcomes {
		s.outcome(&outcomes[i])
	}
	return s.finish()
}

// summing is a score in the making.
type summing struct {
	score     Score
	total     tally
	classes   map[string]*tally
	cells     map[[2]string]int // expected, found
	scenarios map[string]bool
	resumed   []float64 // times to find incidents again
}

// tally is a class in the making.
type tally struct {
	Class
	delays, opens, clears []float64
	real, predicted       int // ranges
	recall, precision     float64
	alarms                int
}

// tallies returns those that count what a detector does.
func (s *summing) tallies(detector string) [2]*tally {
	if s.classes[detector] == nil {
		s.classes[detector] = &tally{Class: Class{Detector: detector}}
	}
	return [2]*tally{s.classes[detector], &s.total}
}

func (s *summing) outcome(o *Outcome) {
	s.scenarios[o.Scenario] = true
	days := o.Seconds / secondsPerDay
	s.score.Days += days
	s.score.FalsePages.Days += days
	if o.Quiet {
		s.score.QuietFalsePages.Days += days
	}
	for i := range o.Episodes {
		s.episode(o, &o.Episodes[i])
	}
	for i := range o.False {
		s.alarm(o, &o.False[i])
	}
	for i := range o.Unasked {
		for _, t := range s.tallies(o.Unasked[i].Detector) {
			t.Unasked++
		}
	}
	s.score.Pages.Repeated += o.Repeated
	for i := range o.Classes {
		for _, t := range s.tallies(o.Classes[i].Detector) {
			t.ranges(&o.Classes[i])
		}
	}
	if o.Restart != nil {
		s.restart(o)
	}
	for _, why := range o.Figures {
		s.problem(o, Problem{Kind: WrongFigure, Why: why})
	}
}

func (s *summing) episode(o *Outcome, e *Episode) {
	p := Problem{Detector: e.Detector, Cache: e.Cache, Why: e.Why}
	for _, t := range s.tallies(e.Detector) {
		t.episode(e)
	}
	if e.Void {
		p.Kind, p.Why = VoidEpisode, "the trouble never began"
		s.problem(o, p)
		return
	}
	s.cells[[2]string{e.Detector, cmp.Or(e.FoundAs, None)}]++
	page := e.Severity == "page"
	if page {
		s.score.Pages.Expected++
	}
	if !e.Found {
		p.Kind = Missed
		s.problem(o, p)
	} else if page {
		s.score.Pages.Found++
	}
}

func (t *tally) episode(e *Episode) {
	t.Noise += e.Noise
	switch {
	case e.Void:
		t.Void++
		return
	case !e.Found:
		t.Expected++
		t.Missed++
		return
	}
	t.Expected++
	t.Found++
	if e.Delay >= 0 {
		t.delays = append(t.delays, e.Delay)
	}
	if e.Open >= 0 {
		t.opens = append(t.opens, e.Open)
	} else {
		t.StillOpen++
	}
	if e.Clear >= 0 {
		t.clears = append(t.clears, e.Clear)
	}
	if e.Early {
		t.ClearedEarly++
	}
}

func (t *tally) ranges(c *ClassOutcome) {
	t.real += c.Real
	t.predicted += c.Predicted
	t.recall += c.Recall
	t.precision += c.Precision
	t.alarms += c.Alarms
	t.Flaps += c.Flaps
}

func (s *summing) restart(o *Outcome) {
	if s.score.Restart == nil {
		s.score.Restart = &RestartScore{}
	}
	r, x := s.score.Restart, o.Restart
	r.Runs++
	r.Open += x.Open
	r.Due += x.Due
	r.Found += x.Found
	r.Anew += x.Anew
	r.DoublePages += x.DoublePages
	s.resumed = append(s.resumed, x.Delays...)
	at := fmt.Sprintf("the exporter was restarted at %.3f s: ", x.Stopped)
	if x.Found < x.Due {
		s.problem(o, Problem{Kind: NotResumed, Why: at + fmt.Sprintf("%s: not found again", strings.Join(x.Missing, ", "))})
	}
	if x.DoublePages > 0 {
		s.problem(o, Problem{Kind: DoublePage, Why: at + fmt.Sprintf("%d pages for what somebody had been paged for", x.DoublePages)})
	}
}

func (s *summing) alarm(o *Outcome, a *Alarm) {
	p := Problem{Kind: FalseTicket, Detector: a.Detector, Cache: a.Cache, Why: fmt.Sprintf("it came at %.3f s: %s", a.At, a.Why)}
	for _, t := range s.tallies(a.Detector) {
		if a.Page {
			t.FalsePages++
		} else {
			t.FalseTickets++
		}
	}
	if a.Page {
		p.Kind = FalsePage
		s.score.Pages.False++
		s.score.FalsePages.Events++
		if o.Quiet {
			s.score.QuietFalsePages.Events++
		}
	}
	if !a.Confused {
		s.cells[[2]string{None, a.Detector}]++
	}
	s.problem(o, p)
}

func (s *summing) problem(o *Outcome, p Problem) {
	p.Scenario, p.Seed, p.Shift = o.Scenario, o.Seed, o.Shift
	s.score.Problems = append(s.score.Problems, p)
}

func (s *summing) finish() *Score {
	out := &s.score
	out.Scenarios = len(s.scenarios)
	out.Classes = make([]Class, 0, len(s.classes))
	for _, name := range slices.Sorted(maps.Keys(s.classes)) {
		out.Classes = append(out.Classes, s.classes[name].finish())
	}
	out.Total = s.total.finish()
	out.Total.Detector = "total"
	out.Pages.Precision = share(out.Pages.Found, out.Pages.Found+out.Pages.False)
	out.Pages.Recall = share(out.Pages.Found, out.Pages.Expected)
	out.Pages.RecallLower = lower(out.Pages.Found, out.Pages.Expected)
	if r := out.Restart; r != nil {
		r.Share, r.Lower, r.Delay = share(r.Found, r.Due), lower(r.Found, r.Due), spread(s.resumed)
	}
	out.FalsePages.finish()
	out.QuietFalsePages.finish()
	for cell, n := range s.cells {
		out.Confusion = append(out.Confusion, Cell{cell[0], cell[1], n})
	}
	slices.SortFunc(out.Confusion, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(a.Expected, b.Expected), cmp.Compare(a.Found, b.Found))
	})
	return out
}

func (t *tally) finish() Class {
	c := t.Class
	c.Precision = share(c.Found, c.Found+c.FalsePages+c.FalseTickets)
	c.Recall, c.RecallLower = share(c.Found, c.Expected), lower(c.Found, c.Expected)
	c.Delay, c.Open, c.Clear = spread(t.delays), spread(t.opens), spread(t.clears)
	c.RangePrecision, c.RangeRecall = mean(t.precision, t.predicted), mean(t.recall, t.real)
	c.FlapsPerIncident = share(c.Flaps, t.alarms-c.Flaps)
	return c
}

func (r *Rate) finish() {
	if r.Days > 0 {
		r.PerDay = new(float64(r.Events) / r.Days)
		r.Upper = new(PoissonUpper(r.Events) / r.Days)
	}
}

func share(part, all int) *float64 { return mean(float64(part), all) }

func mean(sum float64, n int) *float64 {
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}

// lower is the bound on share.
func lower(part, all int) *float64 {
	if all == 0 {
		return nil
	}
	return new(ShareLower(part, all))
}

// spread sorts times and describes them. A percentile is the smallest time that
// at least such a share of them do not exceed.
func spread(times []float64) *Spread {
	n := len(times)
	if n == 0 {
		return nil
	}
	slices.Sort(times)
	at := func(q float64) float64 { return times[max(int(math.Ceil(q*float64(n))), 1)-1] }
	return &Spread{Count: n, P50: at(0.5), P95: at(0.95), Max: times[n-1]}
}
