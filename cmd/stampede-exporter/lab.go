package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
)

// labRunCommand returns the command that runs scenarios, in virtual time or real.
func labRunCommand(labClause *kingpin.CmdClause) command {
	clause := labClause.Command("run", "Run scenarios, and exit with 1 if an expectation of one is not met.")
	l := &labRun{}
	clause.Arg("scenario", "Scenario files, or folders of them.").Required().StringsVar(&l.paths)
	clause.Flag("output", "text or json.").Default("text").EnumVar(&l.output, "text", "json")
	clause.Flag("seed", "Seed to run with instead of the scenarios' own.").Uint64Var(&l.seed)
	clause.Flag("restart", "Restart the exporter soon after it first speaks of the worst that is expected.").BoolVar(&l.restart)
	clause.Flag("redis.addr", "Run in real time, with real clients of the Redis at this host:port, instead of simulating. Each scenario then takes as long as it says. Nothing is flushed: the keys are the lab's own, and deleted at the end.").StringVar(&l.redis)
	return command{clause, l.run}
}

type labRun struct {
	paths  []string
	output string
	seed   uint64
	redis  string
	// restart is of the exporter, in the middle of each run.
	restart bool
}

func (l *labRun) run(ctx context.Context, env environment) error {
	files, err := scenarioFiles(l.paths)
	if err != nil {
		return err
	}
	scs, err := l.load(files, env.stderr)
	if err != nil {
		return err
	}
	failed := 0
	for i, sc := range scs {
		l.announce(env.stderr, scs[i:])
		r, err := lab.Run(ctx, sc, lab.Options{Seed: l.seed, Redis: l.redis, Restart: l.restart})
		if err != nil {
			return err
		}
		if !r.OK {
			failed++
		}
		if err := l.show(env.stdout, r); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d scenarios did not go as expected", failed, len(scs))
	}
	return nil
}

// show writes one result: an object to a line, or a few lines to read.
func (l *labRun) show(w io.Writer, r *lab.Result) error {
	if l.output == "json" {
		return json.NewEncoder(w).Encode(r)
	}
	verdict := "ok"
	if !r.OK {
		verdict = "FAILED"
	}
	lines := []string{fmt.Sprintf("%-7s %s, seed %d", verdict, r.Scenario, r.Seed)}
	for i := range r.Incidents {
		lines = append(lines, showIncident(&r.Incidents[i])...)
	}
	if x := r.Restart; x != nil {
		lines = append(lines, fmt.Sprintf("        the exporter was away from %.3fs to %.3fs: %d of %d incidents found again, %d opened anew, %d paged twice",
			x.Stopped, x.Up, x.Found, x.Due, x.Anew, x.DoublePages))
	}
	for _, c := range r.Failures() {
		lines = append(lines, fmt.Sprintf("        wanted %s: %s", c.What, c.Why))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// showIncident writes an incident, and below it what it brought about. One that
// turned out to be part of another is among what that brought about.
func showIncident(i *lab.Incident) []string {
	if i.PartOf != "" {
		return nil
	}
	lines := []string{fmt.Sprintf("        %9.3fs  %-6s %s: %s", i.Opened, i.Severity, i.Detector, i.Summary)}
	for _, c := range i.Children {
		lines = append(lines, fmt.Sprintf("        %9.3fs    %-6s %s: %s", c.Detected, c.Severity, c.Detector, c.Summary))
	}
	return lines
}

// scenarioFiles returns the files that paths name: a folder stands for the .yml
// and .yaml files in it, but not for those in folders of its own.
func scenarioFiles(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("look for scenarios: %w", err)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, fmt.Errorf("look for scenarios: %w", err)
		}
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".yml" || ext == ".yaml") {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
	}
	if len(files) == 0 {
		return nil, errors.New("there is no scenario: want .yml or .yaml files")
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}
