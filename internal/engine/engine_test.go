package engine_test

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// observer is a detector that does what a test says.
type observer struct {
	id      string
	observe func(t *signal.Tick) []detectors.Finding
}

func (o observer) Doc() detectors.Doc                         { return detectors.Doc{ID: o.id} }
func (o observer) Observe(t *signal.Tick) []detectors.Finding { return o.observe(t) }

// rig is an engine with real parts around it, and what it logs.
type rig struct {
	*engine.Engine
	incidents *incident.Manager
	registry  *prometheus.Registry
	log       bytes.Buffer
}

func newRig(t *testing.T, declared engine.Declarations, ds ...detectors.Detector) *rig {
	t.Helper()
	return rigOf(t, engine.Options{Declared: declared, Detectors: ds})
}

// rigOf adds to o what every engine needs.
func rigOf(t *testing.T, o engine.Options) *rig {
	t.Helper()
	var err error
	if o.Fleet, err = fleet.New(fleet.Options{}); err != nil {
		t.Fatal(err)
	}
	r := &rig{registry: prometheus.NewPedanticRegistry()}
	if r.incidents, err = incident.New(incident.Options{}); err != nil {
		t.Fatal(err)
	}
	o.Incidents, o.Metrics = r.incidents, engine.NewMetrics(r.registry)
	o.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	r.Engine = engine.New(o)
	r.registry.MustRegister(engine.NewCollector(r.Engine))
	return r
}

// run runs the engine in the bubble of a synctest until the test ends.
func (r *rig) run(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// window is what an instance says when n recomputes of one key run at once.
func (r *rig) window(instance string, n int) *signal.Window {
	end := signal.At(r.Now())
	w := &signal.Window{
		Source: signal.Source{Service: "feed-api", Instance: instance},
		Cache:  "feed", Key: signal.Key{ID: 1, Group: "feed:*"},
		Start: end.Add(-100 * time.Millisecond), End: end,
		Lookups: signal.Lookups{Misses: uint64(n)}, InFlightPeak: uint32(n), MissPeak: uint32(n), Duplicates: uint64(n - 1),
	}
	w.Recomputes.Started[signal.CauseExpired] = uint64(n)
	for i := range n {
		w.Intervals = append(w.Intervals, signal.Interval{ID: uint64(instance[0])<<32 | uint64(i), Start: w.Start, Cause: signal.CauseExpired})
	}
	return w
}

func (r *rig) vitals(instance string) *signal.Vitals {
	return &signal.Vitals{
		Source: signal.Source{Service: "feed-api", Instance: instance}, Cache: "feed",
		At: signal.At(r.Now()), Uptime: time.Hour, Lookups: signal.Lookups{Hits: 90, Misses: 10},
	}
}

func TestTheFleetIsLookedAtOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var ticks []time.Duration
		r := newRig(t, engine.Declarations{}, observer{"watch", func(tick *signal.Tick) []detectors.Finding {
			ticks = append(ticks, time.Since(began))
			return nil
		}})
		r.run(t)
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, ticks); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestTroubleIsLookedAtWithinMillisecondsAndOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var looks []string
		r := newRig(t, engine.Declarations{}, observer{"watch", func(tick *signal.Tick) []detectors.Finding {
			if tick.Urgent {
				looks = append(looks, time.Since(began).String()+" peak "+digit(tick.Episodes[0].PeakLow))
			}
			return nil
		}})
		r.run(t)
		time.Sleep(100 * time.Millisecond)
		for _, instance := range []string{"a", "b", "c"} { // each of them urgent
			r.Ingest(ingest.Batch{Transport: ingest.TransportGRPC, Windows: []*signal.Window{r.window(instance, 2)}})
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if diff := cmp.Diff([]string{"105ms peak 6"}, looks); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func digit(n int) string { return string(rune('0' + n)) }

func TestFindingsBecomeIncidentsAndAPanicCostsNoOtherDetector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := observer{"bad", func(*signal.Tick) []detectors.Finding { panic("index out of range") }}
		good := observer{"good", func(tick *signal.Tick) []detectors.Finding {
			return []detectors.Finding{{Detector: "good", Cache: "feed", Severity: detectors.Ticket, Onset: tick.At, Detected: tick.At, Summary: "found"}}
		}}
		r := newRig(t, engine.Declarations{}, bad, good)
		r.run(t)
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		if open := r.incidents.Open(); len(open) != 1 || open[0].Detector != "good" {
			t.Errorf("open incidents: %v: want the one that was found", open)
		}
		want := `# HELP stampede_exporter_detector_panics_total Ticks a detector failed to look at because it panicked.
# TYPE stampede_exporter_detector_panics_total counter
stampede_exporter_detector_panics_total{detector="bad"} 3
`
		if err := testutil.GatherAndCompare(r.registry, strings.NewReader(want), "stampede_exporter_detector_panics_total"); err != nil {
			t.Error(err)
		}
		if n := strings.Count(r.log.String(), "index out of range"); n != 1 {
			t.Errorf("the panic is logged %d times: want once:\n%s", n, &r.log)
		}
	})
}

func TestWhatArrivedLastIsLookedAtBeforeRunReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		r := newRig(t, engine.Declarations{}, observer{"watch", func(*signal.Tick) []detectors.Finding {
			looks++
			return nil
		}})
		ctx, cancel := context.WithCancel(t.Context())
		r.Add([]*signal.Window{r.window("a", 2)}, nil)
		cancel()
		r.Run(ctx)
		if looks != 1 {
			t.Errorf("looked %d times: want once", looks)
		}
	})
}

func TestAnOperatorsWordOnOriginsWins(t *testing.T) {
	d := engine.Declarations{Budgets: map[string]int{"db": 8}, Recomputes: map[string]time.Duration{"db": time.Second}, Origins: map[string]string{"feed": "db", "other": "undeclared"}}
	for _, c := range []struct {
		name, cache string
		said, want  signal.Origin
	}{
		{"a declared cache gets its origin and budget", "feed", signal.Origin{}, signal.Origin{Name: "db", Budget: 8, Recompute: time.Second}},
		{"a declared cache whose application says otherwise", "feed", signal.Origin{Name: "api", Budget: 99}, signal.Origin{Name: "db", Budget: 8, Recompute: time.Second}},
		{"an undeclared cache in front of a declared origin", "profile", signal.Origin{Name: "db", Budget: 99}, signal.Origin{Name: "db", Budget: 8, Recompute: time.Second}},
		{"nothing declared: the application is believed", "profile", signal.Origin{Name: "api", Budget: 99}, signal.Origin{Name: "api", Budget: 99}},
		{"an origin without a budget", "other", signal.Origin{Name: "api", Budget: 99}, signal.Origin{Name: "undeclared"}},
		{"nobody says anything", "profile", signal.Origin{}, signal.Origin{}},
	} {
		if got := d.Origin(c.cache, c.said); got != c.want {
			t.Errorf("%s: got %v: want %v", c.name, got, c.want)
		}
	}
}

func TestMetricsOfAFleetInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finding := detectors.Finding{Detector: "hot-key-expiry", Service: "feed-api", Cache: "feed", Severity: detectors.Page, Priority: 1}
		r := newRig(t, engine.Declarations{Budgets: map[string]int{"db": 8}, Origins: map[string]string{"feed": "db"}},
			observer{"hot-key-expiry", func(tick *signal.Tick) []detectors.Finding {
				f := finding
				f.Onset, f.Detected = tick.At, tick.At
				return []detectors.Finding{f}
			}})
		r.run(t)
		time.Sleep(500 * time.Millisecond)
		r.Ingest(ingest.Batch{Transport: ingest.TransportGRPC,
			Windows: []*signal.Window{r.window("a", 12), r.window("b", 4)}, Vitals: []*signal.Vitals{r.vitals("a"), r.vitals("b")}})
		time.Sleep(600 * time.Millisecond)
		synctest.Wait()
		if problems, err := testutil.GatherAndLint(r.registry); err != nil || len(problems) > 0 {
			t.Errorf("promlint: %v %v", problems, err)
		}
		compareGolden(t, r.registry, filepath.Join("testdata", "metrics.prom"))
	})
}

// compareGolden compares everything r has, but for how long ticks took.
func compareGolden(t *testing.T, r *prometheus.Registry, path string) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, f := range families {
		if f.GetName() == "stampede_exporter_tick_duration_seconds" {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&got, f); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
