package otlp

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/internal/wire"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// maxLoggers bounds how many sources are remembered. A process has one; a
// simulation or a relay may have many.
const maxLoggers = 256

// batch makes SDK log records of windows and vitals. It is the SDK's processor
// as well: the SDK's own batch processor neither tells how many records it
// dropped nor sends an urgent one without making its caller wait. Only the
// exporter's goroutine uses it.
type batch struct {
	encoder wire.Encoder
	loggers map[signal.Source]log.Logger
	// attrs are those of the record being emitted. The processor sets them all
	// at once; the SDK would copy them one by one.
	attrs   []attribute.KeyValue
	records []sdklog.Record
}

func newBatch() *batch { return &batch{loggers: map[signal.Source]log.Logger{}} }

// add appends the record of it to b.records.
func (b *batch) add(it item) {
	var r log.Record
	var source signal.Source
	r.SetSeverity(log.SeverityInfo)
	if w := it.window; w != nil {
		r.SetEventName(semconv.EventWindow)
		r.SetTimestamp(w.End.Time())
		source, b.attrs = w.Source, b.encoder.Window(w)
	} else {
		r.SetEventName(semconv.EventVitals)
		r.SetTimestamp(it.vitals.At.Time())
		source, b.attrs = it.vitals.Source, b.encoder.Vitals(it.vitals)
	}
	b.logger(source).Emit(context.Background(), r)
}

// reset empties b and lets go of what its records held.
func (b *batch) reset() {
	clear(b.records)
	b.records = b.records[:0]
}

// OnEmit implements [sdklog.Processor]. The record is ours alone: there is no
// other processor that could change it later, so it need not be cloned.
func (b *batch) OnEmit(_ context.Context, r *sdklog.Record) error {
	r.SetAttributes(b.attrs...)
	b.records = append(b.records, *r)
	return nil
}

// Enabled implements [sdklog.Processor].
func (b *batch) Enabled(context.Context, sdklog.EnabledParameters) bool { return true }

// Shutdown implements [sdklog.Processor].
func (b *batch) Shutdown(context.Context) error { return nil }

// ForceFlush implements [sdklog.Processor].
func (b *batch) ForceFlush(context.Context) error { return nil }

// logger returns the logger whose resource is s.
func (b *batch) logger(s signal.Source) log.Logger {
	l, ok := b.loggers[s]
	if !ok {
		if len(b.loggers) >= maxLoggers {
			clear(b.loggers)
		}
		l = newLogger(s, b)
		b.loggers[s] = l
	}
	return l
}

func newLogger(s signal.Source, p sdklog.Processor) log.Logger {
	// All three are set even if empty: OTEL_RESOURCE_ATTRIBUTES, which the SDK
	// merges in, must not speak for what the source does not say.
	identity := resource.NewSchemaless(
		attribute.String(semconv.ServiceName, wire.ValidText(s.Service)),
		attribute.String(semconv.ServiceInstanceID, wire.ValidText(s.Instance)),
		attribute.String(semconv.ServiceVersion, wire.ValidText(s.Build)),
	)
	return sdklog.NewLoggerProvider(
		sdklog.WithResource(identity),
		sdklog.WithProcessor(p),
		// Limits that an operator sets for prose would cut records to pieces.
		sdklog.WithAttributeCountLimit(-1),
		sdklog.WithAttributeValueLengthLimit(-1),
		sdklog.WithAllowKeyDuplication(), // there are none, so do not look for them
	).Logger(semconv.Scope)
}
