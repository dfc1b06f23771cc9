package demo

import (
	"context"
	"sync"
	"time"
)

// Cycle is one burst of recomputes as the origin saw it: from the first that
// started alone to the moment none ran.
type Cycle struct {
	Start      time.Time
	End        time.Time
	Recomputes int           // that started
	Early      int           // of those, ahead of expiry
	Peak       int           // most at one instant
	Wasted     time.Duration // time spent, less the first to end
	FirstValue time.Duration // from Start until the first had a value
}

// Duplicates returns how many recomputes of the cycle served nobody.
func (c Cycle) Duplicates() int { return max(0, c.Recomputes-1) }

// Truth is the origin's account of a whole run.
type Truth struct {
	Recomputes    int     `json:"recomputes"` // set off by a miss
	Early         int     `json:"early"`      // ahead of expiry
	Duplicates    int     `json:"duplicates"`
	Cycles        int     `json:"cycles"`
	PeakMax       int     `json:"peak_max"`
	MeanPerCycle  float64 `json:"mean_per_cycle"`
	WastedSeconds float64 `json:"wasted_seconds"`
	BusySeconds   float64 `json:"busy_seconds"`
}

// origin takes its time, and counts. It does not queue: a budget is what it
// should be asked for at once, not what it can be made to do.
type origin struct {
	takes   time.Duration
	onCycle func(Cycle)

	mu      sync.Mutex
	running int
	cycle   Cycle
	busy    time.Duration
	first   time.Duration // duration of the first recompute to end in the cycle
	truth   Truth
}

// recompute does one piece of work: the origin's time, then store.
func (o *origin) recompute(ctx context.Context, early bool, store func(context.Context) error) error {
	start := o.begin(early)
	defer o.end(start)
	select {
	case <-time.After(o.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	return store(ctx)
}

func (o *origin) begin(early bool) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if o.running == 0 {
		o.cycle, o.busy = Cycle{Start: now}, 0
	}
	o.running++
	o.cycle.Recomputes++
	o.cycle.Peak = max(o.cycle.Peak, o.running)
	if early {
		o.cycle.Early++
		o.truth.Early++
	} else {
		o.truth.Recomputes++
	}
	return now
}

func (o *origin) end(start time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	took := now.Sub(start)
	if o.busy == 0 {
		o.first, o.cycle.FirstValue = took, now.Sub(o.cycle.Start)
	}
	o.busy += took
	o.truth.BusySeconds += took.Seconds()
	if o.running--; o.running > 0 {
		return
	}
	o.cycle.End = now
	o.cycle.Wasted = o.busy - o.first
	t := &o.truth
	t.Cycles++
	t.Duplicates += o.cycle.Duplicates()
	t.PeakMax = max(t.PeakMax, o.cycle.Peak)
	t.WastedSeconds += o.cycle.Wasted.Seconds()
	t.MeanPerCycle = float64(t.Recomputes+t.Early) / float64(t.Cycles)
	o.onCycle(o.cycle)
}

// account returns the truth so far.
func (o *origin) account() Truth {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.truth
}
