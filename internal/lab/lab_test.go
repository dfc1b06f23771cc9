package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// catalogue is where the scenarios live.
const catalogue = "../../scenarios"

func load(t testing.TB, name string) *scenario.Scenario {
	t.Helper()
	sc, err := scenario.Load(filepath.Join(catalogue, name+".yml"))
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	sc, err := scenario.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func run(t *testing.T, sc *scenario.Scenario, o lab.Options) *lab.Result {
	t.Helper()
	r, err := lab.Run(context.Background(), sc, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEveryScenarioIsNamedAfterItsFileAndSaysWhereItComesFrom(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(catalogue, "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	long, err := filepath.Glob(filepath.Join(catalogue, "long", "*.yml"))
	if err != nil || len(long) == 0 {
		t.Fatalf("%d long ones, %v", len(long), err)
	}
	files = append(files, long...)
	for _, f := range files {
		sc, err := scenario.Load(f)
		if err != nil {
			t.Error(err)
			continue
		}
		if sc.Name+".yml" != filepath.Base(f) || sc.About == "" || sc.Source == "" {
			t.Errorf("%s: name %q, about %q, source %q: want the file's name, and the others", f, sc.Name, sc.About, sc.Source)
		}
		if len(sc.Expect) == 0 && !sc.Forbid.Pages && len(sc.Forbid.Detectors) == 0 {
			t.Errorf("%s expects nothing and forbids nothing", f)
		}
	}
}

func TestTheTruthOfEveryScenarioIsWhatItsSourceSays(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(catalogue, "*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		sc, err := scenario.Load(f)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, c := range run(t, sc, lab.Options{TruthOnly: true}).Failures() {
			t.Errorf("%s: %s: %s", sc.Name, c.What, c.Why)
		}
	}
}

func TestADogpileIsFoundOnTimeAndNothingElseIs(t *testing.T) {
	for _, name := range []string{"hot-key-naive", "hot-key-wikipedia", "hot-key-recheck"} {
		r := run(t, load(t, name), lab.Options{})
		for _, c := range r.Checks {
			if !c.OK && strings.Contains(c.What, "hot-key-expiry") {
				t.Errorf("%s: %s: %s", name, c.What, c.Why)
			}
		}
	}
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	sc := load(t, "orphaned-lock")
	text := func(o lab.Options) string {
		b, err := json.Marshal(run(t, sc, o))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if diff := cmp.Diff(text(lab.Options{}), text(lab.Options{Seed: sc.Seed})); diff != "" {
		t.Errorf("two runs of one seed differ:\n%s", diff)
	}
	if text(lab.Options{}) == text(lab.Options{Seed: 99}) {
		t.Error("two seeds gave one run")
	}
}

func TestWatchingChangesNothing(t *testing.T) {
	for _, name := range []string{"hot-key-budget", "orphaned-lock", "process-local-coalescing"} {
		sc := load(t, name)
		if diff := cmp.Diff(run(t, sc, lab.Options{TruthOnly: true}).Truth, run(t, sc, lab.Options{}).Truth); diff != "" {
			t.Errorf("%s: the truth of a fleet nobody watches (-) and one that is watched (+):\n%s", name, diff)
		}
	}
}

const skewed = `
name: skewed
duration: 3m
fleet: {instances: 20, clock_skew: SKEW}
origins:
  db: {concurrency: 8}
caches:
  feed: {origin: db, ttl: 30s, recompute: {fixed: 400ms}, client: {timeout: 1m}}
workloads:
  - {cache: feed, keys: 1, rate: 300}
events:
  - {at: 0s, do: warm, cache: feed}
EVENTS
expect:
  - {detector: hot-key-expiry, cache: feed, key: "feed:0", severity: page, within: 2s, after: AFTER}
`

func variant(skew, events, after string) string {
	return strings.NewReplacer("SKEW", skew, "EVENTS", events, "AFTER", after).Replace(skewed)
}

func TestADogpileIsFoundOnTimeWhateverTheClocksSay(t *testing.T) {
	for _, skew := range []string{"0s", "50ms", "5s", "10m"} {
		r := run(t, parse(t, variant(skew, "", "0s")), lab.Options{})
		for _, c := range r.Failures() {
			t.Errorf("clocks off by up to %s: %s: %s", skew, c.What, c.Why)
		}
		i := slices.IndexFunc(r.Findings, func(f lab.Finding) bool { return f.Detector == "hot-key-expiry" })
		if i >= 0 && (r.Findings[i].Onset < 29.5 || r.Findings[i].Onset > 30.6) {
			t.Errorf("clocks off by up to %s: the onset is said to be at %v s: want 30, on the exporter's clock", skew, r.Findings[i].Onset)
		}
	}
}

func TestWhatIsLostOnTheWayIsNotFoundAndWhatComesAfterIs(t *testing.T) {
	lost := "  - {at: 20s, do: drop_reports, share: 1, for: 42s}"
	r := run(t, parse(t, variant("0s", lost, "62s")), lab.Options{})
	for _, c := range r.Failures() {
		t.Errorf("after the silence: %s: %s", c.What, c.Why)
	}
	for _, f := range r.Findings {
		if f.Detected > 20 && f.Detected < 62 && f.Severity == "page" {
			t.Errorf("%s was found at %v s, in the middle of the silence", f.Detector, f.Detected)
		}
	}
}

func TestALoopThatSustainsItselfIsToldFromAnOverloadByARerun(t *testing.T) {
	const text = `
name: loop
duration: 4m
fleet: {instances: 4}
origins:
  db: {concurrency: 30}
caches:
  feed: {origin: db, ttl: 1h, recompute: {fixed: 100ms}, client: {timeout: 1s, attempts: ATTEMPTS, fill_late: LATE}}
workloads:
  - {cache: feed, keys: 20000, rate: RATE}
events:
  - {at: 0s, do: warm, cache: feed}
  - {at: 60s, do: flush, cache: feed}
`
	for name, c := range map[string]struct {
		attempts, late, rate string
		want                 float64
	}{
		"below the capacity of an empty cache":          {"1", "false", "290", 0},
		"above it, with retries and nothing kept":       {"3", "false", "1000", 1},
		"above it, but what comes late fills the cache": {"1", "true", "1000", 0},
	} {
		sc := parse(t, strings.NewReplacer("ATTEMPTS", c.attempts, "LATE", c.late, "RATE", c.rate).Replace(text))
		r := run(t, sc, lab.Options{TruthOnly: true})
		if got := r.Truth["metastable"]; got != c.want {
			t.Errorf("%s: metastable is %v, with a goodput of %.2f at the end: want %v", name, got, r.Truth["goodput_end"], c.want)
		}
		if at := slices.IndexFunc(r.Onsets, func(o rig.Onset) bool { return o.Detector == "metastable-loop" }); (at >= 0) != (c.want == 1) || at >= 0 && r.Onsets[at].At.Seconds() != 60 {
			t.Errorf("%s: the onset is missing, or not the end of the trigger", name)
		}
	}
}

func TestARunThatIsCancelledSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := lab.Run(ctx, load(t, "hot-key-naive"), lab.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v: want one that is context.Canceled", err)
	}
}

func TestAnExpectationThatIsNotMetSaysWhy(t *testing.T) {
	text := variant("0s", "", "0s")
	for _, c := range []struct{ from, to, why string }{
		{"within: 2s", "within: 1ms", "after the trouble began"},
		{"key: \"feed:0\", severity: page", "severity: page, key: \"feed:0\"", ""},
		{"hot-key-expiry", "orphaned-lock", "it never came, and nor did the trouble"},
	} {
		r := run(t, parse(t, strings.Replace(text, c.from, c.to, 1)), lab.Options{})
		if why := r.Checks[0].Why; !strings.Contains(why, c.why) || (c.why == "") != r.OK {
			t.Errorf("%s: OK is %v because %q: want %q", c.to, r.OK, why, c.why)
		}
	}
}
