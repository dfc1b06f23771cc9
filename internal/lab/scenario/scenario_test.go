package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/internal/strictyaml"
)

func testdata(name string) string { return filepath.Join("testdata", name) }

func TestLoadTakesAFileThatSaysEverything(t *testing.T) {
	got, err := scenario.Load(testdata("full.yml"))
	if err != nil {
		t.Fatal(err)
	}
	none := scenario.Protections(0)
	want := &scenario.Scenario{
		Name: "full", About: "says everything", Source: "nowhere", Seed: 7, Duration: 5 * time.Minute,
		Fleet:   scenario.Fleet{Instances: 20, Build: "v3", ClockSkew: 2 * time.Second},
		Origins: map[string]scenario.Origin{"db": {Concurrency: 8, Queue: "shed", QueueLimit: 40, Recheck: true, Cancel: true}},
		Caches: map[string]scenario.Cache{"feed": {
			Origin: "db", TTL: time.Minute,
			Jitter:       scenario.Jitter{Spread: 6 * time.Second, Shape: "symmetric"},
			Sweep:        scenario.Sweep{Every: time.Minute, Phase: 30 * time.Second},
			Recompute:    scenario.Recompute{P50: 300 * time.Millisecond, P99: 1800 * time.Millisecond},
			Protect:      scenario.ProtectXFetch | scenario.ProtectLock,
			SingleFlight: scenario.SingleFlight{Waiters: 10},
			XFetch:       scenario.XFetch{Beta: 1.5, Clamp: 2 * time.Second},
			RefreshAhead: scenario.RefreshAhead{Ratio: 0.1},
			Lock:         scenario.Lock{TTL: 7 * time.Second, Wait: "stale", Fenced: true, Release: "on_success"},
			Lease:        scenario.Lease{Every: 3 * time.Second},
			StaleGrace:   5 * time.Second,
			Client:       scenario.Client{Timeout: time.Second, Attempts: 3, Backoff: 50 * time.Millisecond, FillLate: true, DeleteOnError: true, CacheErrors: 8 * time.Second, Hedge: 200 * time.Millisecond},
			Negative:     0.1,
			Declared:     true,
			Versioned:    true,
		}},
		Workloads: []scenario.Workload{{Cache: "feed", Keys: 100, First: 5, Zipf: 0.9, Rate: 12.5, Arrivals: "burst", Size: 4}},
		Events: []scenario.Event{
			{At: 90 * time.Second, Do: "flush", Cache: "feed"},
			{At: 95 * time.Second, Do: "deploy", Build: "v4", Over: 10 * time.Second, Protect: &none},
		},
		Expect: []scenario.Expectation{{Detector: "hot-key-expiry", Cache: "feed", Key: "feed:5", Severity: "page", Priority: 1, Within: 2 * time.Second, After: 10 * time.Second}},
		Forbid: scenario.Forbid{Pages: true},
		Truth: map[string]scenario.Figure{
			"attempts": {Mean: new(121.0), Tolerance: 0.05},
			"goodput":  {Min: new(0.9), Max: new(1.0)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unlike what the file says (-want +got):\n%s", diff)
	}
}

func TestWhatIsLeftOutHasItsDefault(t *testing.T) {
	got, err := scenario.Load(testdata("minimal.yml"))
	if err != nil {
		t.Fatal(err)
	}
	want := &scenario.Scenario{
		Name: "x", Seed: 1, Duration: time.Minute,
		Fleet:   scenario.Fleet{Instances: 1, Build: "v1"},
		Origins: map[string]scenario.Origin{"db": {Concurrency: 8, Queue: "fifo", QueueLimit: 16, Declared: true}},
		Caches: map[string]scenario.Cache{"feed": {
			Declared: true, Origin: "db", TTL: time.Minute, Recompute: scenario.Recompute{Fixed: 400 * time.Millisecond},
			Jitter: scenario.Jitter{Shape: "additive"}, XFetch: scenario.XFetch{Beta: 1}, RefreshAhead: scenario.RefreshAhead{Ratio: 0.2},
			Lock: scenario.Lock{TTL: 5 * time.Second, Wait: "block", Recheck: true, Release: "always"}, Lease: scenario.Lease{Every: 10 * time.Second},
			Client: scenario.Client{Timeout: 5 * time.Second, Attempts: 1, Backoff: 100 * time.Millisecond},
		}},
		Workloads: []scenario.Workload{{Cache: "feed", Keys: 1, Rate: 300, Arrivals: "poisson", Size: 10}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unlike the defaults (-want +got):\n%s", diff)
	}
}

func TestLoadSaysWhatIsWrongAndWhere(t *testing.T) {
	files, err := filepath.Glob(testdata("invalid-*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(invalid) {
		t.Errorf("%d files and %d expectations: want one for each", len(files), len(invalid))
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "invalid-"), ".yml")
		_, err := scenario.Load(file)
		var wrong *strictyaml.Error
		if !errors.As(err, &wrong) {
			t.Errorf("%s: the error is %v: want one that lists problems", name, err)
			continue
		}
		got := strings.ReplaceAll(err.Error(), file, "")
		if want := invalid[name]; got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestAFileThatIsNotThereOrTooLargeIsAnErrorThatNamesIt(t *testing.T) {
	if _, err := scenario.Load(testdata("nowhere.yml")); err == nil || !strings.Contains(err.Error(), "nowhere.yml") {
		t.Errorf("the error is %v", err)
	}
	big := filepath.Join(t.TempDir(), "big.yml")
	if err := os.WriteFile(big, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Load(big); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("the error is %v", err)
	}
}

func TestNamesAreInOrderAndSaidOnce(t *testing.T) {
	for what, names := range map[string][]string{"detectors": scenario.DetectorNames(), "figures": scenario.TruthNames()} {
		for i := 1; i < len(names); i++ {
			if names[i-1] >= names[i] {
				t.Errorf("%s: %q comes before %q", what, names[i-1], names[i])
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(testdata("*.yml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		sc, err := scenario.Parse(text)
		var wrong *strictyaml.Error
		switch {
		case err == nil && (sc.Duration < time.Second || len(sc.Workloads) == 0 || sc.Fleet.Instances < 1):
			t.Errorf("taken without what a run needs: %+v", sc)
		case err != nil && (!errors.As(err, &wrong) || len(wrong.Problems) == 0 || err.Error() == ""):
			t.Errorf("the error says nothing: %#v", err)
		}
	})
}
