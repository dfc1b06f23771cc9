package signal

import (
	"cmp"
	"slices"
	"time"
)

// ExpiryBin says that Keys values expire between At and At plus Width.
type ExpiryBin struct {
	At    Nanos         `json:"at"`
	Width time.Duration `json:"width"`
	Keys  uint32        `json:"keys"`
}

// Bins of coming expiries are a second wide for the next ExpiryNear, and ten
// seconds for the rest of ExpiryFar; what expires later is left out.
const (
	ExpiryNear = 5 * time.Minute
	ExpiryFar  = time.Hour
)

// BinExpiry returns the bin, without a count, of a value that expires at at, as
// seen at now; false if it lies in the past or beyond [ExpiryFar]. Bins are
// aligned to the clock, so those of several sources coincide.
func BinExpiry(now, at Nanos) (ExpiryBin, bool) {
	ahead := at.Sub(now)
	if ahead <= 0 || ahead > ExpiryFar {
		return ExpiryBin{}, false
	}
	width := time.Second
	if ahead > ExpiryNear {
		width = 10 * time.Second
	}
	return ExpiryBin{At: at - at%Nanos(width), Width: width}, true
}

// MergeExpiries adds bins up, in order of At, then Width. It changes neither.
func MergeExpiries(a, b []ExpiryBin) []ExpiryBin {
	all := append(append(make([]ExpiryBin, 0, len(a)+len(b)), a...), b...)
	slices.SortFunc(all, func(x, y ExpiryBin) int {
		return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Width, y.Width))
	})
	out := all[:0]
	for _, bin := range all {
		if n := len(out); n > 0 && out[n-1].At == bin.At && out[n-1].Width == bin.Width {
			out[n-1].Keys += bin.Keys
			continue
		}
		out = append(out, bin)
	}
	return out
}
