package rig

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Effort is how long recomputes take: fixed, or lognormal.
type Effort struct {
	Typical time.Duration // the median
	sigma   float64       // of the lognormal; 0: fixed
}

// NewEffort returns what r says.
func NewEffort(r scenario.Recompute) Effort {
	if r.Fixed != 0 {
		return Effort{Typical: r.Fixed}
	}
	// The 99th percentile of a standard normal is 2.3263.
	return Effort{r.P50, math.Log(float64(r.P99)/float64(r.P50)) / 2.3263478740408408}
}

// Mean returns the expected time.
func (e Effort) Mean() time.Duration {
	return time.Duration(float64(e.Typical) * math.Exp(e.sigma*e.sigma/2))
}

// Draw draws a time at an origin that is so many times as slow as usual.
func (e Effort) Draw(r *rand.Rand, slow float64) time.Duration {
	d := float64(e.Typical) * slow
	if e.sigma > 0 {
		d *= math.Exp(e.sigma * r.NormFloat64())
	}
	return max(1, time.Duration(d))
}

// Life draws how long a value stored now lives; ttl replaces that of c unless it
// is zero.
func Life(c *scenario.Cache, ttl time.Duration, r *rand.Rand) time.Duration {
	if ttl == 0 {
		ttl = c.TTL
	}
	j := c.Jitter
	if j.Spread == 0 {
		return ttl
	}
	u := r.Float64()
	if j.Shape == scenario.JitterSymmetric {
		u = 2*u - 1
	}
	return max(time.Millisecond, ttl+time.Duration(u*float64(j.Spread)))
}

// farAhead is how many recompute times before its expiry no reader volunteers:
// the chance is e^-40.
const farAhead = 40

// Volunteers reports whether a reader refreshes a value so long before its
// expiry, acting on that recompute time: the rule of XFetch,
// now - delta*beta*ln(rand) >= expiry, rand in (0, 1].
func Volunteers(lead, acted time.Duration, beta float64, r *rand.Rand) bool {
	scale := float64(acted) * beta
	return float64(lead) < farAhead*scale && -scale*math.Log(1-r.Float64()) >= float64(lead)
}

// Claims is what the application says of c, which it believes to be protected by
// p.
func Claims(c *scenario.Cache, p scenario.Protections) signal.Claims {
	if !c.Declared {
		return signal.Claims{}
	}
	x := signal.Claims{
		Protection: p.Names(),
		Timeout:    c.Client.Timeout, Attempts: c.Client.Attempts,
		StaleFor: c.StaleGrace,
	}
	if p.Has(scenario.ProtectXFetch) {
		x.Beta, x.Clamp = c.XFetch.Beta, c.XFetch.Clamp
	}
	if p.Has(scenario.ProtectRefreshAhead) {
		x.RefreshAhead = c.RefreshAhead.Ratio
	}
	if p.Has(scenario.ProtectLock) {
		x.LockTTL = c.Lock.TTL
	}
	return x
}

// Absent reports whether the origin lacks key n of c, decided by a hash of it and
// the seed, so that it is the same throughout a run.
func Absent(c *scenario.Cache, n int, seed uint64) bool {
	return c.Negative > 0 && unit(uint64(n)^seed<<32) < c.Negative
}

// InSlice reports whether key n is in the slice of the key space that is such a
// share of it.
func InSlice(n int, share float64) bool { return unit(uint64(n)) < share }

// unit maps x into [0, 1), evenly: the finalizer of SplitMix64.
func unit(x uint64) float64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}
