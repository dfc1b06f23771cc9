package signal

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Merge adds o, another window of the same cache and key, into w. Sums add,
// maxima and bounds widen, intervals unite by ID. The result does not depend on
// the order or grouping of merges, so a merge may itself be sent on and merged
// again. w must not share memory with o; o is left as it was.
//
// Both must be on one clock: see [Window.Shift].
func (w *Window) Merge(o *Window) {
	w.Shares = mergeShares(w.shares(), o.shares())
	w.Source = mergeSources(w.Source, o.Source)
	if w.Key.Text == "" || (o.Key.Text != "" && o.Key.Text < w.Key.Text) {
		w.Key.Text = o.Key.Text
	}
	if w.Key.Group == "" || (o.Key.Group != "" && o.Key.Group < w.Key.Group) {
		w.Key.Group = o.Key.Group
	}
	w.Generation = max(w.Generation, o.Generation)
	w.Start = earlier(w.Start, o.Start)
	w.End = max(w.End, o.End)
	w.Unknown |= o.Unknown

	w.Lookups.Add(o.Lookups)
	w.MissPeak = max(w.MissPeak, o.MissPeak)
	w.Recomputes.Add(&o.Recomputes)
	w.InFlightPeak = max(w.InFlightPeak, o.InFlightPeak)
	w.Duplicates += o.Duplicates
	w.WhileFresh += o.WhileFresh
	w.Coalesced += o.Coalesced
	w.Busy += o.Busy
	w.BusyMax = max(w.BusyMax, o.BusyMax)
	w.mergeIntervals(o)
	w.Stores.merge(o.Stores)
	w.Invalidations += o.Invalidations
	w.InvalidatedAt = max(w.InvalidatedAt, o.InvalidatedAt)
	w.Early.Count += o.Early.Count
	w.Early.LeadSum += o.Early.LeadSum
	w.Early.LeadMax = max(w.Early.LeadMax, o.Early.LeadMax)
	w.Early.DeltaMax = max(w.Early.DeltaMax, o.Early.DeltaMax)
	w.Locks.merge(o.Locks)
	w.Retries.Requests += o.Retries.Requests
	w.Retries.Attempts += o.Retries.Attempts
}

// Instances returns how many instances had a provoked recompute.
func (w *Window) Instances() int {
	n := 0
	for _, s := range w.shares() {
		if s.Recomputes > 0 || s.InFlightPeak > 0 {
			n++
		}
	}
	return n
}

// PeakBounds returns bounds on the most provoked recomputes that ran at one
// instant in the whole fleet. The lower bound is what the intervals prove, or
// the worst single process; the upper assumes every process had its worst
// moment at once. They are equal for a window of one source. A running interval
// lasts until now.
func (w *Window) PeakBounds(now Nanos) (low, high int) {
	for _, s := range w.shares() {
		low = max(low, int(s.InFlightPeak))
		high += int(s.InFlightPeak)
	}
	if len(w.Shares) == 0 {
		return low, high
	}
	low = max(low, Sweep(w.Intervals, now).Peak)
	if !w.Sampled {
		high = low
	}
	return low, max(low, high)
}

// MissPeakBounds is [Window.PeakBounds] for readers waiting after a miss.
func (w *Window) MissPeakBounds() (low, high int) {
	for _, s := range w.shares() {
		low = max(low, int(s.MissPeak))
		high += int(s.MissPeak)
	}
	return low, high
}

func (w *Window) shares() []Share {
	if len(w.Shares) > 0 {
		return w.Shares
	}
	return []Share{{
		Source:       w.Source,
		Recomputes:   w.Recomputes.Provoked(),
		InFlightPeak: w.InFlightPeak,
		MissPeak:     w.MissPeak,
		Coalesced:    w.Coalesced,
	}}
}

func compareShares(a, b Share) int {
	return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.Instance, b.Instance), strings.Compare(a.Build, b.Build))
}

func mergeShares(a, b []Share) []Share {
	out := make([]Share, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := compareShares(a[0], b[0]); {
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		case c > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			s := a[0]
			s.Recomputes += b[0].Recomputes
			s.Coalesced += b[0].Coalesced
			s.InFlightPeak = max(s.InFlightPeak, b[0].InFlightPeak)
			s.MissPeak = max(s.MissPeak, b[0].MissPeak)
			out, a, b = append(out, s), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

func mergeSources(a, b Source) Source {
	if a.Service != b.Service {
		return Source{}
	}
	if a.Instance != b.Instance {
		a.Instance = ""
	}
	if a.Build != b.Build {
		a.Build = ""
	}
	return a
}

// mergeIntervals unites by ID: the report that saw the end wins over the one
// that saw it running.
func (w *Window) mergeIntervals(o *Window) {
	w.Sampled = w.Sampled || o.Sampled
	if len(o.Intervals) == 0 {
		return
	}
	all := make([]Interval, 0, len(w.Intervals)+len(o.Intervals))
	all = append(append(all, w.Intervals...), o.Intervals...)
	slices.SortFunc(all, func(a, b Interval) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(b.End, a.End), cmp.Compare(b.Outcome, a.Outcome), cmp.Compare(b.Cause, a.Cause), cmp.Compare(a.Start, b.Start))
	})
	all = slices.CompactFunc(all, func(a, b Interval) bool { return a.ID == b.ID })
	w.Sampled = w.Sampled || len(all) > MaxFleetIntervals
	w.Intervals = SampleIntervals(all, MaxFleetIntervals)
}

func (s *Stores) merge(o Stores) {
	s.Count += o.Count
	s.NoExpiry += o.NoExpiry
	s.Stale += o.Stale
	s.ExpiryMin = earlier(s.ExpiryMin, o.ExpiryMin)
	s.ExpiryMax = max(s.ExpiryMax, o.ExpiryMax)
	s.TTLMin = shorter(s.TTLMin, o.TTLMin)
	s.TTLMax = max(s.TTLMax, o.TTLMax)
	s.Versions.merge(o.Versions)
}

func (l *Locks) merge(o Locks) {
	l.Attempts += o.Attempts
	l.Acquired += o.Acquired
	l.Waits += o.Waits
	l.WaitSum += o.WaitSum
	l.WaitMax = max(l.WaitMax, o.WaitMax)
	l.WaitPeak = max(l.WaitPeak, o.WaitPeak)
	l.Holds += o.Holds
	l.HoldSum += o.HoldSum
	l.HoldMax = max(l.HoldMax, o.HoldMax)
	l.Lost += o.Lost
	// Of several windows of one instance the latest is right, and a merge
	// cannot tell; the most is what it can prove.
	l.Waiting = max(l.Waiting, o.Waiting)
	l.Held = max(l.Held, o.Held)
	l.HeldSince = earlier(l.HeldSince, o.HeldSince)
}

// earlier is the smaller of two instants of which either may be unknown.
func earlier(a, b Nanos) Nanos {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// shorter is the smaller of two durations of which either may be absent.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
