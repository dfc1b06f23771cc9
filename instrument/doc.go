// Package instrument measures what happens around a cache: who misses, who
// recomputes, how many do it at once, how much of that was in vain.
//
// A [Monitor] watches one cache in one process. Client adapters, such as
// instrument/goredis, call it for every command they see; an application calls
// it for what a client cannot see ([Recompute], [Monitor.Follow],
// [Monitor.Version], the lock calls). What it learned leaves through a [Sink]
// (instrument/otlp sends to a stampede-exporter) and through [Monitor.Snapshot]
// (instrument/prom).
//
// # What it costs
//
// A hit is one hash, one probe of a bounded table and one atomic add: it reads
// no clock, takes no lock and allocates nothing. Memory is bounded by
// [Options.MaxKeys] and [Options.MaxBytes]; what does not fit is counted.
//
// # What it promises
//
// It never fails, blocks or panics the caller's call: its own troubles are
// counted. All methods are safe for concurrent use, and every method of a nil
// *Monitor does nothing, so that instrumentation can be switched off.
//
// # Explicit and inferred
//
// A client hook sees a miss and, some time later, a store of the same key, and
// infers the recompute between them ([Monitor.ObserveMiss],
// [Monitor.ObserveStore]). An explicit call ([Recompute], [Monitor.Begin],
// [Monitor.Follow]) claims the miss it belongs to, so nothing is counted twice.
// What had to be inferred is marked in [signal.Window.Unknown].
package instrument
