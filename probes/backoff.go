package probes

import "time"

// MaxBackoff bounds the time between runs of a probe that fails.
const MaxBackoff = 15 * time.Second

// backoff says how long to wait for the next run. The zero value is ready.
type backoff struct{ failures int }

// wait returns the time from the start of the run that just ended to that of
// the next. A single failure costs nothing: most are over at once.
func (b *backoff) wait(interval time.Duration, failed bool, jitter func() float64) time.Duration {
	if !failed {
		b.failures = 0
		return interval
	}
	b.failures++
	if b.failures == 1 {
		return interval
	}
	most := max(interval, MaxBackoff)
	w := interval
	for i := 1; i < b.failures && w < most; i++ {
		w *= 2
	}
	w = min(w, most)
	return max(interval, w-time.Duration(jitter()*float64(w)/2))
}
