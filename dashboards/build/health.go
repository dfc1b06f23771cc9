package build

import (
	"github.com/grafana/grafana-foundation-sdk/go/units"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// health shows what makes the rows above too low, too late or blank.
func health() []panel {
	return []panel{
		{
			title: "Instances", unit: units.Short, width: 8,
			description: "Instances that reported within five seconds, and those that stopped without goodbye and are still remembered, by cache.",
			queries: []query{
				{latest("cache", semconv.InstancesReporting, ofFleet), "{{cache}} reporting"},
				{latest("cache", semconv.InstancesSilent, ofFleet), "{{cache}} silent"},
			},
		},
		{
			title: "Records received", unit: units.CountsPerSecond, width: 8,
			description: "Windows (a key was active) and vitals (one a second for each instance and cache) accepted, by exporter.",
			queries: []query{
				{appRate("instance, transport", semconv.WindowsReceived, ofExporter), "{{instance}} windows, {{transport}}"},
				{appRate("instance, transport", semconv.VitalsReceived, ofExporter), "{{instance}} vitals, {{transport}}"},
			},
		},
		{
			title: "Records lost", unit: units.CountsPerSecond, width: 8,
			description: "Refused by the exporter, come too late to page, without room, or dropped by applications that could not send. All should be zero.",
			queries: []query{
				{appRate("reason", semconv.RecordsRejected, ofExporter) + " > 0", "refused: {{reason}}"},
				{appRate("job", semconv.LateWindows, ofExporter), "late"},
				{appRate("job", semconv.FleetOverflowed, ofExporter), "no room"},
				{appRate("cache", semconv.DroppedRecords, ofApps), "dropped by {{cache}}"},
			},
		},
		{
			title: "Tick duration", unit: units.Seconds, width: 8, alarm: new(1.0),
			description: "How long a look at the whole fleet takes, 99 % of the time. There is one a second: above that, findings are late.",
			queries:     []query{{quantile(0.99, "instance", semconv.TickDuration, ofExporter), "{{instance}}"}},
		},
		{
			title: "Clock offset", unit: units.Seconds, width: 8,
			description: "Largest difference between an instance's clock and the exporter's. It is measured and taken out; large ones widen the bounds on concurrency.",
			queries:     []query{{peak("instance", semconv.ClockOffset, ofExporter), "{{instance}}"}},
		},
		{
			title: "Notifications and probes", unit: units.CountsPerSecond, width: 8,
			description: "Notifications sent and failed, and runs of probes that failed.",
			queries: []query{
				{appRate("notifier, outcome", semconv.Notifications, ofExporter), "{{notifier}} {{outcome}}"},
				{appRate("probe, target, reason", semconv.ProbeFailures, ofExporter), "{{probe}} {{target}}: {{reason}}"},
			},
		},
	}
}
