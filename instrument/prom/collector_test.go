package prom_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/prom"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// used returns a collector of a monitor on which everything has happened.
func used(t *testing.T) *prom.Collector {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	m, err := instrument.New("feed", instrument.Options{Interval: -1, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	c := prom.NewCollector(m)
	m.Store("feed:1", instrument.Expiry{TTL: time.Minute})
	m.Hit("feed:1")
	m.Hit("</script>:1")
	m.Stale("feed:1")
	m.LookupError("feed:1")
	now = now.Add(time.Hour)
	m.ObserveMiss(t.Context(), "feed:1")
	one, two := m.Begin("feed:1", instrument.Start{}), m.Begin("feed:1", instrument.Start{})
	one.Retry()
	now = now.Add(400 * time.Millisecond)
	one.End(signal.OutcomeOK)
	two.End(signal.OutcomeTimedOut)
	m.Follow("feed:1").Done()
	m.EarlyRefresh("feed:1", time.Second, 400*time.Millisecond)
	m.LockAttempt("feed:1", true)
	m.LockAttempt("feed:1", false)
	wait, hold := m.LockWait("feed:1"), m.LockHold("feed:1")
	now = now.Add(200 * time.Millisecond)
	wait.Done()
	hold.Release(true)
	m.Invalidate("feed:1")
	return c
}

func TestMetricsMatchTheGoldenFile(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(used(t))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	golden := filepath.Join("testdata", "metrics.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("metrics (-want +got); go test -update rewrites the file:\n%s", diff)
	}
}

func TestEveryApplicationMetricIsExportedAndLintClean(t *testing.T) {
	c := used(t)
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range families {
		got[f.GetName()] = true
	}
	for _, m := range semconv.Application() {
		if !got[m.Name] {
			t.Errorf("%s is defined and never exported", m.Name)
		}
	}
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestDurationsAreNativeHistogramsWithClassicBuckets(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(used(t))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != semconv.RecomputeDuration.Name {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		if h.GetSampleCount() != 2 || len(h.GetBucket()) == 0 || len(h.GetPositiveSpan()) == 0 {
			t.Errorf("count %d, classic buckets %d, native spans %d", h.GetSampleCount(), len(h.GetBucket()), len(h.GetPositiveSpan()))
		}
		return
	}
	t.Error("no recompute durations")
}

func ExampleNewCollector() {
	monitor, err := instrument.New("feed", instrument.Options{})
	if err != nil {
		panic(err)
	}
	defer monitor.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.NewCollector(monitor))
}
