// Package otlp sends what a [instrument.Monitor] learns to a stampede-exporter,
// or to anything else that takes OTLP logs, as log events.
//
//	exp, err := otlp.New(ctx, otlp.Options{})
//	if err != nil { ... }
//	monitor.Attach(exp)
//	defer exp.Shutdown(ctx) // after monitor.Close
//
// With no options and no environment it sends over gRPC, without TLS, to
// localhost:4317. The OTEL_EXPORTER_OTLP_* variables of OpenTelemetry are
// honoured: endpoint, protocol, headers, timeout, compression, certificates, and
// their _LOGS_ forms. OTEL_RESOURCE_ATTRIBUTES adds to the resource of what is
// sent, but cannot change service.name, service.instance.id or service.version:
// they are those of the monitor.
//
// # What it promises
//
// A monitor that hands over a record is never made to wait. Records queue in a
// ring of fixed size and leave from one goroutine, in batches: an urgent window at
// once, with whatever is queued before it; the others within [Linger]. When the
// receiver is away the newest records are kept, and every record lost is counted
// in [Exporter.Dropped], whether it was pushed out of the ring, went down with a
// failed request or was refused by the receiver.
//
// An export that failed is not repeated. A request that timed out may have been
// taken, and a window counted twice is worse than one lost. While the receiver is
// away each try carries one record, so that finding out costs no more.
//
// What goes over the wire is described in docs/wire.md.
package otlp
