package probes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

type runFunc = func(context.Context) (probes.Result, error)

func answer(context.Context) (probes.Result, error) {
	return probes.Result{Vitals: []*signal.Vitals{{Cache: "feed"}}}, nil
}

// watch runs one probe for the given time of a fake clock and returns the
// reports, without their errors, and the records its runs gave.
func watch(t *testing.T, p probes.Probe, d time.Duration) (reports []probes.Report, vitals []*signal.Vitals) {
	t.Helper()
	p.Name, p.Target = "thing", "here:1"
	r, err := probes.New([]probes.Probe{p}, probes.Options{
		Sink:   func(_ []*signal.Window, v []*signal.Vitals) { vitals = append(vitals, v...) },
		Report: func(r probes.Report) { reports = append(reports, r) },
		Jitter: func() float64 { return 1 }, // tries again as soon as it may
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return reports, vitals
}

func TestRunnerReportsHowARunEnded(t *testing.T) {
	hang := func(ctx context.Context) (probes.Result, error) {
		<-ctx.Done()
		return probes.Result{}, ctx.Err()
	}
	tests := []struct {
		name   string
		run    runFunc
		took   time.Duration
		reason probes.Reason
		err    string
		vitals int
	}{
		{"an answer is a success and its records are handed on", answer, 0, probes.Succeeded, "", 1},
		{"no record is a success too", func(context.Context) (probes.Result, error) {
			return probes.Result{}, nil
		}, 0, probes.Succeeded, "", 0},
		{"an error is a failure and its vitals are dropped", func(ctx context.Context) (probes.Result, error) {
			res, _ := answer(ctx)
			return res, errors.New("no route")
		}, 0, probes.Failed, "no route", 0},
		{"a panic is a failure that holds the stack", func(context.Context) (probes.Result, error) {
			panic("oh dear")
		}, 0, probes.Panicked, "TestRunnerReportsHowARunEnded", 0},
		{"a run is cut off after 80 % of its interval", hang, 8 * time.Second, probes.TimedOut, "within 8s", 0},
		{"a deadline a connection noticed first is a timeout", func(context.Context) (probes.Result, error) {
			return probes.Result{}, fmt.Errorf("read: %w", context.DeadlineExceeded)
		}, 0, probes.TimedOut, "read", 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reports, vitals := watch(t, probes.Probe{Interval: 10 * time.Second, Run: tc.run}, 9*time.Second)
				want := []probes.Report{{Probe: "thing", Target: "here:1", Took: tc.took, Reason: tc.reason}}
				if diff := cmp.Diff(want, reports, cmpopts.IgnoreFields(probes.Report{}, "Err")); diff != "" {
					t.Fatalf("reports (-want +got):\n%s", diff)
				}
				if got := fmt.Sprint(reports[0].Err); tc.err != "" && !strings.Contains(got, tc.err) {
					t.Errorf("error is %q, want it to mention %q", got, tc.err)
				}
				if len(vitals) != tc.vitals {
					t.Errorf("got %d records, want %d", len(vitals), tc.vitals)
				}
			})
		})
	}
}

func TestRunnerKeepsTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var starts []time.Duration
		watch(t, probes.Probe{Interval: 10 * time.Second, Run: func(ctx context.Context) (probes.Result, error) {
			starts = append(starts, time.Since(began))
			select { // a run that takes its time does not put off the next
			case <-ctx.Done():
			case <-time.After(3 * time.Second):
			}
			return answer(ctx)
		}}, 35*time.Second)
		want := []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second}
		if !slices.Equal(starts, want) {
			t.Errorf("runs began at %v, want %v", starts, want)
		}
	})
}

func TestRunnerAsksOnceASecondByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports, _ := watch(t, probes.Probe{Run: answer}, 4500*time.Millisecond)
		if len(reports) != 5 {
			t.Errorf("got %d runs in 4.5 s, want 5", len(reports))
		}
	})
}

func TestRunnerDoesNotRunAProbeThatStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		stuck := func(ctx context.Context) (probes.Result, error) {
			if runs++; runs == 1 {
				<-time.After(25 * time.Second) // whatever ctx says
			}
			return answer(ctx)
		}
		reports, vitals := watch(t, probes.Probe{Interval: 10 * time.Second, Run: stuck}, 35*time.Second)
		var reasons []probes.Reason
		for _, r := range reports {
			reasons = append(reasons, r.Reason)
		}
		want := []probes.Reason{probes.TimedOut, probes.TimedOut, probes.TimedOut, probes.Succeeded}
		if !slices.Equal(reasons, want) {
			t.Errorf("got %q, want %q: the first run ends at 25 s", reasons, want)
		}
		if runs != 2 || len(vitals) != 1 {
			t.Errorf("got %d runs and %d records, want 2 and 1: the late answer is old", runs, len(vitals))
		}
	})
}

func TestRunnerHandsOnWindowsOfARunThatWasLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, windows, gaps := 0, 0, uint64(0)
		p := probes.Probe{Name: "thing", Target: "here:1", Interval: 10 * time.Second, Run: func(context.Context) (probes.Result, error) {
			if runs++; runs == 1 {
				<-time.After(9 * time.Second)
			}
			return probes.Result{Windows: []*signal.Window{{Cache: "feed"}}, Gaps: 1}, nil
		}}
		r, err := probes.New([]probes.Probe{p}, probes.Options{
			Sink:   func(ws []*signal.Window, _ []*signal.Vitals) { windows += len(ws) },
			Report: func(r probes.Report) { gaps += r.Gaps },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if runs != 2 || windows != 2 || gaps != 2 {
			t.Errorf("%d runs, %d windows, %d gaps, want 2 of each", runs, windows, gaps)
		}
	})
}

func TestRunnerSurvivesAPanicAndRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		reports, _ := watch(t, probes.Probe{Interval: time.Second, Run: func(ctx context.Context) (probes.Result, error) {
			if runs++; runs == 1 {
				panic("only once")
			}
			return answer(ctx)
		}}, 1500*time.Millisecond)
		if len(reports) != 2 || reports[1].Reason != probes.Succeeded {
			t.Errorf("got %+v, want a panic and a success", reports)
		}
	})
}

func TestRunnerStopsWithoutBlamingTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		returned, closed := false, false
		reports, _ := watch(t, probes.Probe{
			Interval: 10 * time.Second,
			Run: func(ctx context.Context) (probes.Result, error) {
				<-ctx.Done()
				returned = true
				return probes.Result{}, ctx.Err()
			},
			Close: func() error {
				closed = true
				if !returned {
					t.Error("closed while it ran")
				}
				return nil
			},
		}, time.Second)
		if len(reports) != 0 {
			t.Errorf("got %+v, want no report of a run that was cut short", reports)
		}
		if !closed {
			t.Error("the probe was not closed")
		}
	})
}

func TestRunnerAbandonsAProbeThatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		release := make(chan struct{})
		closed := false
		watch(t, probes.Probe{
			Interval: 10 * time.Second,
			Run: func(context.Context) (probes.Result, error) {
				<-release
				return probes.Result{}, nil
			},
			Close: func() error { closed = true; return nil },
		}, time.Second)
		if got := time.Since(began); got != 9*time.Second {
			t.Errorf("stopping took until %v, want 1s and the timeout of 8s", got)
		}
		if !closed {
			t.Error("the probe was not closed")
		}
		close(release)
	})
}

func TestRunnerSaysWhatClosingSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("broken pipe")
		r, err := probes.New([]probes.Probe{{Name: "a", Target: "t", Run: answer, Close: func() error { return cause }}}, probes.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.Run(ctx); !errors.Is(err, cause) {
			t.Errorf("got %v, want %v", err, cause)
		}
	})
}

func TestNewRefusesWhatCannotRun(t *testing.T) {
	good := probes.Probe{Name: "a", Target: "t", Run: answer}
	with := func(change func(*probes.Probe)) []probes.Probe {
		p := good
		change(&p)
		return []probes.Probe{p}
	}
	tests := []struct {
		name string
		list []probes.Probe
		want string // empty: accepted
	}{
		{"no probe at all is fine", nil, ""},
		{"a probe with defaults is fine", []probes.Probe{good}, ""},
		{"the shortest interval is fine", with(func(p *probes.Probe) { p.Interval = probes.MinInterval }), ""},
		{"a timeout of the whole interval is fine", with(func(p *probes.Probe) { p.Timeout = probes.DefaultInterval }), ""},
		{"one name at two targets is fine", []probes.Probe{good, {Name: "a", Target: "u", Run: answer}}, ""},
		{"a name is missing", with(func(p *probes.Probe) { p.Name = "" }), "Name is empty"},
		{"a target is missing", with(func(p *probes.Probe) { p.Target = "" }), "Target is empty"},
		{"a function is missing", with(func(p *probes.Probe) { p.Run = nil }), "Run is nil"},
		{"the interval is too short", with(func(p *probes.Probe) { p.Interval = probes.MinInterval - 1 }), "want at least 100ms"},
		{"the interval is negative", with(func(p *probes.Probe) { p.Interval = -1 }), "Interval is -1ns"},
		{"the timeout is longer than the interval", with(func(p *probes.Probe) { p.Timeout = probes.DefaultInterval + 1 }), "at most the interval of 1s"},
		{"the timeout is negative", with(func(p *probes.Probe) { p.Timeout = -1 }), "Timeout is -1ns"},
		{"two probes are the same", []probes.Probe{good, good}, "twice"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := probes.New(tc.list, probes.Options{})
			if tc.want == "" && err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want an error that mentions %q", err, tc.want)
			}
		})
	}
}

func TestRunnerHandsOnWhatAFailedRunHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var windows []*signal.Window
		var reports []probes.Report
		p := probes.Probe{Name: "thing", Target: "here:1", Run: func(context.Context) (probes.Result, error) {
			return probes.Result{Windows: []*signal.Window{{Cache: "feed"}}, Gaps: 1, Skipped: 7, Limits: []string{"No."}}, errors.New("cut off")
		}}
		r, err := probes.New([]probes.Probe{p}, probes.Options{
			Sink:   func(ws []*signal.Window, _ []*signal.Vitals) { windows = append(windows, ws...) },
			Report: func(r probes.Report) { reports = append(reports, r) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := r.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(windows) != 1 || len(reports) != 1 || reports[0].Gaps != 1 || reports[0].Skipped != 7 || len(reports[0].Limits) != 1 {
			t.Errorf("got %d windows and %+v, want the window, and the gap and what was skipped in the report", len(windows), reports)
		}
	})
}

func TestRunnerBacksOffFromAProbeThatFails(t *testing.T) {
	tests := []struct {
		name     string
		interval time.Duration
		jitter   float64
		works    int // the run that succeeds, from 1; 0: none
		want     []time.Duration
	}{
		{"each time twice as long, up to 15 s", time.Second, 0, 0, []time.Duration{0, 1, 3, 7, 15, 30, 45}},
		{"less up to half of that, at random", time.Second, 0.5, 0, []time.Duration{0, 1, 2500, 5500, 11500, 22750, 34000, 45250}},
		{"never sooner than its interval", 10 * time.Second, 1, 0, []time.Duration{0, 10, 20, 30, 40, 50}},
		{"nor later, if that is long", 20 * time.Second, 0, 0, []time.Duration{0, 20, 40}},
		{"a success ends it", 10 * time.Second, 0, 3, []time.Duration{0, 10, 25, 35, 45}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var starts []time.Duration
				p := probes.Probe{Name: "thing", Target: "here:1", Interval: tc.interval, Run: func(ctx context.Context) (probes.Result, error) {
					starts = append(starts, time.Since(began))
					if len(starts) == tc.works {
						return answer(ctx)
					}
					return probes.Result{}, errors.New("no route")
				}}
				r, err := probes.New([]probes.Probe{p}, probes.Options{Jitter: func() float64 { return tc.jitter }})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 50500*time.Millisecond)
				defer cancel()
				if err := r.Run(ctx); err != nil {
					t.Fatal(err)
				}
				for i, d := range tc.want {
					if tc.want[i] = d * time.Second; d >= 1000 {
						tc.want[i] = d * time.Millisecond
					}
				}
				if diff := cmp.Diff(tc.want, starts); diff != "" {
					t.Errorf("runs began (-want +got):\n%s", diff)
				}
			})
		})
	}
}
