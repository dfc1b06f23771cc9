package score_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// base is a scenario without expectations: caches a and b share an origin, and c
// has one of its own.
const base = `
name: made-up
duration: 10m
origins: {db: {concurrency: 8}, other: {concurrency: 8}}
caches:
  a: {origin: db, ttl: 60s, recompute: {fixed: 400ms}}
  b: {origin: db, ttl: 60s, recompute: {fixed: 400ms}}
  c: {origin: other, ttl: 60s, recompute: {fixed: 400ms}}
workloads: [{cache: a, rate: 10}]
`

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	sc, err := scenario.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// result is a run with these onsets and findings. Each finding that is not part
// of an incident has one of its own, called "incident-" and its number.
func result(onsets []rig.Onset, findings []lab.Finding) *lab.Result {
	r := &lab.Result{Scenario: "made-up", Seed: 7, Seconds: 600, Onsets: onsets, Findings: slices.Clone(findings)}
	for n := range r.Findings {
		f := &r.Findings[n]
		if f.Incident != "" {
			continue
		}
		f.Incident = "incident-" + strconv.Itoa(n)
		i := lab.Incident{
			ID: f.Incident, Detector: f.Detector, Cache: f.Cache, Key: f.Key, Severity: f.Severity, Episodes: 1,
			Onset: f.Onset, Opened: f.Detected, Classed: f.Detected, Ticketed: f.Ticketed, Paged: f.Paged, Closed: f.Cleared,
		}
		if f.Paged > 0 {
			i.Pages = 1
		}
		r.Incidents = append(r.Incidents, i)
	}
	return r
}

// partOf makes a finding part of another's incident.
func partOf(n int) func(*lab.Finding) {
	return func(f *lab.Finding) { f.Incident = "incident-" + strconv.Itoa(n) }
}

// onset is when trouble with cache a began; it was over at once.
func onset(detector string, at time.Duration) rig.Onset { return stretch(detector, at, at) }

// stretch is trouble with cache a.
func stretch(detector string, from, to time.Duration) rig.Onset {
	return rig.Onset{Detector: detector, Cache: "a", At: from, End: to}
}

// finding is of cache a, came with its severity, and holds until the end.
func finding(detector, severity string, at float64) lab.Finding {
	f := lab.Finding{Detector: detector, Cache: "a", Severity: severity, Onset: at, Detected: at}
	if severity != "info" {
		f.Ticketed = at
	}
	if severity == "page" {
		f.Paged = at
	}
	return f
}

func with(f lab.Finding, change func(*lab.Finding)) lab.Finding {
	change(&f)
	return f
}
