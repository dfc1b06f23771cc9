package score_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/score"
)

const dogpile = `
name: dogpile
duration: 90s
fleet: {instances: 4}
origins: {db: {concurrency: 2}}
caches:
  a: {origin: db, ttl: 30s, recompute: {fixed: 500ms}}
workloads: [{cache: a, rate: 100}]
events: [{at: 0s, do: warm, cache: a}]
expect: [{detector: hot-key-expiry, cache: a, key: "a:0", severity: page, within: 3s}]
`

func TestRunsComeInOrderAndAreTheSameHoweverManyGoOnAtOnce(t *testing.T) {
	scs := []*scenario.Scenario{parse(t, dogpile), parse(t, base+"forbid: pages\n")}
	o := score.Options{Seeds: score.HeldOut(2), Shifts: score.Shifts(), Parallel: 1}
	one, err := score.Run(t.Context(), scs, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Parallel = 4
	four, err := score.Run(t.Context(), scs, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(one, four); diff != "" {
		t.Errorf("with one at a time (-) and four (+):\n%s", diff)
	}
	if len(one) != 12 || one[0].Shift != "" || one[2].Shift != "fast" || one[5].Seed != 1002 || one[6].Scenario != "made-up" {
		t.Errorf("%d runs, in another order: %+v", len(one), one)
	}
	for _, r := range one[:6] {
		if !r.Episodes[0].Found || r.Episodes[0].Delay > 3.75 {
			t.Errorf("seed %d %s: %+v", r.Seed, r.Shift, r.Episodes[0])
		}
	}
}

func TestRunStopsWhenItIsToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := score.Run(ctx, []*scenario.Scenario{parse(t, dogpile)}, score.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want that it was cancelled", err)
	}
}
