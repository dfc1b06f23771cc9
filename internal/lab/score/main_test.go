package score_test

import (
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/sim"
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

// result is a run with these onsets and findings.
func result(onsets []sim.Onset, findings []lab.Finding) *lab.Result {
	return &lab.Result{Scenario: "made-up", Seed: 7, Seconds: 600, Onsets: onsets, Findings: findings}
}

// onset is when trouble with cache a began.
func onset(detector string, at time.Duration) sim.Onset {
	return sim.Onset{Detector: detector, Cache: "a", At: at}
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
