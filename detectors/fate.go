package detectors

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// fate is what became of a value that readers found gone, as far as the whole
// fleet can tell. A single process often cannot: it calls a key cold that
// another process stored, and expired one that another has stored anew since.
type fate uint8

const (
	fateCold     fate = iota // nobody had a value
	fateGone                 // somebody had one, and nobody knows what became of it
	fateExpired              // it reached its expiry
	fateLost                 // it was evicted, flushed or deleted before that
	fateNegative             // the origin has no such thing
	numFates
)

// dueSlack is how much earlier than its expiry a value may be found gone and
// still have expired: the two instants come from two clocks.
const dueSlack = time.Second

// fateOf returns the fate of the value an episode is about.
func fateOf(e *signal.Episode) fate {
	r := &e.Window.Recomputes
	switch s := &r.Started; {
	case negatives(r) > 0:
		return fateNegative
	case e.Due != 0 && e.Started < e.Due.Add(-dueSlack-e.Offset.Abs()):
		return fateLost
	case e.Due != 0:
		return fateExpired
	// Who says evicted had it more lately than who says expired.
	case s[signal.CauseEvicted]+s[signal.CauseInvalidated] > 0:
		return fateLost
	case s[signal.CauseExpired] > 0:
		return fateExpired
	case e.KnownBefore:
		return fateGone
	}
	return fateCold
}

// negatives returns how many recomputes found that there is no such thing.
func negatives(r *signal.Recomputes) uint64 {
	var n uint64
	for _, v := range r.Ended[signal.CauseNegative] {
		n += v
	}
	return n
}

// fates counts keys by what became of their values.
type fates [numFates]float64

func (f *fates) add(o *fates) {
	for i := range f {
		f[i] += o[i]
	}
}

func (f *fates) total() float64 {
	var n float64
	for _, v := range f {
		n += v
	}
	return n
}

// share returns what part of the keys had the fate x, expired or lost. Those of
// which nobody knows whether they expired or were lost are shared out as the
// others were; if there are no others they count as neither.
func (f *fates) share(x fate) float64 {
	n, told := f.total(), f[fateExpired]+f[fateLost]
	if n == 0 {
		return 0
	}
	v := f[x]
	if told > 0 {
		v += f[fateGone] * f[x] / told
	}
	return v / n
}

// untold returns the part of the keys whose fate nobody knows, if that part is
// not shared out.
func (f *fates) untold() float64 {
	if f[fateExpired]+f[fateLost] > 0 || f[fateGone] == 0 {
		return 0
	}
	return f[fateGone] / f.total()
}
