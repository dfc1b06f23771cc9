package score

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// Options configure [Run].
type Options struct {
	// Seeds to run every scenario with; default [HeldOut](3).
	Seeds []uint64
	// Shifts to run every scenario and seed with; default the scenario as it is.
	Shifts []Shift
	// Detectors are the thresholds to run with.
	Detectors detectors.Config
	// Parallel is how many runs go on at once; default GOMAXPROCS. It changes
	// nothing in the outcomes.
	Parallel int
}

// Run runs every scenario with every shift and seed, and returns what came of
// each, in that order. What was missed or found wrongly is no error.
func Run(ctx context.Context, scs []*scenario.Scenario, o Options) ([]Outcome, error) {
	if len(o.Seeds) == 0 {
		o.Seeds = HeldOut(3)
	}
	if len(o.Shifts) == 0 {
		o.Shifts = Shifts()[:1]
	}
	if o.Parallel <= 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	outcomes := make([]Outcome, len(scs)*len(o.Shifts)*len(o.Seeds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.Parallel)
	next := 0
	for _, sc := range scs {
		for _, shift := range o.Shifts {
			shifted := shift.Apply(sc)
			for _, seed := range o.Seeds {
				out := &outcomes[next]
				next++
				group.Go(func() error { return o.one(ctx, shifted, shift, seed, out) })
			}
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return outcomes, nil
}

// one makes one run, and keeps of it only what counts: a run may have thousands
// of findings.
func (o *Options) one(ctx context.Context, sc *scenario.Scenario, shift Shift, seed uint64, out *Outcome) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := lab.Run(ctx, sc, lab.Options{Seed: seed, Detectors: o.Detectors})
	if err != nil {
		return fmt.Errorf("run scenario %q with seed %d: %w", sc.Name, seed, err)
	}
	*out = Judge(sc, r)
	out.Shift = shift.Name
	return nil
}
