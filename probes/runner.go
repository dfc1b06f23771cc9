package probes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Options configure a [Runner]. The zero value runs probes and forgets what
// they say.
type Options struct {
	// Sink takes what a successful run returned. It is called from several
	// goroutines at once, delays the next run of the probe while it runs, and
	// owns the records. Default: they are dropped.
	Sink func([]*signal.Window, []*signal.Vitals)
	// Report takes the account of every run, for metrics and logs. It is
	// called from several goroutines at once. A run cut short because the
	// runner stops has none. Default: none is kept.
	Report func(Report)
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
// its own timeout to notice that ctx ended; one that does not is abandoned. Run
// must be called once.
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
	late chan result
}

type result struct {
	windows []*signal.Window
	vitals  []*signal.Vitals
	err     error
}

func (l *loop) run(ctx context.Context) error {
	tick := time.NewTicker(l.Interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		l.once(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return l.stop()
}

// once makes one run and tells sink and report of it.
func (l *loop) once(ctx context.Context) {
	began := time.Now()
	res := l.ask(ctx)
	if ctx.Err() != nil {
		return // its failure, if it failed, is ours
	}
	l.o.Report(Report{Probe: l.Name, Target: l.Target, Took: time.Since(began), Reason: reasonOf(res.err), Err: res.err})
	if res.err == nil && len(res.windows)+len(res.vitals) > 0 {
		l.o.Sink(res.windows, res.vitals)
	}
}

// ask calls Run and waits until it returns or its time is over.
func (l *loop) ask(ctx context.Context) result {
	if l.late != nil {
		select {
		case <-l.late: // what it has to say is old
			l.late = nil
		default:
			return result{err: errStillRunning}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	done := make(chan result, 1)
	go func() { done <- l.call(ctx) }()
	select {
	case res := <-done:
		return res
	case <-ctx.Done():
		l.late = done
		return result{err: fmt.Errorf("no answer within %v: %w", l.Timeout, ctx.Err())}
	}
}

// call calls Run and turns a panic into an error.
func (l *loop) call(ctx context.Context) (res result) {
	defer func() {
		if v := recover(); v != nil {
			res = result{err: recovered(v)}
		}
	}()
	res.windows, res.vitals, res.err = l.Run(ctx)
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
