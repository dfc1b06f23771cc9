package signal

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// ExpiryBin says that Keys values expire between At and At plus Width.
type ExpiryBin struct {
	At    Nanos         `json:"at"`
	Width time.Duration `json:"width"`
	Keys  uint32        `json:"keys"`
	// Group is the family the values belong to, as [Key.Group] is, at most
	// [MaxExpiryGroup] bytes; empty if the source does not tell families apart.
	Group string `json:"group,omitempty"`
}

// MaxExpiryGroup is the longest name of a group in an [ExpiryBin], in bytes.
const MaxExpiryGroup = 128

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

// MergeExpiries adds bins up, in order of At, then Width, then Group. It changes
// neither. A count that would not fit stays at the largest there is.
func MergeExpiries(a, b []ExpiryBin) []ExpiryBin {
	all := append(append(make([]ExpiryBin, 0, len(a)+len(b)), a...), b...)
	slices.SortFunc(all, func(x, y ExpiryBin) int {
		return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Width, y.Width), strings.Compare(x.Group, y.Group))
	})
	out := all[:0]
	for _, bin := range all {
		if n := len(out); n > 0 && out[n-1].At == bin.At && out[n-1].Width == bin.Width && out[n-1].Group == bin.Group {
			out[n-1].Keys += min(bin.Keys, math.MaxUint32-out[n-1].Keys)
			continue
		}
		out = append(out, bin)
	}
	return out
}

// Sample says what expiries were scaled up from, where not every value was
// looked at. The zero Sample is that of a source that knows them all.
type Sample struct {
	// Keys is how many values were looked at, and Population how many there
	// are, those that never expire included.
	Keys       uint64 `json:"keys,omitempty"`
	Population uint64 `json:"population,omitempty"`
	// Weight is how many values one that was looked at stands for; of several
	// sources, in the one that looked at the smallest part. It is at least 1,
	// or zero if every value is known.
	Weight float64 `json:"weight,omitempty"`
}

// IsZero reports whether nothing was sampled.
func (s Sample) IsZero() bool { return s == Sample{} }

// Add adds to s the sample of another source.
func (s *Sample) Add(o Sample) {
	s.Keys += o.Keys
	s.Population += o.Population
	s.Weight = max(s.Weight, o.Weight)
}

// Margin returns half the width of the 95 % confidence interval of a count of
// keys that was scaled up from s: zero if every value was looked at.
//
// With weights w and k values seen, the count is the Horvitz-Thompson estimate
// w*k of a Poisson sample, whose variance w*(w-1)*k is (w-1) times the count. A
// count of zero may stand for three times the weight (the rule of three).
func (s Sample) Margin(keys float64) float64 {
	if s.Weight <= 1 {
		return 0
	}
	if keys <= 0 {
		return 3 * (s.Weight - 1)
	}
	return 1.96 * math.Sqrt((s.Weight-1)*keys)
}
