package docgen

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

const metricsIntro = `# Metrics and events

Names, types and units do not change once released. Every metric has two names: the first for Prometheus,
the second for OpenTelemetry. Counters are cumulative, durations are in seconds, and a peak is the most of a
fixed ten-second window, which no scrape resets. Histograms are native with classic buckets kept.

The label ` + "`key_group`" + ` is bounded: a key's group is a pattern such as ` + "`feed:*`" + `, and groups beyond the bound
count as ` + "`" + semconv.OtherGroup + "`" + `. A key itself is never a label.

`

// Metrics returns docs/metrics.md. root is the module's source: attributes are
// constants with comments, so they are read from there.
func Metrics(root fs.FS) ([]byte, error) {
	var b strings.Builder
	b.WriteString(notice)
	b.WriteString(metricsIntro)
	b.WriteString("## From an instrumented application\n\n")
	writeMetrics(&b, semconv.Application())
	b.WriteString("## From the exporter\n\n")
	writeMetrics(&b, semconv.Exporter())
	if err := writeEvents(&b, root); err != nil {
		return nil, err
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n"), nil
}

func writeMetrics(b *strings.Builder, list []semconv.Metric) {
	t := table{head: []string{"metric", "type", "unit", "labels", "meaning"}}
	for _, m := range list {
		t.add(fmt.Sprintf("%s<br>%s", code(m.Name), code(m.OTel())), string(m.Kind), code(m.Unit), codes(m.Labels), m.Help)
	}
	t.write(b)
}
