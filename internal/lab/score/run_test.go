package score_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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

func TestRunStopsWhenItIsToldToAndSaysWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	scs := []*scenario.Scenario{parse(t, dogpile), parse(t, base+"forbid: pages\n")}
	o := score.Options{Seeds: score.HeldOut(1), Parallel: 1, Progress: func(score.Progress) { cancel() }}
	out, err := score.Run(ctx, scs, o)
	if !errors.Is(err, context.Canceled) || len(out) != 1 || out[0].Scenario != "dogpile" || len(out[0].Episodes) != 1 {
		t.Errorf("%d outcomes and %v, want the first, and that the rest was cancelled", len(out), err)
	}
}

func TestProgressIsToldOfEveryScenarioOnce(t *testing.T) {
	var told []score.Progress
	scs := []*scenario.Scenario{parse(t, dogpile), parse(t, base+"forbid: pages\n")}
	o := score.Options{Seeds: score.HeldOut(2), Parallel: 1, Progress: func(p score.Progress) { told = append(told, p) }}
	if _, err := score.Run(t.Context(), scs, o); err != nil {
		t.Fatal(err)
	}
	for i := range told {
		if told[i].Took <= 0 {
			t.Errorf("%s took no time", told[i].Scenario)
		}
		told[i].Took = 0
	}
	want := []score.Progress{
		{Scenario: "dogpile", Done: 1, Scenarios: 2, Runs: 2, Simulated: 3 * time.Minute},
		{Scenario: "made-up", Done: 2, Scenarios: 2, Runs: 2, Simulated: 20 * time.Minute},
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDaysAreCoveredEvenlyWithSeedsOfTheirOwn(t *testing.T) {
	scs := []*scenario.Scenario{
		parse(t, strings.Replace(base, "10m", "5m", 1)+"forbid: pages\n"),
		parse(t, strings.NewReplacer("made-up", "short", "10m", "50s").Replace(base)+"forbid: pages\n"),
	}
	const hours = 0.5
	out, err := score.RunDays(t.Context(), scs, hours/24.0, score.Options{Seeds: score.HeldOut(1), Shifts: score.Shifts()})
	if err != nil {
		t.Fatal(err)
	}
	seconds, seeds := map[string]float64{}, map[string]map[uint64]bool{"made-up": {}, "short": {}}
	for _, o := range out {
		seconds[o.Scenario] += o.Seconds
		if seeds[o.Scenario][o.Seed] || o.Seed < 1001 || !o.Quiet {
			t.Errorf("%s, seed %d: it was run before, or is for tuning, or not quiet", o.Scenario, o.Seed)
		}
		seeds[o.Scenario][o.Seed] = true
	}
	for name, longest := range map[string]float64{"made-up": 1.25 * 300, "short": 1.25 * 50} {
		if s := seconds[name]; s < hours*3600/2 || s > hours*3600/2+longest {
			t.Errorf("%s covers %v s: want half of %v h, and at most a run more", name, s, hours)
		}
	}
	if n := score.Sum(out).QuietFalsePages.Days; n < hours/24.0 {
		t.Errorf("%v quiet days, want %v at least", n, hours/24.0)
	}
}

func TestARestartIsARunOfItsOwn(t *testing.T) {
	sc := parse(t, dogpile)
	o := score.Options{Seeds: score.HeldOut(1)}
	plain, err := score.Run(t.Context(), []*scenario.Scenario{sc}, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Restart = true
	both, err := score.Run(t.Context(), []*scenario.Scenario{sc, parse(t, base+"forbid: pages\n")}, o)
	if err != nil {
		t.Fatal(err)
	}
	if r := both[0].Restart; r == nil || r.Open != 1 || r.Due != 1 || r.Found != 1 || r.DoublePages != 0 {
		t.Errorf("restart: %+v; want one incident, found again and paged once", r)
	}
	if both[1].Restart != nil {
		t.Error("there was a restart in a scenario that expects nothing")
	}
	both[0].Restart = nil
	if diff := cmp.Diff(plain[0], both[0]); diff != "" {
		t.Errorf("without a restart (-) and besides one (+):\n%s", diff)
	}
}
