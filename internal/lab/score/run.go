package score

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// Options configure [Run] and [RunDays].
type Options struct {
	// Seeds to run every scenario with; default [HeldOut](3). RunDays takes
	// those it needs, from the first of these on.
	Seeds []uint64
	// Shifts to run every scenario and seed with; default the scenario as it is.
	Shifts []Shift
	// Restart makes every run of a scenario that expects a ticket or page once
	// more, with a restart of the exporter in the middle of it.
	Restart bool
	// Detectors are the thresholds to run with.
	Detectors detectors.Config
	// Parallel is how many runs go on at once; default GOMAXPROCS. It changes
	// nothing in the outcomes.
	Parallel int
	// Progress, unless it is nil, is told of every scenario that is done, one
	// at a time.
	Progress func(Progress)
}

// Progress is said of a scenario when all its runs are done.
type Progress struct {
	Scenario        string
	Done, Scenarios int // of all
	Runs            int
	Problems        int           // false, missed or void, and figures
	Simulated       time.Duration // virtual time of the runs
	Took            time.Duration // summed over the runs
}

// job is one run.
type job struct {
	sc    *scenario.Scenario // at the pace of shift
	shift Shift
	seed  uint64
	of    int // index of the scenario
}

func (o Options) withDefaults() Options {
	if len(o.Seeds) == 0 {
		o.Seeds = HeldOut(3)
	}
	if len(o.Shifts) == 0 {
		o.Shifts = Shifts()[:1]
	}
	if o.Parallel <= 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	return o
}

// Run runs every scenario with every shift and seed, and returns what came of
// each, in that order. What was missed or found wrongly is no error. If ctx is
// done first, or a run fails, it returns the outcomes of the runs that were done,
// and the error.
func Run(ctx context.Context, scs []*scenario.Scenario, o Options) ([]Outcome, error) {
	o = o.withDefaults()
	jobs := make([]job, 0, len(scs)*len(o.Shifts)*len(o.Seeds))
	for i, sc := range scs {
		for _, shift := range o.Shifts {
			shifted := shift.Apply(sc)
			for _, seed := range o.Seeds {
				jobs = append(jobs, job{shifted, shift, seed, i})
			}
		}
	}
	return o.run(ctx, jobs)
}

// run makes all runs, those of one scenario next to each other.
func (o *Options) run(ctx context.Context, jobs []job) ([]Outcome, error) {
	outcomes := make([]Outcome, len(jobs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.Parallel)
	meter := newMeter(jobs, o.Progress)
	for n := range jobs {
		group.Go(func() error {
			began := time.Now()
			if err := o.one(ctx, &jobs[n], &outcomes[n]); err != nil {
				return err
			}
			meter.done(&jobs[n], &outcomes[n], time.Since(began))
			return nil
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(outcomes, func(out Outcome) bool { return out.Scenario == "" }), err
}

// one makes one run, and keeps of it only what counts: a run may have thousands
// of findings.
func (o *Options) one(ctx context.Context, j *job, out *Outcome) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := lab.Run(ctx, j.sc, lab.Options{Seed: j.seed, Detectors: o.Detectors})
	if err != nil {
		return fmt.Errorf("run scenario %q with seed %d: %w", j.sc.Name, j.seed, err)
	}
	judged := Judge(j.sc, r)
	judged.Shift = j.shift.Name
	if o.Restart && lab.Restarts(j.sc) {
		r, err := lab.Run(ctx, j.sc, lab.Options{Seed: j.seed, Detectors: o.Detectors, Restart: true})
		if err != nil {
			return fmt.Errorf("run scenario %q with seed %d and a restart: %w", j.sc.Name, j.seed, err)
		}
		judged.Restart = r.Restart
	}
	*out = judged
	return nil
}

// meter tells of progress.
type meter struct {
	tell func(Progress)
	mu   sync.Mutex
	left map[int]int // runs, by scenario
	said map[int]*Progress
	n    int // scenarios that are done
}

func newMeter(jobs []job, tell func(Progress)) *meter {
	m := &meter{tell: tell, left: map[int]int{}, said: map[int]*Progress{}}
	for i := range jobs {
		m.left[jobs[i].of]++
		m.said[jobs[i].of] = &Progress{Scenario: jobs[i].sc.Name}
	}
	return m
}

func (m *meter) done(j *job, out *Outcome, took time.Duration) {
	if m.tell == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.said[j.of]
	p.Runs++
	p.Problems += out.problems()
	p.Simulated += j.sc.Duration
	p.Took += took
	if m.left[j.of]--; m.left[j.of] == 0 {
		m.n++
		p.Done, p.Scenarios = m.n, len(m.said)
		m.tell(*p)
	}
}

// problems counts what [Sum] will list.
func (o *Outcome) problems() int { return len(Sum([]Outcome{*o}).Problems) }
