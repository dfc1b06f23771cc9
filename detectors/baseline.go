package detectors

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// youngAfter is how many healthy minutes make a baseline, and fullAfter
	// how many make one that is no longer called young.
	youngAfter = 5
	fullAfter  = 60
	// baselineDay is how long ago a healthy minute may be and still tell what
	// is usual now, if the same hour of last week is not known.
	baselineDay = 24 * time.Hour
	// baselineWeek is how old the same hour of last week may be.
	baselineWeek = 8 * 24 * time.Hour
	// enoughReads is how many reads a minute must have to be learnt from.
	enoughReads = 20
	hoursOfWeek = 7 * 24
)

// usual is what is normal for an origin: the medians of healthy minutes.
type usual struct {
	// load is in reads per second, hits the hit ratio, delta the seconds one
	// recompute takes when nobody is in the way (0 if not known), good the
	// goodput.
	load, hits, delta, good float64
	minutes                 int
	lastWeek                bool // of the same hour a week ago, not of lately
}

// young reports whether it was learnt in less than an hour.
func (u *usual) young() bool { return !u.lastWeek && u.minutes < fullAfter }

// minute is what one healthy minute was like.
type minute struct {
	At    signal.Nanos `json:"at"` // its end
	Load  float64      `json:"load"`
	Hits  float64      `json:"hits"`
	Delta float64      `json:"delta,omitempty"`
	Good  float64      `json:"good"`
}

// hour is what the healthy minutes of one hour were like: their medians.
type hour struct {
	minute
	Minutes int `json:"minutes"`
}

// baseline learns what is usual. It remembers the latest hour of healthy minutes
// one by one, and a week of hours by their medians.
type baseline struct {
	recent []minute // at most fullAfter, in order
	hours  map[int]hour
}

// hourOf returns the hour since the epoch that ends with or contains at.
func hourOf(at signal.Nanos) int { return int((at - 1) / signal.Nanos(time.Hour)) }

// hourOfWeek returns which hour of a week, 0 to 167, an hour is.
func hourOfWeek(h int) int { return ((h % hoursOfWeek) + hoursOfWeek) % hoursOfWeek }

// learn takes a healthy minute.
func (b *baseline) learn(m minute) {
	if n := len(b.recent); n > 0 && b.recent[n-1].At >= m.At {
		return // the clock was set back: what was learnt is of a time that is still to come
	}
	if n := len(b.recent); n > 0 && hourOf(b.recent[n-1].At) != hourOf(m.At) {
		b.close(hourOf(b.recent[n-1].At))
	}
	if len(b.recent) == fullAfter {
		b.recent = slices.Delete(b.recent, 0, 1)
	}
	b.recent = append(b.recent, m)
}

// close remembers the medians of an hour that is over.
func (b *baseline) close(h int) {
	var ms []minute
	for _, m := range b.recent {
		if hourOf(m.At) == h {
			ms = append(ms, m)
		}
	}
	if len(ms) < youngAfter {
		return
	}
	if b.hours == nil {
		b.hours = map[int]hour{}
	}
	b.hours[hourOfWeek(h)] = hour{medians(ms), len(ms)}
}

// usual returns what is normal at a time; false if too little was learnt. The
// load is the exception: what it was just before is closer to what it is than
// last week's, and only the larger of the two is more than usual.
func (b *baseline) usual(at signal.Nanos) (usual, bool) {
	recent := b.since(at, baselineDay)
	if len(recent) < youngAfter {
		recent = nil
	}
	now := medians(recent)
	lately := medians(recent[max(0, len(recent)-youngAfter):]).Load
	u := usual{load: lately, hits: now.Hits, delta: now.Delta, good: now.Good, minutes: len(recent)}
	if h, ok := b.hours[hourOfWeek(hourOf(at))]; ok && h.At < at && at.Sub(h.At) < baselineWeek {
		u = usual{load: max(lately, h.Load), hits: h.Hits, delta: h.Delta, good: h.Good, minutes: h.Minutes, lastWeek: true}
		if u.delta == 0 {
			u.delta = now.Delta
		}
	}
	return u, u.minutes > 0
}

// since returns the healthy minutes of the span before at.
func (b *baseline) since(at signal.Nanos, span time.Duration) []minute {
	from, to := 0, len(b.recent)
	for from < to && at.Sub(b.recent[from].At) >= span {
		from++
	}
	for to > from && b.recent[to-1].At > at {
		to--
	}
	return b.recent[from:to]
}

// carried returns the latest healthy minute, or hour, of the last day in which
// the load was nearly this; false if there was none.
func (b *baseline) carried(at signal.Nanos, load float64) (m minute, ok bool) {
	near := func(x minute) bool {
		return x.Load > 0 && math.Abs(x.Load-load) <= 0.1*load && x.At <= at && at.Sub(x.At) < baselineDay && x.At > m.At
	}
	for _, x := range b.recent {
		if near(x) {
			m, ok = x, true
		}
	}
	for _, i := range slices.Sorted(maps.Keys(b.hours)) {
		if h := b.hours[i]; near(h.minute) {
			m, ok = h.minute, true
		}
	}
	return m, ok
}

// medians returns the median of each figure, and the latest time; of minutes in
// which nothing was recomputed there is no recompute time.
func medians(ms []minute) minute {
	var out minute
	var load, hits, delta, good []float64
	for _, m := range ms {
		out.At = max(out.At, m.At)
		load, hits, good = append(load, m.Load), append(hits, m.Hits), append(good, m.Good)
		if m.Delta > 0 {
			delta = append(delta, m.Delta)
		}
	}
	out.Load, out.Hits, out.Delta, out.Good = median(load), median(hits), median(delta), median(good)
	return out
}

// median returns the lower of the middle values; 0 of nothing.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[(len(v)-1)/2]
}
