package server_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/internal/config"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

func TestMetricsAreThoseThatAreDefinedAndNoOther(t *testing.T) {
	o := options(t)
	o.Config = config.Default()
	// One that counts how often keys are used, and holds one that is.
	address := cachetest.RedisWith(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lfu")
	cachetest.Command(t, address, "SET", "feed:home", "v", "EX", "600")
	cachetest.Command(t, address, "GET", "feed:home")
	o.Config.Probes = []config.Probe{
		{Type: "redis", Target: address, Cache: "redis-feed", Interval: 100 * time.Millisecond, Watch: []string{"info", "expiry", "hotkeys"}},
		{Type: "redis", Target: "127.0.0.1:1", Cache: "redis-gone", Interval: 100 * time.Millisecond, Watch: []string{"info"}},
	}
	s := start(t, o)
	defer newApplication(t, otlp.ProtocolGRPC, s.Addresses().GRPC.String()).dogpile(25)()

	var want []string
	for _, m := range semconv.Exporter() {
		if !rare[m.Name] {
			want = append(want, m.Name)
		}
	}
	slices.Sort(want)
	var diff, text string
	eventually(t, "every metric", func() bool {
		_, text = get(t, s.url+"/metrics")
		got := slices.DeleteFunc(stampedeNames(t, text), func(name string) bool { return rare[name] })
		diff = cmp.Diff(want, got)
		return diff == "" || t.Context().Err() != nil
	})
	if diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, name := range []string{"stampede_exporter_build_info", "go_goroutines", "process_open_fds"} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("no %s", name)
		}
	}
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
	for _, m := range semconv.Exporter() {
		if !strings.Contains(text, "# HELP "+m.Name+" "+m.Help+"\n") && !rare[m.Name] {
			t.Errorf("%s does not have the help text it is defined with", m.Name)
		}
	}
	checkMetric(t, s, `stampede_probe_success{probe="redis-info",target="`+address+`"} 1`)
	checkMetric(t, s, `stampede_probe_success{probe="redis-info",target="127.0.0.1:1"} 0`)
}

// rare are the metrics that have no series until a detector panics, or before
// recomputes have told what is usual for an origin.
var rare = map[string]bool{
	semconv.DetectorPanics.Name:       true,
	semconv.OriginAmplification.Name:  true,
	semconv.OriginCeiling.Name:        true,
	semconv.OriginDemand.Name:         true,
	semconv.OriginCounterfactual.Name: true,
	semconv.OriginBacklogAhead.Name:   true,
}

// stampedeNames returns the names of our own metrics in an exposition, sorted.
func stampedeNames(t *testing.T, text string) []string {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range families {
		if strings.HasPrefix(name, "stampede_") && name != "stampede_exporter_build_info" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
