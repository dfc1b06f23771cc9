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

// Sweep measures how the provoked intervals in ivs overlap. A running interval
// lasts until now. An interval that ends at the very instant another starts
// does not overlap it. The survivor of a burst, whose work was not wasted, is
// the first to end with [OutcomeOK], else the first to start. ivs is not
// changed. O(n log n).
func Sweep(ivs []Interval, now Nanos) Overlap {
	type edge struct {
		at    Nanos
		delta int
	}
	edges := make([]edge, 0, 2*len(ivs))
	sorted := make([]Interval, 0, len(ivs))
	for _, iv := range ivs {
		if !iv.Cause.Provoked() {
			continue
		}
		if iv.Running() {
			iv.End = max(now, iv.Start)
		}
		iv.End = max(iv.End, iv.Start)
		sorted = append(sorted, iv)
		edges = append(edges, edge{iv.Start, 1}, edge{iv.End, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.delta, b.delta))
	})
	o := Overlap{Count: len(sorted)}
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
	slices.SortFunc(sorted, compareIntervals)
	for i := 0; i < len(sorted); {
		survivor, end := sorted[i], sorted[i].End
		total := time.Duration(0)
		j := i
		for ; j < len(sorted) && (j == i || sorted[j].Start < end); j++ {
			iv := sorted[j]
			end = max(end, iv.End)
			total += iv.End.Sub(iv.Start)
			if iv.Outcome == OutcomeOK && (survivor.Outcome != OutcomeOK || iv.End < survivor.End) {
				survivor = iv
			}
		}
		o.Bursts++
		o.Total += total
		o.Wasted += total - survivor.End.Sub(survivor.Start)
		i = j
	}
	return o
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
