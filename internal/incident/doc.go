// Package incident joins findings over time into incidents.
//
// A detector repeats its finding at every tick for as long as it holds, and
// says once that it cleared. A [Manager] turns that into incidents: one per
// cause, opened, updated, closed, and reopened if the same cause comes back
// soon. Listeners hear of every change; see [Listener] and [Notifier].
//
// # One cause, one incident
//
// A finding is about a detector, a service, a cache and a key; at most one
// holds for each. A detector must therefore name the same service, cache and
// key in all findings about one subject, its last one included.
//
// Findings of several detectors may have one cause: [detectors.Relations] says
// which explain which, if they share a key, a cache or an origin and began at
// about the same time. Then there is one incident, of the class of what
// explains the others, and those are its [Child]ren. It is as urgent as the
// most urgent of all.
//
// Findings of one detector on many keys of a cache that began close to each
// other are siblings, and one incident too: of the most urgent, or the first.
//
// What explains others may come first or last. If it comes last, an incident
// that is open changes its class and keeps its ID, and what else it explains
// becomes part of that. A child stays one until it or the incident is over, or
// until its severity rises: that may be news. If the incident is over first,
// the child goes on in one of its own, and if somebody was paged for the first,
// nobody is for the second, for as long as [Options.Regroup] says and unless it
// gets worse.
//
// # Restart
//
// With a state file, incidents survive the exporter. A detector does not: after
// a restart it starts from nothing, and can't clear what it has not found. So a
// resumed incident stays open until a finding confirms it, and from then on is
// the detector's again; if none comes for a while it is closed, and the
// timeline says why. The same goes for its children. Silence alone never closes
// an incident otherwise.
//
// # Memory
//
// Findings that hold, closed incidents, and the timeline and children of each
// are bounded; what did not fit is counted, in [Stats] or in the incident.
package incident
