package score

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
)

// Recall and precision of ranges are those of Tatbul, Lee, Zdonik, Alam and
// Gottschlich, Precision and Recall for Time Series (NeurIPS 2018), with a flat
// positional bias and, for the cardinality factor, one over the number of ranges
// that overlap. There is no point-adjust.
const (
	// existence is the weight, in recall, of there being any overlap at all:
	// alpha in the paper.
	existence = 0.5
	// shortest is how long a range is at least: the exporter looks once a
	// second.
	shortest = 1.0
)

// span is a range of time, in seconds.
type span struct{ from, to float64 }

func newSpan(from, to float64) span { return span{from, max(to, from+shortest)} }

// spanOf is when trouble was there.
func spanOf(o *rig.Onset) span { return newSpan(o.At.Seconds(), o.End.Seconds()) }

// overlap returns how much of s others cover, as a share of s, divided by how
// many of them do. They must not overlap each other.
func (s span) overlap(others []span) float64 {
	covered, n := 0.0, 0
	for _, o := range others {
		if both := min(s.to, o.to) - max(s.from, o.from); both > 0 {
			covered += both
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return covered / (s.to - s.from) / float64(n)
}

// rangeRecall returns how well predicted ranges, which must not overlap each
// other, tell of a real one.
func rangeRecall(real span, predicted []span) float64 {
	o := real.overlap(predicted)
	if o == 0 {
		return 0
	}
	return existence + (1-existence)*o
}

// rangePrecision returns how well a predicted range tells of real ones, which
// must not overlap each other.
func rangePrecision(predicted span, real []span) float64 { return predicted.overlap(real) }

// union makes one of spans that overlap: trouble with two keys at once is there
// once.
func union(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out []span
	for _, s := range spans {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// classes sums up, by detector, what the time a finding held has to do with the
// time the trouble was there. Neither a forecast nor a state has such a time.
func (j *judge) classes() []ClassOutcome {
	byName := map[string]*ClassOutcome{}
	class := func(name string) *ClassOutcome {
		if byName[name] == nil {
			byName[name] = &ClassOutcome{Detector: name}
		}
		return byName[name]
	}
	j.recalls(class)
	alarms := map[[3]string][]*lab.Finding{}
	for i := range j.findings {
		f := &j.findings[i]
		if _, ok := raised(f, detectors.Ticket); !ok {
			continue
		}
		class(f.Detector).Alarms++
		s := [3]string{f.Detector, f.Cache, f.Key}
		alarms[s] = append(alarms[s], f)
		if f.Detector != forecast && f.Detector != vulnerable {
			class(f.Detector).Predicted++
			class(f.Detector).Precision += rangePrecision(j.span(f, detectors.Ticket), j.truth.spans(f))
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(alarms), func(a, b [3]string) int { return slices.Compare(a[:], b[:]) }) {
		class(s[0]).Flaps += j.truth.flaps(alarms[s])
	}
	var out []ClassOutcome
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, *byName[name])
	}
	return out
}

// recalls adds the recall of every stretch of trouble that the scenario expects
// to be found; each counts once, however many expectations are about it.
func (j *judge) recalls(class func(string) *ClassOutcome) {
	seen := map[rig.Onset]bool{}
	for i := range j.sc.Expect {
		x := &j.sc.Expect[i]
		if x.Detector == forecast || x.Detector == vulnerable {
			continue
		}
		least := severity(x.Severity)
		var said []*lab.Finding
		for n := range j.findings {
			if _, ok := raised(&j.findings[n], least); ok && about(x, &j.findings[n]) {
				said = append(said, &j.findings[n])
			}
		}
		for n := range j.truth.onsets[x.Detector] {
			o := &j.truth.onsets[x.Detector][n]
			if !expected(x, o) || seen[*o] {
				continue
			}
			seen[*o] = true
			var predicted []span
			for _, f := range said {
				if lab.Concerns(j.sc, o, f.Detector, f.Cache, f.Key) {
					predicted = append(predicted, j.span(f, least))
				}
			}
			class(x.Detector).Real++
			class(x.Detector).Recall += rangeRecall(spanOf(o), union(predicted))
		}
	}
}

// span is from when f came to a severity until it cleared.
func (j *judge) span(f *lab.Finding, least detectors.Severity) span {
	from, _ := raised(f, least)
	to := f.Cleared
	if to == 0 {
		to = j.end
	}
	return newSpan(from, to)
}

// spans is when there was what f speaks of.
func (t *truth) spans(f *lab.Finding) []span {
	var out []span
	for n := range t.onsets[f.Detector] {
		if o := &t.onsets[f.Detector][n]; lab.Concerns(t.sc, o, f.Detector, f.Cache, f.Key) {
			out = append(out, spanOf(o))
		}
	}
	return union(out)
}

// flaps counts how often a finding, of which these are all, came back without
// anything new having happened.
func (t *truth) flaps(findings []*lab.Finding) int {
	n := 0
	for i, f := range findings[1:] {
		if last := findings[i]; last.Cleared > 0 && !t.renewed(f, last) {
			n++
		}
	}
	return n
}

// renewed reports whether trouble that f speaks of began since the last finding
// of it cleared; of a forecast, whether what that one warned of came.
func (t *truth) renewed(f, last *lab.Finding) bool {
	since, kind := last.Cleared, f.Detector
	if kind == forecast {
		since, kind = last.Detected, forecastOf
	}
	// What a tick saw may have begun a little before.
	from, to := seconds64(since-shortest), seconds64(f.Detected)
	return slices.ContainsFunc(t.onsets[kind], func(o rig.Onset) bool {
		return o.At > from && o.At <= to && lab.Concerns(t.sc, &o, kind, f.Cache, f.Key)
	})
}

func seconds64(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
