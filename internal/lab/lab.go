package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
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
}

// Run runs sc, which must have come from [scenario.Load] or [scenario.Parse]. An
// expectation that is not met is no error: see [Result.OK]. It may be called
// concurrently.
func Run(ctx context.Context, sc *scenario.Scenario, o Options) (*Result, error) {
	seed := cmp.Or(o.Seed, sc.Seed)
	r := &Result{Scenario: sc.Name, Seed: seed, Seconds: sc.Duration.Seconds()}
	if err := r.run(ctx, sc, o); err != nil {
		return nil, err
	}
	if err := r.metastable(ctx, sc, seed); err != nil {
		return nil, err
	}
	if !o.TruthOnly {
		r.judgeFindings(sc)
	}
	r.judgeTruth(sc)
	return r, nil
}

// run fills in what the run itself brings.
func (r *Result) run(ctx context.Context, sc *scenario.Scenario, o Options) error {
	p, err := newPipe(r.Seed, o.Detectors)
	if err != nil {
		return fmt.Errorf("set up scenario %q: %w", sc.Name, err)
	}
	so := sim.Options{Seed: r.Seed}
	if !o.TruthOnly {
		so.Report = p.report
	}
	s, err := sim.New(sc, so)
	if err != nil {
		return fmt.Errorf("set up scenario %q: %w", sc.Name, err)
	}
	if !o.TruthOnly {
		p.start(s)
	}
	if err := errors.Join(s.Run(ctx), p.err); err != nil {
		return err
	}
	r.Truth, r.Onsets = s.Figures(), s.Onsets()
	for _, f := range p.findings.all {
		r.Findings = append(r.Findings, *f)
	}
	return nil
}

// unwell is the share of reads that must be served in time for a system to be
// called well.
const unwell = 0.9

// metastable finds out whether the run ended in a loop that sustains itself. A
// run that ended well did not. One that did not is run again, with the same seed
// and nothing that amplifies: if that recovers, it was the amplification alone
// that kept it down.
func (r *Result) metastable(ctx context.Context, sc *scenario.Scenario, seed uint64) error {
	r.Truth["metastable"] = 0
	if end, ok := r.Truth["goodput_end"]; !ok || end >= unwell {
		return nil
	}
	calm, err := sim.New(sc, sim.Options{Seed: seed, Calm: true})
	if err != nil {
		return fmt.Errorf("set up scenario %q without amplification: %w", sc.Name, err)
	}
	if err := calm.Run(ctx); err != nil {
		return err
	}
	if calm.Figures()["goodput_end"] < unwell {
		return nil
	}
	r.Truth["metastable"] = 1
	over := time.Duration(0) // when the last trigger was
	for i := range sc.Events {
		over = max(over, sc.Events[i].End())
	}
	for name := range sc.Caches {
		r.Onsets = append(r.Onsets, sim.Onset{Detector: "metastable-loop", Cache: name, At: over})
	}
	slices.SortFunc(r.Onsets, func(a, b sim.Onset) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Detector, b.Detector), cmp.Compare(a.Cache, b.Cache), cmp.Compare(a.Key, b.Key))
	})
	return nil
}
