package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/live"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// load reads all files before the first of them runs. One that runs only in
// virtual time is an error if it was named, and left out if it was found in a
// folder.
func (l *labRun) load(files []string, stderr io.Writer) ([]*scenario.Scenario, error) {
	var scs []*scenario.Scenario
	for _, file := range files {
		sc, err := scenario.Load(file)
		if err != nil {
			return nil, err
		}
		if l.redis != "" {
			if sc, err = scenario.LoadFor(file, live.Check); err != nil {
				if slices.Contains(l.paths, file) {
					return nil, err
				}
				fmt.Fprintf(stderr, "left out: %v\n", err)
				continue
			}
		}
		scs = append(scs, sc)
	}
	if len(scs) == 0 {
		return nil, errors.New("no scenario can be run in real time")
	}
	return scs, nil
}

// announce says what runs next and how long that takes, if it takes long.
func (l *labRun) announce(stderr io.Writer, left []*scenario.Scenario) {
	if l.redis == "" {
		return
	}
	var all time.Duration
	for _, sc := range left {
		all += sc.Duration
	}
	fmt.Fprintf(stderr, "%s: takes %v; %d left, %v in all\n", left[0].Name, left[0].Duration, len(left), all)
}
