package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/score"
)

// isTerminal reports whether somebody may be looking at w while it is written.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}

// showProgress writes a line on a scenario that is done.
func showProgress(w io.Writer, p score.Progress) {
	pace := 0.0
	if p.Took > 0 {
		pace = p.Simulated.Seconds() / p.Took.Seconds()
	}
	fmt.Fprintf(w, "%3d/%d %-32s %4d runs, %2d problems, %9s in %8s (%.0f times as fast)\n", p.Done, p.Scenarios, p.Scenario,
		p.Runs, p.Problems, p.Simulated.Round(time.Second), p.Took.Round(10*time.Millisecond), pace)
}
