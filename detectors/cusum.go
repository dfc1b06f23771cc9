package detectors

import (
	"math"
	"time"
)

// cusum notices that a count of events has jumped to a multiple of what it used
// to be: Page's cumulative sum of the log-likelihood ratio of two Poisson rates,
// over the dispersion, as events come in clumps. It adapts slowly, and not while
// it suspects a jump, so that what it is to notice does not become normal.
type cusum struct {
	factor float64 // of the jump it looks for
	alarm  float64 // the sum that is one, in units of log-likelihood

	age      time.Duration // how long it has learned
	mean     float64       // events a second
	variance float64       // of the events of a second
	sum      float64
	suspect  time.Duration // how long it has suspected a jump
}

const (
	// cusumWarm is how long it takes to know what is normal, and cusumMemory
	// how far back that goes. A jump that lasts for longer is the new normal.
	cusumWarm   = time.Minute
	cusumMemory = 10 * time.Minute
	// cusumFloor is the least rate a second that is worth multiplying: 20
	// events a minute.
	cusumFloor = 20.0 / 60
	// cusumFrozen is the part of an alarm from which nothing is learned.
	cusumFrozen = 0.25
)

// look takes the events of the time took, and reports whether the sum is an
// alarm. Nothing is learned from them if frozen is set.
func (c *cusum) look(events float64, took time.Duration, frozen bool) bool {
	dt := took.Seconds()
	if dt <= 0 {
		return false
	}
	if c.ready() {
		step := events*math.Log(c.factor) - (c.factor-1)*c.normal()*dt
		// Beyond twice the alarm it would only take longer to come down.
		c.sum = min(max(0, c.sum+step/c.dispersion()), 2*c.alarm)
	}
	if c.sum < cusumFrozen*c.alarm {
		c.suspect = 0
	} else if c.suspect += took; c.suspect > cusumMemory && !frozen {
		*c = cusum{factor: c.factor, alarm: c.alarm}
	}
	if !frozen && c.suspect == 0 {
		c.learn(events/dt, took)
	}
	return c.sum >= c.alarm
}

func (c *cusum) learn(rate float64, took time.Duration) {
	c.age += took
	// The mean of all there is, while that is less than the memory.
	w := min(1, took.Seconds()/min(c.age, cusumMemory).Seconds())
	off := rate - c.mean
	c.mean += w * off
	c.variance = (1 - w) * (c.variance + w*off*off)
}

// ready reports whether what is normal is known.
func (c *cusum) ready() bool { return c.age >= cusumWarm }

// normal returns the events a second that are.
func (c *cusum) normal() float64 { return max(c.mean, cusumFloor) }

// dispersion returns variance over mean, the Fano factor: 1 for a Poisson
// process, more for one that comes in clumps.
func (c *cusum) dispersion() float64 { return max(1, c.variance/c.normal()) }
