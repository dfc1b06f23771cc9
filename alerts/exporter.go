package alerts

import (
	"fmt"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// exporterGroup alerts when nobody is looking: silence is not health.
func exporterGroup(o Options) Group {
	return Group{
		Name:  "stampede-exporter",
		Rules: []Rule{exporterDown(o), instancesSilent(o)},
	}
}

// exporterDown fires when no exporter is up, whether Prometheus knows a target
// and cannot scrape it or knows none. It pages: while it lasts, no stampede
// can.
func exporterDown(o Options) Rule {
	up := fmt.Sprintf("up{job=%q}", o.Job)
	return Rule{
		Alert: "StampedeExporterDown",
		Expr:  fmt.Sprintf("max by (job) (%s) == 0\nor\nabsent(%s)", up, up),
		// A restart, or a move to another machine, is over by then.
		For:    "5m",
		Labels: map[string]string{semconv.LabelSeverity: page},
		Annotations: annotations(
			"No stampede exporter is up: cache stampedes go unnoticed",
			"Prometheus has had no successful scrape of job {{ $labels.job }} for 5 minutes. Nothing watches the fleet's caches, and alerts of stampedes that were open end by themselves, whatever the caches do.",
			o.runbook("exporter-down")),
	}
}

// instancesSilent fires when instances of an application are gone without
// goodbye and have not been replaced. What they do to the origin meanwhile is
// unknown. The exporter remembers them for ten minutes, replaced or not, so
// their number alone would make a ticket of every deploy that kills.
func instancesSilent(o Options) Rule {
	const by = semconv.LabelCache
	reporting := semconv.InstancesReporting.Name
	return Rule{
		Alert: "StampedeInstancesSilent",
		Expr: fmt.Sprintf("max by (%s) (%s) > 0\nand\nmax by (%[1]s) (%s) < max by (%[1]s) (%[3]s offset 15m)",
			by, semconv.InstancesSilent.Name, reporting),
		For:    "5m",
		Labels: map[string]string{semconv.LabelSeverity: ticket},
		Annotations: annotations(
			"Cache {{ $labels.cache }}: {{ $value }} instances stopped reporting",
			"They did not say goodbye, so they were killed, are cut off from the exporter, or hang, and fewer instances report than a quarter of an hour ago. The exporter's figures for this cache are too low until they report again.",
			o.runbook("instances-silent")),
	}
}
