package probes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Options configure a [Runner]. The zero value runs probes and forgets what
// they say.
type Options struct {
	// Sink takes the records that runs returned. It is called from several
	// goroutines at once, delays the next run of the probe while it runs, and
	// owns the records. Default: they are dropped.
	Sink func([]*signal.Window, []*signal.Vitals)
	// Report takes the account of every run, for metrics and logs. It is
	// called from several goroutines at once. A run cut short because the
	// runner stops has none. Default: none is kept.
	Report func(Report)
	// Jitter returns numbers from 0 up to 1, at random, from several
	// goroutines at once. Default: those of math/rand/v2.
	Jitter func() float64
}

// Runner runs probes, each at its interval.
type Runner struct {
	probes []Probe
	o      Options
}

// New returns a runner of the given probes. It starts nothing: see
// [Runner.Run]. It fails if a probe is incomplete or out of range, or if two
// share a name and a target.
func New(list []Probe, o Options) (*Runner, error) {
	r := &Runner{o: o}
	if r.o.Sink == nil {
		r.o.Sink = func([]*signal.Window, []*signal.Vitals) {}
	}
	if r.o.Report == nil {
		r.o.Report = func(Report) {}
	}
	if r.o.Jitter == nil {
		r.o.Jitter = rand.Float64
	}
	type name struct{ probe, target string }
	seen := map[name]bool{}
	for _, p := range list {
		p = p.withDefaults()
		if err := p.validate(); err != nil {
			return nil, err
		}
		n := name{p.Name, p.Target}
		if seen[n] {
			return nil, fmt.Errorf("probe %q of %q is there twice: want another name", p.Name, p.Target)
		}
		seen[n] = true
		r.probes = append(r.probes, p)
	}
	return r, nil
}

// Run runs the probes until ctx ends and closes them, then returns what
// closing them said. The first run of each is at once. A run in progress has
// its own timeout to notice that ctx ended; one that does not is abandoned.
//
// A probe that fails is run again after its interval. From the second failure
// in a row on it is given twice the time of the one before, up to [MaxBackoff]
// or its interval, whichever is longer, less up to half of it, at random: so
// that a server that comes back is not met by everybody at once. A success ends
// that. Run must be called once.
func (r *Runner) Run(ctx context.Context) error {
	errs := make([]error, len(r.probes))
	var wg sync.WaitGroup
	for i, p := range r.probes {
		wg.Go(func() {
			l := loop{Probe: p, o: r.o}
			errs[i] = l.run(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// loop runs one probe, from one goroutine.
type loop struct {
	Probe
	o Options
	// late is where the run that outlived its deadline will say that it
	// ended; nil if there is none.
	late chan outcome
	owed Result // what such a run had to say when it ended, less its vitals
	back backoff
}

// outcome is how a run ended.
type outcome struct {
	Result
	err error
}

func (l *loop) run(ctx context.Context) error {
	next := time.Now()
	for ctx.Err() == nil {
		failed := l.once(ctx)
		// Counted from when this run should have begun, so that the interval
		// holds however long runs take; but no run is made up for.
		next = next.Add(l.back.wait(l.Interval, failed, l.o.Jitter))
		if now := time.Now(); next.Before(now) {
			next = now
		}
		sleep(ctx, time.Until(next))
	}
	return l.stop()
}

// sleep returns after d, or as soon as ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// once makes one run, tells sink and report of it, and returns whether it
// failed.
func (l *loop) once(ctx context.Context) (failed bool) {
	began := time.Now()
	res := l.ask(ctx)
	res.Windows = append(l.owed.Windows, res.Windows...)
	res.Gaps += l.owed.Gaps
	res.Skipped += l.owed.Skipped
	l.owed = Result{}
	if ctx.Err() != nil {
		return false // its failure, if it failed, is ours
	}
	l.o.Report(Report{
		Probe: l.Name, Target: l.Target, Took: time.Since(began), Reason: reasonOf(res.err), Err: res.err,
		Gaps: res.Gaps, Skipped: res.Skipped, Limits: res.Limits,
	})
	if res.err != nil {
		res.Vitals = nil
	}
	if len(res.Windows)+len(res.Vitals) > 0 {
		l.o.Sink(res.Windows, res.Vitals)
	}
	return res.err != nil
}

// ask calls Run and waits until it returns or its time is over.
func (l *loop) ask(ctx context.Context) outcome {
	if l.late != nil {
		select {
		case res := <-l.late:
			// Vitals say how things are, and these are old; windows say
			// when they are of.
			l.late, l.owed = nil, res.Result
		default:
			return outcome{err: errStillRunning}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	done := make(chan outcome, 1)
	go func() { done <- l.call(ctx) }()
	select {
	case res := <-done:
		return res
	case <-ctx.Done():
		l.late = done
		return outcome{err: fmt.Errorf("no answer within %v: %w", l.Timeout, ctx.Err())}
	}
}

// call calls Run and turns a panic into an error.
func (l *loop) call(ctx context.Context) (res outcome) {
	defer func() {
		if v := recover(); v != nil {
			res = outcome{err: recovered(v)}
		}
	}()
	res.Result, res.err = l.Run(ctx)
	return res
}

// stop gives a run in progress its time to end, then closes the probe.
func (l *loop) stop() error {
	if l.late != nil {
		patience := time.NewTimer(l.Timeout)
		defer patience.Stop()
		select {
		case <-l.late:
		case <-patience.C:
		}
	}
	if l.Close == nil {
		return nil
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("close probe %q of %q: %w", l.Name, l.Target, err)
	}
	return nil
}
