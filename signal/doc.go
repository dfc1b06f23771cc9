// Package signal defines what the rest of the project talks in: a [Window] is
// what one source saw of one cache key in one short span of time, a [Vitals] is
// a source's once-a-second account of one cache (and its heartbeat), and a
// [Tick] is what a whole fleet of sources looked like at one instant.
//
// The package is pure data. It imports nothing but the standard library, starts
// nothing and reads no clock, so an application, the exporter, a recording on
// disk and a simulator can all produce the same values, and a detector cannot
// tell which of them it is looking at.
//
// Types here are a public contract: their JSON field names do not change.
//
// # Units
//
// Durations are [time.Duration] and travel as integer nanoseconds. Instants are
// integer nanoseconds since the Unix epoch ([Nanos]) on the clock of whoever
// wrote them; the fleet moves them onto its own clock before it compares them.
//
// # Absent is not zero
//
// A source that cannot see something says so in [Window.Unknown]. A zero count
// from a source that can see it means none happened.
package signal
