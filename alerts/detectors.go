package alerts

import (
	"fmt"
	"strings"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// watched is a detector whose incidents alert.
type watched struct {
	id      string // the detector's
	summary string // what is wrong with which cache
	detail  string // what there is to know beside it
	advice  string // the first thing to do
}

// detectorRules lists the detectors that alert, sorted. A test holds it against
// the detectors there are.
var detectorRules = []watched{
	{
		id:      "hot-key-expiry",
		summary: "Cache {{ $labels.cache }}: many readers recompute one hot key at once",
		detail:  "In the last half minute the worst key had " + lookUp(semconv.FleetInFlightPeak) + " recomputes running at once.",
		advice:  "Refresh the value before it expires, or let one reader recompute it while the others wait or get the old value. Jitter does not help: there is only one key.",
	},
}

// detectorGroup alerts on the exporter's incidents, one alert for each set of
// labels the exporter itself pushes alerts with: an Alertmanager that gets the
// same alert both ways takes it for one. So severity comes from the series, not
// from the rule, and everything else a target's series carries is summed away.
func detectorGroup(o Options) Group {
	// Detection by scrape alone is to take no more than 30 s.
	g := Group{Name: "stampede-detectors", Interval: "10s"}
	by := strings.Join(semconv.Incidents.Labels, ", ")
	for _, d := range detectorRules {
		g.Rules = append(g.Rules, Rule{
			Alert: semconv.AlertName(d.id),
			// Of several exporters that see one incident, each counts it: hence max.
			Expr: fmt.Sprintf("max by (%s) (%s{%s=%q, %s=~\"%s|%s\"}) > 0",
				by, semconv.Incidents.Name, semconv.LabelDetector, d.id, semconv.LabelSeverity, page, ticket),
			// The detector has waited as long as is right, and its incidents end
			// by going to zero. A series that is missing (an exporter restarts, a
			// scrape fails) says nothing: three scrapes of 15 s must be missing
			// before that ends an alert.
			KeepFiringFor: "1m",
			Annotations: annotations(d.summary,
				"{{ $value }} open{{ with $labels.service }}, service {{ . }}{{ end }}. "+d.detail+" "+d.advice,
				o.runbook(d.id)),
		})
	}
	return g
}

// lookUp returns a template that gives the greatest value of a metric for the
// alert's cache, as a whole number. %q in it is of the template, and quotes
// what a name of a cache may hold.
func lookUp(m semconv.Metric) string {
	return "{{ with printf \"max(" + m.Name + "{" + semconv.LabelCache + "=%q})\" $labels.cache | query }}" +
		"{{ . | first | value | printf \"%.0f\" }}{{ else }}an unknown number of{{ end }}"
}
