package demo_test

import (
	"strings"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/demo"
)

func TestJudgeSaysWhereTheAccountsDiffer(t *testing.T) {
	page := demo.Finding{Detector: "hot-key-expiry", Severity: "page"}
	right := func() demo.Result {
		return demo.Result{
			Findings: []demo.Finding{page},
			Found:    demo.Found{Recomputes: 240, Duplicates: 238, Peak: 121},
			Truth:    demo.Truth{Recomputes: 240, Duplicates: 238, PeakMax: 121, Cycles: 2},
		}
	}
	tests := []struct {
		name    string
		protect string
		change  func(*demo.Result)
		want    string // in the only disagreement; empty if they agree
	}{
		{"the same", demo.ProtectNone, func(*demo.Result) {}, ""},
		{"a peak within five in a hundred", demo.ProtectNone, func(r *demo.Result) { r.Found.Peak = 116 }, ""},
		{"another peak", demo.ProtectNone, func(r *demo.Result) { r.Found.Peak = 100 }, "at most 100 recomputes at once, the origin 121"},
		{"a recompute too few", demo.ProtectNone, func(r *demo.Result) { r.Found.Recomputes-- }, "239 recomputes, the origin 240"},
		{"a duplicate too many", demo.ProtectNone, func(r *demo.Result) { r.Found.Duplicates++ }, "239 duplicates, the origin 238"},
		{"nobody paged", demo.ProtectNone, func(r *demo.Result) { r.Findings = nil }, "nobody was paged"},
		{"a page for something else", demo.ProtectNone, func(r *demo.Result) {
			r.Findings = append(r.Findings, demo.Finding{Detector: "overload", Severity: "page"})
		}, "paged for overload"},
		{"the wrong page", demo.ProtectSingleFlight, func(r *demo.Result) { r.Truth.PeakMax = 4 }, "paged for hot-key-expiry"},
		{"as many processes as the origin can bear", demo.ProtectSingleFlight, func(r *demo.Result) {
			r.Truth.PeakMax, r.Findings[0].Detector = 20, "process-local-coalescing"
		}, ""},
		{"an early recompute missed", demo.ProtectXFetch, func(r *demo.Result) { r.Findings, r.Truth.Early = nil, 3 }, "0 early recomputes, the origin 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := right()
			tt.change(&r)
			r.Judge(demo.Options{Protect: tt.protect})
			said := strings.Join(r.Disagreements, "; ")
			if r.OK != (tt.want == "") || len(r.Disagreements) > 1 || !strings.Contains(said, tt.want) {
				t.Errorf("ok %v, disagreements %q; want %q", r.OK, said, tt.want)
			}
		})
	}
}
