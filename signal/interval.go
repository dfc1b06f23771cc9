package signal

import (
	"cmp"
	"slices"
	"time"
)

// MaxIntervals bounds [Window.Intervals] of one source; MaxFleetIntervals
// bounds a merged window's.
const (
	MaxIntervals      = 64
	MaxFleetIntervals = 4096
)

// Interval is one recompute.
type Interval struct {
	// ID is unique in a fleet, so that one recompute reported by two windows
	// (running in the first, ended in the second) is counted once.
	ID    uint64 `json:"id"`
	Start Nanos  `json:"start"`
	// End is zero while the recompute runs.
	End     Nanos   `json:"end,omitempty"`
	Cause   Cause   `json:"cause"`
	Outcome Outcome `json:"outcome,omitempty"`
}

// Running reports whether the recompute had not ended when it was reported.
func (i Interval) Running() bool { return i.End == 0 }

// Rank orders intervals at random, but the same way everywhere: a sample of n is
// the n of lowest rank. See [SampleIntervals].
func (i Interval) Rank() uint64 { return mix(i.ID) }

// Overlap is the most intervals of one kind that ran at one instant, and how
// long more than one did.
type Overlap struct {
	Peak   int           // most at one instant
	PeakAt Nanos         // first instant with Peak
	Onset  Nanos         // first instant with two or more; zero if there was none
	Total  time.Duration // summed durations
	Wasted time.Duration // Total less the part of one survivor per burst
	Count  int           // intervals
	Bursts int           // maximal runs of overlapping intervals
}

// Duplicates returns how many of the intervals served nobody: all of each burst
// but one.
func (o Overlap) Duplicates() uint64 { return uint64(o.Count - o.Bursts) }

// Sweep measures how the provoked intervals in ivs overlap. An interval that
// ends at the very instant another starts does not overlap it, unless it took no
// time that the clock could see. A running interval runs at now. The survivor
// of a burst, whose work was not wasted, is the first to end with [OutcomeOK],
// else the first to start. ivs is not changed. O(n log n).
func Sweep(ivs []Interval, now Nanos) Overlap {
	runs := make([]run, 0, len(ivs))
	for _, iv := range ivs {
		if iv.Cause.Provoked() {
			runs = append(runs, newRun(iv, now))
		}
	}
	o := Overlap{Count: len(runs)}
	o.findPeak(runs)
	o.findBursts(runs)
	return o
}

// run is an interval whose end is known, or taken to be.
type run struct {
	Interval
	gone Nanos // the first instant at which it does not run
}

func newRun(iv Interval, now Nanos) run {
	if iv.Running() {
		iv.End = max(now, iv.Start)
		return run{iv, iv.End + 1}
	}
	iv.End = max(iv.End, iv.Start)
	return run{iv, max(iv.End, iv.Start+1)}
}

func (o *Overlap) findPeak(runs []run) {
	type edge struct {
		at    Nanos
		delta int
	}
	edges := make([]edge, 0, 2*len(runs))
	for i := range runs {
		edges = append(edges, edge{runs[i].Start, 1}, edge{runs[i].gone, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.delta, b.delta))
	})
	running := 0
	for _, e := range edges {
		running += e.delta
		if running > o.Peak {
			o.Peak, o.PeakAt = running, e.at
		}
		if running == 2 && e.delta == 1 && o.Onset == 0 {
			o.Onset = e.at
		}
	}
}

// findBursts sorts runs.
func (o *Overlap) findBursts(runs []run) {
	slices.SortFunc(runs, func(a, b run) int { return compareIntervals(a.Interval, b.Interval) })
	for len(runs) > 0 {
		survivor, gone := runs[0].Interval, runs[0].gone
		total := time.Duration(0)
		n := 0
		for ; n < len(runs) && (n == 0 || runs[n].Start < gone); n++ {
			r := &runs[n]
			gone = max(gone, r.gone)
			total += r.End.Sub(r.Start)
			if r.Outcome == OutcomeOK && (survivor.Outcome != OutcomeOK || r.End < survivor.End) {
				survivor = r.Interval
			}
		}
		o.Bursts++
		o.Total += total
		o.Wasted += total - survivor.End.Sub(survivor.Start)
		runs = runs[n:]
	}
}

func compareIntervals(a, b Interval) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
}

// SampleIntervals returns at most n of ivs, chosen by a hash of their IDs so
// that sampling a union gives the same answer as sampling its parts first. The
// result is sorted by Start, then ID, and reuses ivs.
func SampleIntervals(ivs []Interval, n int) []Interval {
	if len(ivs) > n {
		slices.SortFunc(ivs, func(a, b Interval) int {
			return cmp.Compare(a.Rank(), b.Rank())
		})
		ivs = ivs[:n]
	}
	slices.SortFunc(ivs, compareIntervals)
	return ivs
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a
// bijection, so distinct IDs never tie.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
