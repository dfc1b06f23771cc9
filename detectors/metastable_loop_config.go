package detectors

import (
	"cmp"
	"time"
)

// MetastableLoopConfig holds the thresholds of the metastable-loop detector. A
// zero field takes its default.
type MetastableLoopConfig struct {
	// Goodput is the share of the usual goodput at or below which readers are
	// harmed, 0.1 to 0.99. Default 0.9.
	Goodput float64 `yaml:"goodput,omitempty"`
	// Amplification is how many attempts on the origin for each first one
	// sustain trouble, 1.1 to 100. Default 1.5.
	Amplification float64 `yaml:"amplification,omitempty"`
	// HitRatio is the share of the usual hit ratio, and FillSuccess the share
	// of recomputes that make a value, at or below which, both, a cold cache
	// sustains trouble. 0.1 to 0.95, default 0.7; and 0.01 to 0.9, default
	// 0.5.
	HitRatio    float64 `yaml:"hit_ratio,omitempty"`
	FillSuccess float64 `yaml:"fill_success,omitempty"`
	// Hold is how long, at least, all of that must last after whatever began
	// it is over: 10s to 10m. Default 60s. Three client timeouts, or twice
	// the time in which the origin would have drained, count instead if they
	// are longer, up to 10m.
	Hold time.Duration `yaml:"hold,omitempty"`
	// ClearAfter is how long all must be as usual before a finding clears, 1s
	// to 24h. Default 5m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

// maxLoopHold bounds how long the verdict waits. A queue that takes longer to
// drain is trouble by any name.
const maxLoopHold = 10 * time.Minute

func (c MetastableLoopConfig) withDefaults() MetastableLoopConfig {
	c.Goodput = cmp.Or(c.Goodput, 0.9)
	c.Amplification = cmp.Or(c.Amplification, 1.5)
	c.HitRatio = cmp.Or(c.HitRatio, 0.7)
	c.FillSuccess = cmp.Or(c.FillSuccess, 0.5)
	c.Hold = cmp.Or(c.Hold, time.Minute)
	c.ClearAfter = cmp.Or(c.ClearAfter, 5*time.Minute)
	return c
}

func (c MetastableLoopConfig) validate() error {
	return cmp.Or(
		within("goodput", c.Goodput, 0.1, 0.99),
		within("amplification", c.Amplification, 1.1, 100),
		within("hit_ratio", c.HitRatio, 0.1, 0.95),
		within("fill_success", c.FillSuccess, 0.01, 0.9),
		within("hold", c.Hold, 10*time.Second, maxLoopHold),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}
