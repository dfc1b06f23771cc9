package e2e_test

import (
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metric returns the sum of the samples of a counter or gauge at url whose
// labels include those given as name=value; zero if there are none.
func metric(url, name string, labels ...string) float64 {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(get(url)))
	if err != nil || families[name] == nil {
		return 0
	}
	sum := 0.0
	for _, m := range families[name].GetMetric() {
		have := map[string]bool{}
		for _, l := range m.GetLabel() {
			have[l.GetName()+"="+l.GetValue()] = true
		}
		wanted := true
		for _, l := range labels {
			wanted = wanted && have[l]
		}
		if wanted {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}
