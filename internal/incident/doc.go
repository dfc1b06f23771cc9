// Package incident joins findings over time into incidents.
//
// A detector repeats its finding at every tick for as long as it holds, and
// says once that it cleared. A [Manager] turns that into incidents: one per
// cause, opened, updated, closed, and reopened if the same cause comes back
// soon. Listeners hear of every change; see [Listener] and [Notifier].
//
// # One cause, one incident
//
// A cause is a detector, a service, a cache and a key. There is never more than
// one open incident for it. A detector must therefore name the same service and
// key in all findings about one subject, its last one included.
//
// # Restart
//
// With a state file, incidents survive the exporter. A detector does not: after
// a restart it starts from nothing, and can't clear what it has not found. So a
// resumed incident stays open until a finding confirms it, and from then on is
// the detector's again; if none comes for a while it is closed, and the
// timeline says why. Silence alone never closes an incident otherwise.
//
// # Memory
//
// Open incidents, closed incidents and the timeline of each are bounded; what
// did not fit is counted in [Stats].
package incident
