package probes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// Reason says why a run failed.
type Reason string

// Reasons, as they appear in the label reason of stampede_probe_failures_total.
const (
	Succeeded Reason = ""        // it did not fail
	Failed    Reason = "error"   // it returned an error
	TimedOut  Reason = "timeout" // its deadline passed, or that of an earlier run that still runs
	Panicked  Reason = "panic"   // it panicked
)

// Report is the account of one run of a probe.
type Report struct {
	Probe  string // its Name
	Target string
	Took   time.Duration
	Reason Reason
	Err    error // nil if it succeeded; holds the stack if it panicked
	// Gaps, Skipped and Limits are those of its [Result].
	Gaps    uint64
	Skipped uint64
	Limits  []string
}

var errStillRunning = errors.New("an earlier run ignores its deadline and still runs")

// panicError is a panic of a probe.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// recovered turns the value of a panic into an error; it must be called while
// the panic unwinds the stack, so that the stack is that of the panic.
func recovered(v any) error { return &panicError{v, debug.Stack()} }

func reasonOf(err error) Reason {
	var p *panicError
	switch {
	case err == nil:
		return Succeeded
	case errors.As(err, &p):
		return Panicked
	// A connection whose deadline is the context's may notice it first.
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, errStillRunning):
		return TimedOut
	default:
		return Failed
	}
}
