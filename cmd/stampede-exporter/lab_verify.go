package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stampede-exporter/stampede-exporter/internal/verify"
)

// labVerifyCommand returns the command that says how often the verdict on a
// mitigation is right.
func labVerifyCommand(labClause *kingpin.CmdClause) command {
	clause := labClause.Command("verify", "Compare simulated mitigations whose effect is known, and say how often the verdict and its interval are right.")
	l := &labVerify{}
	clause.Flag("runs", "Comparisons of each kind.").Default("2000").IntVar(&l.runs)
	clause.Flag("resamples", "Resamples of each comparison.").Default("1000").IntVar(&l.resamples)
	clause.Flag("seed", "Seed of the simulation.").Default("1").Uint64Var(&l.seed)
	clause.Flag("output", "text or json.").Default("text").EnumVar(&l.output, "text", "json")
	return command{clause, l.run}
}

type labVerify struct {
	runs, resamples int
	seed            uint64
	output          string
}

// experiments are what is compared: each reduction, with traffic that halves and
// doubles, and cycles that differ little and much; with keys that were left
// alone, too.
func experiments() (all []verify.Experiment) {
	for _, ratio := range []float64{0.1, 0.5, 1, 1.3} {
		for _, cv := range []float64{0.3, 1} {
			for _, traffic := range []float64{0.5, 2} {
				all = append(all, verify.Experiment{Ratio: ratio, Traffic: traffic, CV: cv, Cycles: 60, Keys: 4})
			}
		}
		all = append(all, verify.Experiment{Ratio: ratio, Traffic: 1, CV: 0.5, Cycles: 60, Keys: 4, Control: true})
	}
	return all
}

// labVerified is one line of the table.
type labVerified struct {
	verify.Experiment
	Runs     int                    `json:"runs"`
	Covered  float64                `json:"covered"` // share of intervals that held the true ratio
	Verdicts map[verify.Verdict]int `json:"verdicts"`
}

func (l *labVerify) run(ctx context.Context, env environment) error {
	if l.runs < 1 {
		return fmt.Errorf("--runs is %d: want at least 1", l.runs)
	}
	var lines []labVerified
	for _, e := range experiments() {
		if err := ctx.Err(); err != nil {
			return err
		}
		o, err := e.Run(l.runs, l.resamples, l.seed)
		if err != nil {
			return err
		}
		lines = append(lines, labVerified{e, o.Runs, float64(o.Covered) / float64(o.Runs), o.Verdicts})
	}
	if l.output == "json" {
		enc := json.NewEncoder(env.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(lines)
	}
	return writeVerified(env.stdout, lines)
}

func writeVerified(w io.Writer, lines []labVerified) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "ratio\ttraffic\tCV\tcycles\tcontrol\tintervals that hold it\tverified\tharmful\tno effect\tinconclusive\t")
	for _, x := range lines {
		share := func(v verify.Verdict) string {
			return fmt.Sprintf("%.1f %%", 100*float64(x.Verdicts[v])/float64(x.Runs))
		}
		fmt.Fprintf(t, "%g\tx%g\t%g\t%d\t%v\t%.1f %%\t%s\t%s\t%s\t%s\t\n", x.Ratio, x.Traffic, x.CV, x.Cycles, x.Control, 100*x.Covered,
			share(verify.Verified), share(verify.Harmful), share(verify.NoEffect), share(verify.Inconclusive))
	}
	return t.Flush()
}
