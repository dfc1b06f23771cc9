package lab

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/internal/wire"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// encoder takes records through the encoding of the wire: the attributes an
// application's exporter makes of them, in the messages of the protocol, and
// back as the exporter reads them. The messages are not written out as bytes;
// that is the business of a library, and half of the cost.
type encoder struct{ wire wire.Encoder }

// through returns what arrives of ws and vs, which come from one source.
func (e *encoder) through(ws []*signal.Window, vs []*signal.Vitals) ([]*signal.Window, []*signal.Vitals, error) {
	req := e.request(ws, vs)
	b, refused := ingest.Decode(req)
	if len(refused) > 0 {
		return nil, nil, fmt.Errorf("%d records of %d refused, the first because of %s", refused[0].Records, len(ws)+len(vs), refused[0].Reason)
	}
	return b.Windows, b.Vitals, nil
}

// request makes one request of records of one source.
func (e *encoder) request(ws []*signal.Window, vs []*signal.Vitals) *collogspb.ExportLogsServiceRequest {
	var source signal.Source
	records := make([]*logspb.LogRecord, 0, len(ws)+len(vs))
	for _, w := range ws {
		source = w.Source
		records = append(records, &logspb.LogRecord{EventName: semconv.EventWindow, TimeUnixNano: uint64(w.End), Attributes: values(e.wire.Window(w))})
	}
	for _, v := range vs {
		source = v.Source
		records = append(records, &logspb.LogRecord{EventName: semconv.EventVitals, TimeUnixNano: uint64(v.At), Attributes: values(e.wire.Vitals(v))})
	}
	return &collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{{
		Resource: &resourcepb.Resource{Attributes: values([]attribute.KeyValue{
			attribute.String(semconv.ServiceName, source.Service),
			attribute.String(semconv.ServiceInstanceID, source.Instance),
			attribute.String(semconv.ServiceVersion, source.Build),
		})},
		ScopeLogs: []*logspb.ScopeLogs{{Scope: &commonpb.InstrumentationScope{Name: semconv.Scope}, LogRecords: records}},
	}}}
}

// values turns attributes into messages of the protocol.
func values(attrs []attribute.KeyValue) []*commonpb.KeyValue {
	kvs := make([]commonpb.KeyValue, len(attrs))
	anys := make([]commonpb.AnyValue, len(attrs))
	ints := make([]commonpb.AnyValue_IntValue, len(attrs))
	out := make([]*commonpb.KeyValue, len(attrs))
	for i, a := range attrs {
		kvs[i].Key, kvs[i].Value = string(a.Key), &anys[i]
		switch a.Value.Type() {
		case attribute.INT64:
			ints[i].IntValue = a.Value.AsInt64()
			anys[i].Value = &ints[i]
		case attribute.BOOL:
			anys[i].Value = &commonpb.AnyValue_BoolValue{BoolValue: a.Value.AsBool()}
		case attribute.FLOAT64:
			anys[i].Value = &commonpb.AnyValue_DoubleValue{DoubleValue: a.Value.AsFloat64()}
		case attribute.BYTESLICE:
			anys[i].Value = &commonpb.AnyValue_BytesValue{BytesValue: a.Value.AsByteSlice()}
		default:
			anys[i].Value = &commonpb.AnyValue_StringValue{StringValue: a.Value.AsString()}
		}
		out[i] = &kvs[i]
	}
	return out
}
