package alerts

import (
	"fmt"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// manyRecomputes is how many recomputes of one key at once are a dogpile when
// the origin's budget is not known, as in the detector hot-key-expiry.
const manyRecomputes = 50

// applicationGroup alerts on dogpiles of services that Prometheus scrapes and
// no exporter watches. It knows less than a detector does: each process gives
// the peak of its worst key in a group, over the last 20 to 30 seconds. The
// greatest of those peaks is a proof. Their sum is a bound from above, as
// peaks of several processes may be of several keys or instants. Only a proof
// wakes somebody.
//
// A process in which one recompute of a key runs at a time adds nothing to the
// sum, or a healthy fleet of fifty would alert. So a dogpile in which every
// process takes part once is not seen here; an exporter sees it.
func applicationGroup(o Options) Group {
	const by = "job, " + semconv.LabelCache + ", " + semconv.LabelKeyGroup
	peak := semconv.InFlightPeak.Name
	proof := fmt.Sprintf("max by (%s) (%s) >= %d", by, peak, manyRecomputes)
	bound := fmt.Sprintf("sum by (%s) (%s > 1) >= %d", by, peak, manyRecomputes)
	// A cache an exporter has reports of is that exporter's business.
	watchedToo := fmt.Sprintf("unless on (%s)\nmax by (%[1]s) (%s) > 0", semconv.LabelCache, semconv.InstancesReporting.Name)

	rule := func(severity, expr, description string) Rule {
		return Rule{
			Alert:         "StampedeDogpileOnset",
			Expr:          expr + "\n" + watchedToo,
			KeepFiringFor: "1m",
			Labels:        map[string]string{semconv.LabelSeverity: severity},
			Annotations: annotations(
				"Cache {{ $labels.cache }}, keys {{ $labels.key_group }}: many readers recompute one key at once",
				description, o.runbook("dogpile-onset")),
		}
	}
	return Group{
		Name:     "stampede-application",
		Interval: "10s",
		Rules: []Rule{
			rule(page, proof,
				"One process of job {{ $labels.job }} ran {{ $value }} recomputes of one key at once; the fleet ran at least as many."),
			rule(ticket, bound+"\nunless\n"+proof,
				"Processes of job {{ $labels.job }} that duplicated work ran up to {{ $value }} recomputes of one key at once; less if their peaks were not of one key and one instant. A stampede exporter can tell."),
		},
	}
}
