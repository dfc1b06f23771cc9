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
		id:      "budget-exceeded",
		summary: "Cache {{ $labels.cache }}: misses ask for nearly all the origin can do, or more",
		detail:  "Near its ceiling its queue grows without bound, and an expiry at a bad time is enough.",
		advice:  "Make misses fewer or cheaper, or give the origin room; shed load while readers are harmed.",
	},
	{
		id:      "coalescing-bypass",
		summary: "Cache {{ $labels.cache }}: readers get past the coalescing that used to let one of them recompute for all",
		detail:  "Single processes recompute one key several times at once, or a new build spares far fewer readers than the last.",
		advice:  "Find what those instances have in common, most likely a build or a switch, and roll it back.",
	},
	{
		id:      "delta-poisoning",
		summary: "Cache {{ $labels.cache }}: one slow recompute makes readers refresh a key far too early",
		detail:  "Its time was stored as the key's usual one, and XFetch acts on it until the next write.",
		advice:  "Clamp what is stored as recompute time. If the origin is under pressure, lower beta or switch early refresh off.",
	},
	{
		id:      "early-refresh-excess",
		summary: "Cache {{ $labels.cache }}: values are refreshed early far more often, or far earlier, than they should be",
		detail:  "The origin works for values that were still good.",
		advice:  "Let one refresh serve all in a process, lower beta, and clamp the stored recompute time.",
	},
	{
		id:      "early-refresh-ineffective",
		summary: "Cache {{ $labels.cache }}: values expire under their readers although XFetch should have refreshed them",
		detail:  "They are read often enough for that; keys that are not are only information.",
		advice:  "Check what is stored as recompute time, and raise beta to 1.5 or 2.",
	},
	{
		id:      "expiry-forecast",
		summary: "Cache {{ $labels.cache }}: more values are to expire together than the origin can recompute in time",
		detail:  "It has not happened yet: the incident says when it will, and how many keys it is about.",
		advice:  "Spread the expiries before they come: store some values anew with other times to live.",
	},
	{
		id:      "hot-key-expiry",
		summary: "Cache {{ $labels.cache }}: many readers recompute one hot key at once",
		detail:  "In the last half minute the worst key had " + lookUp(semconv.FleetInFlightPeak) + " recomputes running at once.",
		advice:  "Refresh the value before it expires, or let one reader recompute it while the others wait or get the old value. Jitter does not help: there is only one key.",
	},
	{
		id:      "lock-convoy",
		summary: "Cache {{ $labels.cache }}: readers of a key queue behind the lock that guards its recompute",
		detail:  "The origin is protected, and readers pay for that with their time and with what they hold meanwhile.",
		advice:  "Serve the old value to everybody but the holder, or refresh before the expiry.",
	},
	{
		id:      "lock-lost",
		summary: "Cache {{ $labels.cache }}: a lock expires while its holder is still recomputing, or is about to",
		detail:  "Two holders recompute side by side, and the slower one may write over the newer value.",
		advice:  "Let the lock live longer than the slowest recompute, and check its token in the same step that writes the value.",
	},
	{
		id:      "mass-invalidation",
		summary: "Cache {{ $labels.cache }}: many values vanished before their time",
		detail:  "It was flushed or restarted, lost a node, ran out of memory, or somebody deleted keys by the thousand.",
		advice:  "Let readers back in stepwise, and turn retries off until the hit ratio recovers.",
	},
	{
		id:      "metastable-loop",
		summary: "Cache {{ $labels.cache }}: the origin is kept down by retries or a cold cache, though nothing else is wrong any more",
		detail:  "What began it is over, and it has not come back by itself.",
		advice:  "Shed load below the admission target in the incident, with refusals that are not retried; turn retries off; let readers back step by step.",
	},
	{
		id:      "orphaned-lock",
		summary: "Cache {{ $labels.cache }}: readers wait for a lock whose holder is gone",
		detail:  "Nobody recomputes, and nobody will until the lock expires.",
		advice:  "Make sure the holder is gone, then delete the lock's key, not the value's.",
	},
	{
		id:      "overload",
		summary: "Cache {{ $labels.cache }}: readers want more than the origin can do, with a warm cache and without retries",
		detail:  "It passes when the load falls or the origin gets room.",
		advice:  "Shed the least important readers or serve old values, and do not let clients retry.",
	},
	{
		id:      "penetration",
		summary: "Cache {{ $labels.cache }}: readers ask for many keys that do not exist",
		detail:  "Nothing can be stored for them, so each goes to the origin. It is no stampede.",
		advice:  "Find out who asks; check keys before they reach the cache, and limit the rate of those who ask.",
	},
	{
		id:      "process-local-coalescing",
		summary: "Cache {{ $labels.cache }}: every instance recomputes one hot key for itself at the same time",
		detail:  "Coalescing works within each process and ends there. More instances make it worse.",
		advice:  "Refresh the value before it expires, or take a lease in the cache so that one instance recomputes.",
	},
	{
		id:      "retry-storm",
		summary: "Cache {{ $labels.cache }}: failed recomputes are tried again at once, and most of what the origin does is in vain",
		detail:  "If it lasts it becomes a loop that does not end by itself.",
		advice:  "Turn retries off, or give each client a budget for them; then see why first attempts fail.",
	},
	{
		id:      "stale-overwrite",
		summary: "Cache {{ $labels.cache }}: a value was stored from data that had changed since it was read from the origin",
		detail:  "The cache holds it as if it were new until it expires.",
		advice:  "Delete the key once more now; then store with a version or a lease that an invalidation makes void.",
	},
	{
		id:      "synchronized-expiry",
		summary: "Cache {{ $labels.cache }}: many keys expired together, and the origin cannot keep up",
		detail:  "They queue at the origin; the incident says how long the refill takes.",
		advice:  "Let the wave drain, and serve old values or shed load meanwhile. Then give the times to live a random part.",
	},
	{
		id:      "underdosed-jitter",
		summary: "Cache {{ $labels.cache }}: expiries are closer to each other than the origin can bear",
		detail:  "Each time to live ends in a wave that keeps the origin at its limit.",
		advice:  "Widen the random part of the times to live to what the incident says.",
	},
	{
		id:      "vulnerable",
		summary: "Cache {{ $labels.cache }}: the origin could not bear its readers without the cache",
		detail:  "Nothing is wrong now. If the cache were lost, it might not come back by itself.",
		advice:  "Decide how it would get back, and try it: a retry budget, refusals that are not retried, a limit on what is let in.",
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
