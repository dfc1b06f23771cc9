package build

import (
	"fmt"
	"strings"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// Selectors of series: of the exporter itself, of the exporter about caches,
// and of applications about theirs, which have jobs of their own.
const (
	ofExporter = `job=~"$job"`
	ofFleet    = ofExporter + `, ` + ofApps
	ofApps     = semconv.LabelCache + `=~"$cache"`
)

// query is one PromQL query of a panel.
type query struct {
	expr   string
	legend string // a template over the labels of a series
}

// series selects m.
func series(m semconv.Metric, selectors ...string) string {
	return m.Name + "{" + strings.Join(selectors, ", ") + "}"
}

// peak is the greatest value of a gauge since the point drawn before: a peak
// must not vanish between two points when one zooms out. Of several exporters
// that watch one cache the greatest counts, which is also right if each cache
// has its own.
func peak(by string, m semconv.Metric, selectors ...string) string {
	return fmt.Sprintf("max by (%s) (max_over_time(%s[$__rate_interval]))", by, series(m, selectors...))
}

// latest is the value of a gauge now, the greatest of several exporters'.
func latest(by string, m semconv.Metric, selectors ...string) string {
	return fmt.Sprintf("max by (%s) (%s)", by, series(m, selectors...))
}

// fleetRate is the rate of a counter that every exporter keeps for the whole
// fleet; adding them up would count twice.
func fleetRate(by string, m semconv.Metric, selectors ...string) string {
	return fmt.Sprintf("max by (%s) (rate(%s[$__rate_interval]))", by, series(m, selectors...))
}

// appRate is the rate of a counter that every process keeps for itself.
func appRate(by string, m semconv.Metric, selectors ...string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", by, series(m, selectors...))
}

// share is a part of a whole, at most all of it: what the exporter learns of the
// part may come some seconds after the whole, and a rate of it may be ahead for a
// moment.
func share(part, whole string) string {
	return "clamp_max(" + part + "\n/\n" + whole + ", 1)"
}

// quantile estimates a quantile of a histogram: from the native one where
// Prometheus took it, else from classic buckets. Where nothing was observed it
// leaves a gap, not a value that is no number.
func quantile(q float64, by string, m semconv.Metric, selectors ...string) string {
	rate := func(name, by string) string {
		if by != "" {
			by = " by (" + by + ")"
		}
		return fmt.Sprintf("sum%s (rate(%s{%s}[$__rate_interval]))", by, name, strings.Join(selectors, ", "))
	}
	classic := strings.TrimPrefix(by+", le", ", ")
	return fmt.Sprintf("histogram_quantile(%g, %s) >= 0\nor\nhistogram_quantile(%[1]g, %[3]s) >= 0",
		q, rate(m.Name, by), rate(m.Name+"_bucket", classic))
}

// orZero is expr, or zero if it has no result although an exporter is scraped.
// Without an exporter it has none: silence is not health.
func orZero(expr string) string {
	return expr + "\nor\n0 * count(" + series(semconv.FleetKeys, ofExporter) + ")"
}
