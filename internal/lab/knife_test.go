package lab_test

import (
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// knifeSeeds is how often each run of the matrix is made: its authors say that
// what comes out is a matter of chance too.
const knifeSeeds = 20

// aroundTheTrigger cuts off most of what comes before and after: nothing new
// happens there.
func aroundTheTrigger(sc *scenario.Scenario) *scenario.Scenario {
	sc.Events[0].At, sc.Duration = 10*time.Second, 75*time.Second
	return sc
}

// endings counts how many seeds end in a loop.
func endings(t *testing.T, sc *scenario.Scenario) (loops int) {
	t.Helper()
	for seed := range uint64(knifeSeeds) {
		r := run(t, sc, lab.Options{Seed: seed + 1, TruthOnly: true})
		loops += int(r.Truth["metastable"])
	}
	return loops
}

func TestARetryLoopIsSetOffByTheTriggerThatIsALittleTooLarge(t *testing.T) {
	for name, want := range map[string]int{
		"retry-trigger-baseline": 0, "retry-trigger-deeper": knifeSeeds, "retry-trigger-shorter": 0, "retry-trigger-less-load": 0,
	} {
		if got := endings(t, aroundTheTrigger(load(t, name))); got != want {
			t.Errorf("%s: %d of %d seeds end in a loop: want %d", name, got, knifeSeeds, want)
		}
	}
}

func TestOnTheKnifeEdgeChanceDecidesWhetherARetryLoopIsSetOff(t *testing.T) {
	sc := aroundTheTrigger(load(t, "retry-trigger-deeper"))
	sc.Workloads[0].Rate = 345
	if got := endings(t, sc); got == 0 || got == knifeSeeds {
		t.Errorf("%d of %d seeds end in a loop at the edge: want some", got, knifeSeeds)
	}
}
