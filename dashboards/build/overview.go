package build

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// Overview returns the dashboard to start from. It reads from top to bottom as
// an incident does: is there one, how bad is it, what does it cost, who waits,
// which keys; and last, whether the picture can be trusted.
func Overview() (dashboard.Dashboard, error) {
	return board{
		uid:         "stampede-overview",
		title:       "Cache stampedes",
		description: "Dogpiles across the fleet: who recomputes what, how many at once, and what it costs the origin.",
		rows: []row{
			{"Now", now()},
			{"Incidents", incidents()},
			{"Recomputes in flight, across the fleet", inFlight()},
			{"What it costs", costs()},
			{"Readers", readers()},
			{"Key groups, by applications' own metrics", keyGroups()},
			{"Can the picture be trusted", health()},
		},
	}.build()
}

// now is one line of figures.
func now() []panel {
	open := func(severity string) string {
		return orZero("sum(" + latest("detector, service, cache", semconv.Incidents, ofFleet, `severity="`+severity+`"`) + ")")
	}
	figure := func(p panel) panel {
		p.stat, p.width, p.noValue = true, 4, "no data"
		return p
	}
	return []panel{
		figure(panel{
			title: "Open pages", unit: units.Short, alarm: new(1.0),
			description: "Incidents that should have woken somebody. \"no data\" means that no exporter is scraped, not that all is well.",
			queries:     []query{{open("page"), "pages"}},
		}),
		figure(panel{
			title: "Open tickets", unit: units.Short, warn: new(1.0),
			description: "Incidents to look at in working hours.",
			queries:     []query{{open("ticket"), "tickets"}},
		}),
		figure(panel{
			title: "Worst peak", unit: units.Short,
			description: "Most recomputes of one key at one instant in the fleet, in the last 20 to 30 seconds. About one is healthy.",
			queries:     []query{{"max(" + series(semconv.FleetInFlightPeak, ofFleet) + ")", "peak"}},
		}),
		figure(panel{
			title: "Budget use", unit: units.PercentUnit, warn: new(0.8), alarm: new(1.0),
			description: "That peak, against what the origin can run at once: the worst origin. Needs a declared budget.",
			queries:     []query{{"max(" + series(semconv.OriginUse, ofExporter) + ")", "budget use"}},
		}),
		figure(panel{
			title: "Origin time wasted", unit: units.PercentUnit,
			description: "Of the time the origin spent on recomputes, the share that served nobody. Little of little is no harm: see what it costs, below.",
			queries:     []query{{share("sum("+fleetRate("cache", semconv.FleetWasted, ofFleet)+")", "sum("+fleetRate("cache", semconv.FleetBusy, ofFleet)+")"), "wasted"}},
		}),
		figure(panel{
			title: "Silent instances", unit: units.Short, warn: new(1.0),
			description: "Instances that stopped reporting without goodbye. What they do is not in this picture.",
			queries:     []query{{"sum(" + latest("cache", semconv.InstancesSilent, ofFleet) + ")", "silent"}},
		}),
	}
}

// detectorPanels lists the detectors with a panel of open incidents, sorted. A
// test holds it against the detectors there are.
var detectorPanels = []struct{ id, title, description string }{
	{"budget-exceeded", "Demand over budget", "Open incidents of the detector budget-exceeded: misses ask for nearly all the origin can do, or more. Runbook: alerts/runbooks/budget-exceeded.md."},
	{"coalescing-bypass", "Coalescing bypassed", "Open incidents of the detector coalescing-bypass: single processes recompute one key several times at once although they claim single-flight, or a new build spares far fewer readers. Runbook: alerts/runbooks/coalescing-bypass.md."},
	{"delta-poisoning", "Poisoned recompute times", "Open incidents of the detector delta-poisoning: one slow recompute was stored as a key's usual time, and readers refresh it far too early. Runbook: alerts/runbooks/delta-poisoning.md."},
	{"early-refresh-excess", "Too much early refresh", "Open incidents of the detector early-refresh-excess: values are refreshed early more often, or earlier, than XFetch explains. Runbook: alerts/runbooks/early-refresh-excess.md."},
	{"early-refresh-ineffective", "Early refresh without effect", "Open incidents of the detector early-refresh-ineffective: values expire under their readers although XFetch should have refreshed them; as information, keys that are read too seldom for it. Runbook: alerts/runbooks/early-refresh-ineffective.md."},
	{"expiry-forecast", "Synchronized expiries ahead", "Open incidents of the detector expiry-forecast: more values are to expire together than the origin can recompute in time. Runbook: alerts/runbooks/expiry-forecast.md."},
	{"hot-key-expiry", "Hot-key dogpiles", "Open incidents of the detector hot-key-expiry: many readers recompute one key at once. Runbook: alerts/runbooks/hot-key-expiry.md."},
	{"lock-convoy", "Lock convoys", "Open incidents of the detector lock-convoy: a noticeable part of a key's readers queue behind the lock that guards its recompute. Runbook: alerts/runbooks/lock-convoy.md."},
	{"lock-lost", "Lost locks", "Open incidents of the detector lock-lost: locks expire while their holders are still recomputing, or recomputes come close to the life of their lock. Runbook: alerts/runbooks/lock-lost.md."},
	{"mass-invalidation", "Caches that lost their values", "Open incidents of the detector mass-invalidation: many values vanished before their time. Runbook: alerts/runbooks/mass-invalidation.md."},
	{"metastable-loop", "Metastable loops", "Open incidents of the detector metastable-loop: an origin is kept down by retries or a cold cache, though what began it is over. Runbook: alerts/runbooks/metastable-loop.md."},
	{"orphaned-lock", "Orphaned locks", "Open incidents of the detector orphaned-lock: readers wait for a lock whose holder is gone, and nobody recomputes. Runbook: alerts/runbooks/orphaned-lock.md."},
	{"overload", "Plain overload", "Open incidents of the detector overload: readers want more than the origin can do, with a warm cache and without retries. Runbook: alerts/runbooks/overload.md."},
	{"penetration", "Look-ups of what does not exist", "Open incidents of the detector penetration: readers ask for many keys that the origin has nothing for. Runbook: alerts/runbooks/penetration.md."},
	{"process-local-coalescing", "Coalescing per process only", "Open incidents of the detector process-local-coalescing: every instance recomputes one hot key for itself. Information as long as the origin can bear it. Runbook: alerts/runbooks/process-local-coalescing.md."},
	{"retry-storm", "Retry storms", "Open incidents of the detector retry-storm: failed recomputes are tried again at once, in vain. Runbook: alerts/runbooks/retry-storm.md."},
	{"stale-overwrite", "Stale values written", "Open incidents of the detector stale-overwrite: values were stored although their keys had been invalidated since the recompute began. Runbook: alerts/runbooks/stale-overwrite.md."},
	{"synchronized-expiry", "Synchronized expiries", "Open incidents of the detector synchronized-expiry: many keys expired together, and the origin cannot keep up. Runbook: alerts/runbooks/synchronized-expiry.md."},
	{"underdosed-jitter", "Jitter too small", "Open incidents of the detector underdosed-jitter: expiries are closer to each other than the origin can bear. Runbook: alerts/runbooks/underdosed-jitter.md."},
	{"vulnerable", "Origins that rest on their cache", "Open incidents of the detector vulnerable: without the cache, readers would ask more of the origin than it can do. Information, unless configured as a ticket. Runbook: alerts/runbooks/vulnerable.md."},
}

func incidents() []panel {
	var out []panel
	for _, d := range detectorPanels {
		out = append(out, panel{
			title: d.title + " (" + d.id + ")", unit: units.Short, width: 12,
			description: d.description,
			queries: []query{{
				latest("service, cache, severity", semconv.Incidents, ofFleet, fmt.Sprintf("%s=%q", semconv.LabelDetector, d.id)),
				"{{severity}}: {{cache}} {{service}}",
			}},
		})
	}
	rest := uint32(12)
	if len(out)%2 == 0 {
		rest = 24
	}
	// Not a rate: a series begins with its first incident, so it is born at one
	// and a rate would miss that.
	return append(out, panel{
		title: "Incidents opened", unit: units.Short, width: rest,
		description: "Incidents opened since the exporter started. Steps are new ones; many short ones are one trouble that comes back with each expiry.",
		queries: []query{{
			"sum by (detector, severity) (" + latest("detector, service, cache, severity", semconv.IncidentsOpened, ofFleet) + ")",
			"{{severity}}: {{detector}}",
		}},
	})
}

func inFlight() []panel {
	return []panel{
		{
			title: "Peak of one key", unit: units.Short, width: 12,
			description: "Most recomputes of one key running at one instant across the fleet, by cache: what can be proven, so never too high. A spike at each expiry is a dogpile; a steady one or two is healthy.",
			queries:     []query{{peak("cache", semconv.FleetInFlightPeak, ofFleet), "{{cache}}"}},
		},
		{
			title: "Peak against the origin's budget", unit: units.PercentUnit, width: 12, alarm: new(1.0),
			description: "That peak over what the origin can run at once. Above 100 % the rest queue, and keep the origin busy long after the value is fresh.",
			queries:     []query{{peak("origin", semconv.OriginUse, ofExporter), "{{origin}}"}},
		},
	}
}

func costs() []panel {
	return []panel{
		{
			title: "Recomputes and duplicates", unit: units.CountsPerSecond, width: 8,
			description: "Recomputes that a miss set off, and those of them that served nobody: all of a burst but one. The nearer the two lines, the worse.",
			queries: []query{
				{fleetRate("cache", semconv.FleetRecomputes, ofFleet), "{{cache}} recomputes"},
				{fleetRate("cache", semconv.FleetDuplicates, ofFleet), "{{cache}} duplicates"},
			},
		},
		{
			title: "Origin seconds wasted", unit: units.Short, width: 8,
			description: "Origin time spent on duplicates, in seconds per second: how many of the origin's workers are busy for nobody.",
			queries:     []query{{fleetRate("cache", semconv.FleetWasted, ofFleet), "{{cache}}"}},
		},
		{
			title: "Share of origin time wasted", unit: units.PercentUnit, width: 8, max: new(1.0),
			description: "The same, of all time spent on recomputes. This is what a mitigation should bring down.",
			queries:     []query{{share(fleetRate("cache", semconv.FleetWasted, ofFleet), fleetRate("cache", semconv.FleetBusy, ofFleet)), "{{cache}}"}},
		},
	}
}

func readers() []panel {
	return []panel{
		{
			title: "Readers of one key waiting", unit: units.Short, width: 12,
			description: "Most readers of one key between their miss and having a value, at one instant across the fleet, by cache: the sum of each process's worst, so never too low. High with a low peak of recomputes means that coalescing works, and readers pay for it in time.",
			queries:     []query{{peak("cache", semconv.FleetMissPeak, ofFleet), "{{cache}}"}},
		},
		{
			title: "Hit ratio", unit: units.PercentUnit, width: 12, max: new(1.0),
			description: "Reads that found a value, by the applications' account; and by the cache server's, if it is probed: the server counts every command of every client.",
			queries: []query{
				{appRate("cache", semconv.Lookups, ofApps, `result=~"hit|stale"`) + "\n/\n" + appRate("cache", semconv.Lookups, ofApps, `result=~"hit|stale|miss"`), "{{cache}}"},
				{fleetRate("cache", semconv.ServerLookups, ofFleet, `result="hit"`) + "\n/\nsum by (cache) (" + fleetRate("cache, result", semconv.ServerLookups, ofFleet) + ")", "{{cache}} by the server"},
			},
		},
	}
}

func keyGroups() []panel {
	const group = "cache, key_group"
	return []panel{
		{
			title: "Peak of one key in one process", unit: units.Short, width: 12,
			description: "The ten key groups with the most recomputes of one key at one instant in one process. A process with single-flight never shows more than one.",
			queries:     []query{{"topk(10, " + peak(group, semconv.InFlightPeak, ofApps) + ")", "{{cache}} {{key_group}}"}},
		},
		{
			title: "Duplicates, by key group", unit: units.CountsPerSecond, width: 12,
			description: "The ten key groups with the most duplicated work, as each process sees its own. Work that two processes duplicate between them is not in it; the rows above have that.",
			queries:     []query{{"topk(10, " + appRate(group, semconv.Duplicates, ofApps) + ")", "{{cache}} {{key_group}}"}},
		},
		{
			title: "Recomputes by cause", unit: units.CountsPerSecond, width: 8,
			description: "What set recomputes off. Early and warmup ran ahead of need; the others had readers waiting.",
			queries:     []query{{appRate("cache, cause", semconv.RecomputesStarted, ofApps), "{{cache}} {{cause}}"}},
		},
		{
			title: "Work spared", unit: units.CountsPerSecond, width: 8,
			description: "Callers that waited for somebody else's recompute, and refreshes that ran before their value expired: what protects the origin.",
			queries: []query{
				{appRate("cache", semconv.Coalesced, ofApps), "{{cache}} coalesced"},
				{appRate("cache", semconv.EarlyRefreshes, ofApps), "{{cache}} early"},
			},
		},
		{
			title: "Recompute duration", unit: units.Seconds, width: 8,
			description: "Half of all recomputes are done within the first, 99 % within the second. A dogpile stretches them: it queues at the origin.",
			queries: []query{
				{quantile(0.5, "cache", semconv.RecomputeDuration, ofApps), "{{cache}} p50"},
				{quantile(0.99, "cache", semconv.RecomputeDuration, ofApps), "{{cache}} p99"},
			},
		},
	}
}
