package metric_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/stampede-exporter/stampede-exporter/internal/metric"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

func TestEveryDefinedMetricCanBeMadeAndPassesPromlint(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	for _, m := range semconv.Exporter() {
		labels := make([]string, len(m.Labels))
		switch m.Kind {
		case semconv.Counter:
			v := metric.NewCounter(m)
			v.WithLabelValues(labels...)
			r.MustRegister(v)
		case semconv.Gauge:
			v := metric.NewGauge(m)
			v.WithLabelValues(labels...)
			r.MustRegister(v)
		case semconv.Histogram:
			v := metric.NewHistogram(m, prometheus.DefBuckets)
			v.WithLabelValues(labels...)
			r.MustRegister(v)
		}
	}
	if problems, err := testutil.GatherAndLint(r); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}

// one is a collector of one sample with a hostile label.
type one struct{ label string }

var desc = metric.NewDesc(semconv.FleetDuplicates)

func (o one) Describe(ch chan<- *prometheus.Desc) { ch <- desc }
func (o one) Collect(ch chan<- prometheus.Metric) {
	ch <- metric.Const(desc, semconv.Counter, 3, o.label)
}

func TestALabelFromOutsideNeverCostsTheScrape(t *testing.T) {
	for name, c := range map[string]struct{ label, want string }{
		"plain":                  {"feed", "feed"},
		"no UTF-8":               {"a\xffb", "ab"},
		"line breaks":            {"a\nb", `a\nb`},
		"too long":               {strings.Repeat("k", 1<<20), strings.Repeat("k", 256)},
		"cut inside of a letter": {strings.Repeat("k", 255) + "é", strings.Repeat("k", 255)},
	} {
		want := "# HELP " + semconv.FleetDuplicates.Name + " " + semconv.FleetDuplicates.Help + "\n# TYPE " + semconv.FleetDuplicates.Name + " counter\n" +
			semconv.FleetDuplicates.Name + `{cache="` + c.want + `"} 3` + "\n"
		if err := testutil.CollectAndCompare(one{c.label}, strings.NewReader(want)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
