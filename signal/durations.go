package signal

import (
	"math"
	"time"
)

// Durations is a histogram of durations with buckets that grow by 2^(1/4), or
// 19 %: bucket i counts those of more than DurationBound(i-1) and at most
// DurationBound(i). The first takes everything up to 1 ms, the last everything
// beyond 16 minutes. Histograms add and subtract.
type Durations [DurationBuckets]uint64

// DurationBuckets is how many buckets there are: 20 octaves of four, and one
// beyond.
const DurationBuckets = 82

// DurationBound returns the upper bound of bucket i; the last has none, and
// gives the greatest duration there is.
func DurationBound(i int) time.Duration {
	if i >= DurationBuckets-1 {
		return math.MaxInt64
	}
	return time.Duration(float64(time.Millisecond) * math.Exp2(float64(i)/4))
}

// Observe counts d.
func (h *Durations) Observe(d time.Duration) { h[DurationBucket(d)]++ }

// DurationBucket returns the bucket that counts d.
func DurationBucket(d time.Duration) int {
	if d <= time.Millisecond {
		return 0
	}
	i := int(math.Ceil(4 * math.Log2(float64(d)/float64(time.Millisecond))))
	return min(max(i, 0), DurationBuckets-1)
}

// Add adds o to h.
func (h *Durations) Add(o *Durations) {
	for i := range h {
		h[i] += o[i]
	}
}

// Since returns what was counted after before; all of h if before is not an
// earlier state of it.
func (h *Durations) Since(before *Durations) Durations {
	var d Durations
	for i := range h {
		if h[i] < before[i] {
			return *h
		}
		d[i] = h[i] - before[i]
	}
	return d
}

// Count returns how many durations were counted.
func (h *Durations) Count() uint64 {
	var n uint64
	for _, c := range h {
		n += c
	}
	return n
}

// Quantile returns the upper bound of the bucket the q-quantile lies in, so at
// most 19 % too much; zero if nothing was counted. q is from 0 to 1. Beyond the
// last bound it returns that bound.
func (h *Durations) Quantile(q float64) time.Duration {
	total := h.Count()
	if total == 0 {
		return 0
	}
	rank := max(1, uint64(math.Ceil(q*float64(total))))
	var sum uint64
	for i, c := range h {
		if sum += c; sum >= rank {
			return DurationBound(min(i, DurationBuckets-2))
		}
	}
	return DurationBound(DurationBuckets - 2)
}
