package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/score"
)

// labScoreCommand returns the command that says how well the detectors do.
func labScoreCommand(labClause *kingpin.CmdClause) command {
	clause := labClause.Command("score", "Run scenarios with seeds that thresholds were not chosen with, and say how well the detectors do. What they miss is no error.")
	l := &labScore{}
	clause.Arg("scenario", "Scenario files, or folders of them.").Required().StringsVar(&l.paths)
	clause.Flag("seeds", "How many seeds to run each with.").Default("3").IntVar(&l.seeds)
	clause.Flag("tuning", "Use the seeds for tuning (1 and on) instead of the held-out ones (1001 and on).").BoolVar(&l.tuning)
	clause.Flag("shift", "Run each a fourth faster and a fourth slower, too: rates, recompute times, times to live and all other times.").BoolVar(&l.shift)
	clause.Flag("output", "text or json.").Default("text").EnumVar(&l.output, "text", "json")
	return command{clause, l.run}
}

type labScore struct {
	paths         []string
	seeds         int
	tuning, shift bool
	output        string
}

// scoreReport is a score, and what it was made with.
type scoreReport struct {
	Split  string   `json:"split"` // "held-out" or "tuning"
	Seeds  []uint64 `json:"seeds"`
	Shifts []string `json:"shifts"` // "none", "fast", "slow"
	*score.Score
}

func (l *labScore) run(ctx context.Context, env environment) error {
	if l.seeds < 1 || l.seeds > score.MaxTuningSeeds {
		return fmt.Errorf("--seeds is %d: want 1 to %d", l.seeds, score.MaxTuningSeeds)
	}
	files, err := scenarioFiles(l.paths)
	if err != nil {
		return err
	}
	scs := make([]*scenario.Scenario, len(files))
	for i, file := range files {
		if scs[i], err = scenario.Load(file); err != nil {
			return err
		}
	}
	o, report := l.options()
	outcomes, err := score.Run(ctx, scs, o)
	if err != nil {
		return err
	}
	report.Score = score.Sum(outcomes)
	if l.output == "json" {
		enc := json.NewEncoder(env.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	if _, err := fmt.Fprintf(env.stdout, "%s seeds %d to %d, shifts %v\n", report.Split, o.Seeds[0], o.Seeds[len(o.Seeds)-1], report.Shifts); err != nil {
		return err
	}
	return report.WriteText(env.stdout)
}

// options turns flags into what to run, and into words.
func (l *labScore) options() (score.Options, scoreReport) {
	o := score.Options{Seeds: score.HeldOut(l.seeds), Shifts: score.Shifts()[:1]}
	r := scoreReport{Split: "held-out"}
	if l.tuning {
		o.Seeds, r.Split = score.Tuning(l.seeds), "tuning"
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
