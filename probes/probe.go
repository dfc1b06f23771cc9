package probes

import (
	"context"
	"fmt"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// MinInterval is the shortest interval of a probe, and DefaultInterval that of
// one that gives none: records older than a few seconds read as silence.
const (
	MinInterval     = 100 * time.Millisecond
	DefaultInterval = time.Second
)

// timeoutShare is how much of its interval a run may take, in percent, unless
// the probe says otherwise: the rest is for the run to notice and return.
const timeoutShare = 80

// Probe is one question to one target, asked again and again.
type Probe struct {
	// Name says what is asked, in kebab-case: "redis-info". Name and Target
	// together name the probe in metrics; no two probes share both.
	Name string
	// Target says who is asked: an address, without user name or password.
	Target string
	// Interval is the time from the start of one run to the start of the
	// next, at least [MinInterval]. Default [DefaultInterval].
	Interval time.Duration
	// Timeout bounds one run; at most Interval. Default: 80 % of Interval.
	Timeout time.Duration
	// Run asks once. It must return soon after ctx ends: nothing else stops
	// it, and there is no further run until it has. It is never called twice
	// at once. A panic in it counts as a failed run. What it returns is the
	// caller's to keep.
	Run func(ctx context.Context) (Result, error)
	// Close, if set, is called once after the last run, to let go of
	// connections.
	Close func() error
}

// Result is what one run of a probe came to.
type Result struct {
	// Windows tell of single keys. Those of a failed run count too: they are
	// what was heard before it failed.
	Windows []*signal.Window
	// Vitals tell of whole caches. Those of a failed run are dropped: they
	// would say that the probe sees.
	Vitals []*signal.Vitals
	// Gaps counts stretches of time in which the probe could not see what
	// happened: a subscription that was dropped, lines of a log that were
	// skipped. What happened in them is unknown, and not zero.
	Gaps uint64
	// Skipped counts events that the probe saw and left out, because they
	// were more than its budget allows.
	Skipped uint64
	// Limits says, one sentence each, what keeps the probe from seeing all it
	// could: rights it lacks, settings of the server. The same sentences come
	// with each run, failed or not, for as long as they hold; the order is of
	// no matter. No sentence holds a key or a password.
	Limits []string
}

func (p Probe) withDefaults() Probe {
	if p.Interval == 0 {
		p.Interval = DefaultInterval
	}
	if p.Timeout == 0 {
		p.Timeout = p.Interval * timeoutShare / 100
	}
	return p
}

func (p Probe) validate() error {
	switch {
	case p.Name == "":
		return fmt.Errorf("probe of %q: Name is empty", p.Target)
	case p.Target == "":
		return fmt.Errorf("probe %q: Target is empty", p.Name)
	case p.Run == nil:
		return fmt.Errorf("probe %q of %q: Run is nil", p.Name, p.Target)
	case p.Interval < MinInterval:
		return fmt.Errorf("probe %q of %q: Interval is %v: want at least %v", p.Name, p.Target, p.Interval, MinInterval)
	case p.Timeout < 0 || p.Timeout > p.Interval:
		return fmt.Errorf("probe %q of %q: Timeout is %v: want more than 0s, at most the interval of %v", p.Name, p.Target, p.Timeout, p.Interval)
	}
	return nil
}
