package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/live"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/sim"
)

// Options configure [Run]. The zero value runs the scenario as it is.
type Options struct {
	// Seed replaces the scenario's, unless it is zero.
	Seed uint64
	// Detectors are the thresholds to run with.
	Detectors detectors.Config
	// TruthOnly runs the fleet without anybody watching it, which is several
	// times as fast: there are no findings, and only figures are checked.
	TruthOnly bool
	// Restart restarts the exporter once, soon after it first speaks of the
	// worst that the scenario expects; see [Restarts] and [Result.Restart].
	Restart bool
	// Redis is the host:port of a server to run against, in real time, instead
	// of simulating; see package live. Empty: simulate.
	Redis string
}

// fleetRig runs the fleet of a scenario, in whatever time, and keeps the account
// of it. Run is called once, and the account looked at after it.
type fleetRig interface {
	clock
	Run(ctx context.Context) error
	Figures() map[string]float64
	Onsets() []rig.Onset
}

// newRig returns the rig that o asks for. calm switches off what amplifies load;
// report takes what the processes say, one report at a time, unless it is nil.
func newRig(ctx context.Context, sc *scenario.Scenario, o Options, calm bool, report func(rig.Report)) (fleetRig, error) {
	if o.Redis != "" {
		return live.New(ctx, sc, live.Options{Redis: o.Redis, Seed: o.Seed, Calm: calm, Report: report})
	}
	return sim.New(sc, sim.Options{Seed: o.Seed, Calm: calm, Report: report})
}

// Run runs sc, which must have come from [scenario.Load] or [scenario.Parse]. An
// expectation that is not met is no error: see [Result.OK]. It may be called
// concurrently.
func Run(ctx context.Context, sc *scenario.Scenario, o Options) (*Result, error) {
	o.Seed = cmp.Or(o.Seed, sc.Seed)
	r := &Result{Scenario: sc.Name, Seed: o.Seed, Seconds: sc.Duration.Seconds()}
	restart, err := r.run(ctx, sc, o)
	if err != nil {
		return nil, err
	}
	if err := r.metastable(ctx, sc, o); err != nil {
		return nil, err
	}
	r.Restart = restart.result(sc, r.Onsets)
	if !o.TruthOnly {
		r.judgeFindings(sc)
	}
	r.judgeTruth(sc)
	return r, nil
}

// run fills in what the run itself brings, and returns the restart there was.
func (r *Result) run(ctx context.Context, sc *scenario.Scenario, o Options) (*restart, error) {
	p, clean, err := o.pipe(sc)
	if err != nil {
		return nil, fmt.Errorf("set up scenario %q: %w", sc.Name, err)
	}
	defer clean()
	report := p.report
	if o.TruthOnly {
		report = nil
	}
	s, err := newRig(ctx, sc, o, false, report)
	if err != nil {
		return nil, fmt.Errorf("set up scenario %q: %w", sc.Name, err)
	}
	if !o.TruthOnly {
		p.start(s)
	}
	err = s.Run(ctx)
	if err := errors.Join(err, p.err); err != nil {
		return nil, err
	}
	r.Truth, r.Onsets = s.Figures(), s.Onsets()
	r.Findings = make([]Finding, len(p.findings.all))
	for i, f := range p.findings.all {
		r.Findings[i] = *f
	}
	r.Incidents = p.incidents.list()
	return p.restart, nil
}

// pipe returns the exporter that o asks for. Call clean when it is done.
func (o *Options) pipe(sc *scenario.Scenario) (p *pipe, clean func(), err error) {
	dir := ""
	var x *restart
	if o.Restart && Restarts(sc) {
		x = &restart{waitsFor: worst(sc)}
		if dir, err = os.MkdirTemp("", "stampede-lab-"); err != nil {
			return nil, nil, err
		}
	}
	p = newPipe(o.Seed, o.Detectors, dir)
	p.restart = x
	clean = func() {
		_ = p.close() // nobody will ask for what it saves
		if dir != "" {
			_ = os.RemoveAll(dir) // what may be left is a few kB in a folder for such things
		}
	}
	if err = p.boot(); err != nil {
		clean()
		return nil, nil, err
	}
	return p, clean, nil
}

// unwell is the share of reads that must be served in time for a system to be
// called well.
const unwell = 0.9

// metastable finds out whether the run ended in a loop that sustains itself. A
// run that ended well did not. One that did not is run again, with the same seed
// and nothing that amplifies: if that recovers, it was the amplification alone
// that kept it down.
func (r *Result) metastable(ctx context.Context, sc *scenario.Scenario, o Options) error {
	r.Truth["metastable"] = 0
	if end, ok := r.Truth["goodput_end"]; !ok || end >= unwell {
		return nil
	}
	calm, err := newRig(ctx, sc, o, true, nil)
	if err != nil {
		return fmt.Errorf("set up scenario %q without amplification: %w", sc.Name, err)
	}
	if err := calm.Run(ctx); err != nil {
		return err
	}
	figures := calm.Figures()
	r.Truth["counterfactual_utilisation"] = figures["utilisation_end"]
	if figures["goodput_end"] < unwell {
		return nil
	}
	r.Truth["metastable"] = 1
	over := time.Duration(0) // when the last trigger was
	for i := range sc.Events {
		over = max(over, sc.Events[i].End())
	}
	for name := range sc.Caches {
		r.Onsets = append(r.Onsets, rig.Onset{Detector: "metastable-loop", Cache: name, At: over, End: sc.Duration, Lasting: true})
	}
	slices.SortFunc(r.Onsets, func(a, b rig.Onset) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Detector, b.Detector), cmp.Compare(a.Cache, b.Cache), cmp.Compare(a.Key, b.Key))
	})
	return nil
}
