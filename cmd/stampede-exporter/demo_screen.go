package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/demo"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
)

// demoScreen is what the demo shows while it runs: lines that stay, and on a
// terminal one below them that says where the pages are. Its methods may be
// called concurrently.
type demoScreen struct {
	mu       sync.Mutex
	w        io.Writer // nil shows nothing
	terminal bool
	began    time.Time
	lasts    time.Duration
	url      string
	cycles   int
	drawn    bool // the status line is on screen
}

func newDemoScreen(w io.Writer, on bool) *demoScreen {
	s := &demoScreen{began: time.Now()}
	if !on {
		return s
	}
	s.w = w
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		s.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return s
}

// line writes a line that stays.
func (s *demoScreen) line(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lineLocked(format, a...)
}

func (s *demoScreen) lineLocked(format string, a ...any) {
	if s.w == nil {
		return
	}
	s.eraseLocked()
	fmt.Fprintf(s.w, format+"\n", a...)
}

func (s *demoScreen) eraseLocked() {
	if s.drawn {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.drawn = false
	}
}

func (s *demoScreen) intro(d *demoRun, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.lasts, s.url = time.Now(), d.lasts, "http://"+address
	protection := "Nothing keeps readers from recomputing at once."
	if d.o.Protect != demo.ProtectNone {
		protection = "Protection: " + d.o.Protect + "."
	}
	s.lineLocked("%d application instances read one hot key %v times a second. Its value takes %v", d.o.Instances, d.o.Rate, d.o.Recompute)
	s.lineLocked("to make, lives %v, and the origin can make %d at once. %s\n", d.o.TTL, d.o.Budget, protection)
	s.lineLocked("  page     %s/", s.url)
	s.lineLocked("  metrics  %s/metrics", s.url)
	s.lineLocked("  ends     in %v, or with Ctrl-C\n", d.lasts)
}

// status redraws the line that does not stay.
func (s *demoScreen) status() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w == nil || !s.terminal || s.url == "" {
		return
	}
	left := max(0, s.lasts-time.Since(s.began)).Round(time.Second)
	fmt.Fprintf(s.w, "\r\x1b[K  %s/  %s/metrics  %v left, Ctrl-C ends", s.url, s.url, left)
	s.drawn = true
}

// cycle shows what one expiry cost.
func (s *demoScreen) cycle(c demo.Cycle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cycles++
	what := "expiry"
	if c.Early == c.Recomputes {
		what = "refresh"
	}
	s.lineLocked("%6.1fs  %-7s %3d  %4d recomputes, %d in vain, %d at once; %.1f origin seconds wasted",
		c.End.Sub(s.began).Seconds(), what, s.cycles, c.Recomputes, c.Duplicates(), c.Peak, c.Wasted.Seconds())
}

// incident shows an incident that opened.
func (s *demoScreen) incident(i *incident.Incident) {
	s.line("%6.1fs  %-11s  %s, %v after its onset\n         %s\n         %s/incidents/%s",
		time.Since(s.began).Seconds(), strings.ToUpper(i.Severity.String()), i.Detector,
		i.Opened.Sub(i.Onset).Round(time.Millisecond), i.Finding.Summary, s.url, i.ID)
}

// result shows the two accounts side by side.
func (s *demoScreen) result(d *demoRun, r *demo.Result) {
	t, f := r.Truth, r.Found
	s.line("\n%-28s %12s %12s", "", "exporter", "truth")
	s.line("%-28s %12d %12d", "recomputes set off by a miss", f.Recomputes, t.Recomputes)
	if d.o.Protect == demo.ProtectXFetch {
		s.line("%-28s %12d %12d", "recomputes ahead of expiry", f.Early, t.Early)
	} else {
		s.line("%-28s %12d %12d", "of them in vain", f.Duplicates, t.Duplicates)
	}
	if f.Peak > 0 {
		s.line("%-28s %12d %12d", "most at once", f.Peak, t.PeakMax)
	}
	if d.o.Protect != demo.ProtectXFetch {
		s.line("%-28s %12.1f %12.1f", "origin seconds wasted", f.WastedSeconds, t.WastedSeconds)
	}
	expected, grounds := d.o.Expected()
	if expected > 0 {
		grounds = fmt.Sprintf("theory: %.1f, %s", expected, grounds)
	}
	s.line("\n%d reads, %d failed; %d bursts of %.1f recomputes on average (%s).", r.Reads, r.Failed, t.Cycles, t.MeanPerCycle, grounds)
	for _, what := range r.Disagreements {
		s.line("DISAGREES: %s.", what)
	}
	if r.OK {
		s.line("The exporter found what happened, and nothing else.")
	}
}

func (s *demoScreen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eraseLocked()
}
