package detectors

import (
	"cmp"
	"time"
)

// SynchronizedExpiryConfig holds the thresholds of the synchronized-expiry
// detector. A zero field takes its default.
type SynchronizedExpiryConfig struct {
	// Window is the shortest stretch of time that is judged, 1s to 1m; ten
	// recompute times count instead if they are longer, up to a minute. Two
	// windows on end must show the trouble. Default 5s.
	Window time.Duration `yaml:"window,omitempty"`
	// Demand is how many keys must be gone in a window, of those the origin
	// can recompute in it, 0.5 to 100. Default 1.2.
	Demand float64 `yaml:"demand,omitempty"`
	// Backlog is how long, at least, the origin must need for what waits,
	// 100ms to 1h. Default 2s.
	Backlog time.Duration `yaml:"backlog,omitempty"`
	// ExpiredShare is the part of those keys whose values must have expired,
	// 0.1 to 1. Default 0.7.
	ExpiredShare float64 `yaml:"expired_share,omitempty"`
	// DistinctShare is the part of misses that must be of a key of its own,
	// 0.01 to 1, default 0.5; or TopShare the part that one key may have at
	// most, 0.01 to 1, default 0.2.
	DistinctShare float64 `yaml:"distinct_share,omitempty"`
	TopShare      float64 `yaml:"top_share,omitempty"`
	// ClearDemand is the demand that keeps a finding open, 0.1 to Demand.
	// Default 0.8, or Demand if that is lower.
	ClearDemand float64 `yaml:"clear_demand,omitempty"`
	// ClearAfter is how long it must not be reached, nor readers queue for
	// longer than one recompute takes, before a finding clears, 1s to 24h.
	// Default 60s.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

func (c SynchronizedExpiryConfig) withDefaults() SynchronizedExpiryConfig {
	c.Window = cmp.Or(c.Window, 5*time.Second)
	c.Demand = cmp.Or(c.Demand, 1.2)
	c.Backlog = cmp.Or(c.Backlog, 2*time.Second)
	c.ExpiredShare = cmp.Or(c.ExpiredShare, 0.7)
	c.DistinctShare = cmp.Or(c.DistinctShare, 0.5)
	c.TopShare = cmp.Or(c.TopShare, 0.2)
	c.ClearDemand = cmp.Or(c.ClearDemand, min(0.8, c.Demand))
	c.ClearAfter = cmp.Or(c.ClearAfter, time.Minute)
	return c
}

// validate checks a configuration that has its defaults.
func (c SynchronizedExpiryConfig) validate() error {
	return cmp.Or(
		within("window", c.Window, time.Second, maxStormWindow),
		within("demand", c.Demand, 0.5, 100),
		within("backlog", c.Backlog, 100*time.Millisecond, time.Hour),
		within("expired_share", c.ExpiredShare, 0.1, 1),
		within("distinct_share", c.DistinctShare, 0.01, 1),
		within("top_share", c.TopShare, 0.01, 1),
		within("clear_demand", c.ClearDemand, 0.1, c.Demand),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}

// maxStormWindow bounds the window of an origin whose recomputes take long.
const maxStormWindow = time.Minute

// window returns the stretch of time that is judged.
func (c *SynchronizedExpiryConfig) window(s speed) time.Duration {
	return min(max(c.Window, 10*min(s.mean, maxStormWindow)), maxStormWindow)
}
