package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/score"
)

// labScoreCommand returns the command that says how well the detectors do.
func labScoreCommand(labClause *kingpin.CmdClause) command {
	clause := labClause.Command("score", "Run scenarios with seeds that thresholds were not chosen with, and say how well the detectors do. What they miss is no error, but for --gate.")
	l := &labScore{}
	clause.Arg("scenario", "Scenario files, or folders of them.").Required().StringsVar(&l.paths)
	clause.Flag("seeds", "How many seeds to run each with.").Default("3").IntVar(&l.seeds)
	clause.Flag("tuning", "Use the seeds for tuning (1 and on) instead of the held-out ones (1001 and on).").BoolVar(&l.tuning)
	clause.Flag("shift", "Run each a fourth faster and a fourth slower, too: rates, recompute times, times to live and all other times.").BoolVar(&l.shift)
	clause.Flag("restart", "Run each that expects a ticket or page once more, and restart the exporter in the middle of it.").BoolVar(&l.restart)
	clause.Flag("quiet-days", "Run only scenarios that expect nothing and allow no page, with one seed after the other, until they have covered so many simulated days.").FloatVar(&l.quietDays)
	clause.Flag("max-reads", "Leave out scenarios with more reads than this, which take the longest. 0: none.").IntVar(&l.maxReads)
	clause.Flag("gate", "Exit with 1 if the score is below what the other gate flags say.").BoolVar(&l.gated)
	clause.Flag("gate.false-pages", "False pages there may be.").Default("0").IntVar(&l.gate.FalsePages)
	clause.Flag("gate.page-recall", "Least share of expected pages that must come.").Default("0.95").FloatVar(&l.gate.PageRecall)
	clause.Flag("gate.double-pages", "Pages that a restart may repeat.").Default("0").IntVar(&l.gate.DoublePages)
	clause.Flag("progress", "Write a line to stderr for each scenario that is done, even if that is no terminal.").BoolVar(&l.progress)
	clause.Flag("output", "text or json.").Default("text").EnumVar(&l.output, "text", "json")
	return command{clause, l.run}
}

type labScore struct {
	paths                         []string
	seeds, maxReads               int
	tuning, shift, restart, gated bool
	progress                      bool
	quietDays                     float64
	gate                          score.Gate
	output                        string
}

// scoreReport is a score, and what it was made with.
type scoreReport struct {
	Split  string   `json:"split"`  // "held-out" or "tuning"
	Seeds  []uint64 `json:"seeds"`  // of each scenario; with quiet days, the first of them
	Shifts []string `json:"shifts"` // "none", "fast", "slow"
	// Partial is set if the score was interrupted: it is of the runs that were
	// done by then.
	Partial bool `json:"partial,omitempty"`
	*score.Score
}

func (l *labScore) run(ctx context.Context, env environment) error {
	if err := l.check(); err != nil {
		return err
	}
	scs, err := l.load()
	if err != nil {
		return err
	}
	o, report := l.options()
	if l.progress || isTerminal(env.stderr) {
		o.Progress = func(p score.Progress) { showProgress(env.stderr, p) }
	}
	outcomes, err := l.score(ctx, scs, o)
	interrupted := ctx.Err() != nil && errors.Is(err, context.Canceled)
	if err != nil && !interrupted {
		return err
	}
	report.Partial, report.Score = interrupted, score.Sum(outcomes)
	if err := l.show(env, report); err != nil {
		return err
	}
	if interrupted {
		return fmt.Errorf("interrupted after %d runs", len(outcomes))
	}
	if l.gated {
		return report.Check(l.gate)
	}
	return nil
}

// score makes the runs.
func (l *labScore) score(ctx context.Context, scs []*scenario.Scenario, o score.Options) ([]score.Outcome, error) {
	if l.quietDays > 0 {
		return score.RunDays(ctx, scs, l.quietDays, o)
	}
	return score.Run(ctx, scs, o)
}

func (l *labScore) check() error {
	switch {
	case l.seeds < 1 || l.seeds > score.MaxTuningSeeds:
		return fmt.Errorf("--seeds is %d: want 1 to %d", l.seeds, score.MaxTuningSeeds)
	case l.quietDays < 0 || l.quietDays > score.MaxDays:
		return fmt.Errorf("--quiet-days is %g: want 0 to %d", l.quietDays, score.MaxDays)
	case l.quietDays > 0 && l.tuning:
		return errors.New("--quiet-days takes more seeds than there are for tuning: leave out --tuning")
	case l.maxReads < 0:
		return fmt.Errorf("--max-reads is %d: want 0 or more", l.maxReads)
	case l.gate.PageRecall < 0 || l.gate.PageRecall > 1:
		return fmt.Errorf("--gate.page-recall is %g: want 0 to 1", l.gate.PageRecall)
	}
	return nil
}

// load reads the scenarios that the flags leave in.
func (l *labScore) load() ([]*scenario.Scenario, error) {
	files, err := scenarioFiles(l.paths)
	if err != nil {
		return nil, err
	}
	scs := make([]*scenario.Scenario, len(files))
	for i, file := range files {
		if scs[i], err = scenario.Load(file); err != nil {
			return nil, err
		}
	}
	scs = slices.DeleteFunc(scs, func(sc *scenario.Scenario) bool {
		return l.quietDays > 0 && !score.Quiet(sc) || l.maxReads > 0 && sc.Reads() > float64(l.maxReads)
	})
	if len(scs) == 0 {
		return nil, fmt.Errorf("none of %d scenarios is left by the flags", len(files))
	}
	return scs, nil
}

// options turns flags into what to run, and into words.
func (l *labScore) options() (score.Options, scoreReport) {
	o := score.Options{Seeds: score.HeldOut(l.seeds), Shifts: score.Shifts()[:1], Restart: l.restart}
	r := scoreReport{Split: "held-out"}
	if l.tuning {
		o.Seeds, r.Split = score.Tuning(l.seeds), "tuning"
	}
	if l.quietDays > 0 {
		o.Seeds = score.HeldOut(1)
	}
	if l.shift {
		o.Shifts = score.Shifts()
	}
	for _, s := range o.Shifts {
		name := s.Name
		if name == "" {
			name = "none"
		}
		r.Shifts = append(r.Shifts, name)
	}
	r.Seeds = o.Seeds
	return o, r
}

// show writes the score.
func (l *labScore) show(env environment, r scoreReport) error {
	if l.output == "json" {
		enc := json.NewEncoder(env.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	seeds := fmt.Sprintf("%d to %d", r.Seeds[0], r.Seeds[len(r.Seeds)-1])
	if l.quietDays > 0 {
		seeds = fmt.Sprintf("%d and on", r.Seeds[0])
	}
	if r.Partial {
		if _, err := fmt.Fprintln(env.stdout, "INTERRUPTED: this is of the runs that were done"); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(env.stdout, "%s seeds %s, shifts %v\n", r.Split, seeds, r.Shifts); err != nil {
		return err
	}
	return r.WriteText(env.stdout)
}
