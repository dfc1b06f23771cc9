package lab

import (
	"fmt"
	"slices"

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
// that is the business of a library, and half of the cost. Their memory is used
// again for the next request: nothing that arrives refers to it.
type encoder struct {
	wire    wire.Encoder
	records slab[logspb.LogRecord]
	attrs   slab[attr]
	lists   slab[*commonpb.KeyValue]
}

// attr is an attribute as the protocol has it, with room for what it may be.
type attr struct {
	kv    commonpb.KeyValue
	any   commonpb.AnyValue
	n     commonpb.AnyValue_IntValue
	text  commonpb.AnyValue_StringValue
	bytes commonpb.AnyValue_BytesValue
}

// batch is how many windows go into one request, as those who send them do by
// default.
const batch = 512

// through returns what arrives of ws and vs, which come from one source.
func (e *encoder) through(ws []*signal.Window, vs []*signal.Vitals) ([]*signal.Window, []*signal.Vitals, error) {
	arrived := make([]*signal.Window, 0, len(ws))
	for part := range slices.Chunk(ws, batch) {
		b, err := e.send(part, nil)
		if err != nil {
			return nil, nil, err
		}
		arrived = append(arrived, b.Windows...)
	}
	if len(vs) == 0 {
		return arrived, nil, nil
	}
	b, err := e.send(nil, vs)
	return arrived, b.Vitals, err
}

func (e *encoder) send(ws []*signal.Window, vs []*signal.Vitals) (ingest.Batch, error) {
	b, refused := ingest.Decode(e.request(ws, vs))
	if len(refused) > 0 {
		return b, fmt.Errorf("%d records of %d refused, the first because of %s", refused[0].Records, len(ws)+len(vs), refused[0].Reason)
	}
	return b, nil
}

// request makes one request of records of one source. It is valid until the next.
func (e *encoder) request(ws []*signal.Window, vs []*signal.Vitals) *collogspb.ExportLogsServiceRequest {
	e.records.reset()
	e.attrs.reset()
	e.lists.reset()
	var source signal.Source
	records := make([]*logspb.LogRecord, 0, len(ws)+len(vs))
	add := func(event string, at signal.Nanos, attrs []attribute.KeyValue) {
		r := &e.records.take(1)[0]
		r.EventName, r.TimeUnixNano, r.Attributes = event, uint64(at), e.values(attrs)
		records = append(records, r)
	}
	for _, w := range ws {
		source = w.Source
		add(semconv.EventWindow, w.End, e.wire.Window(w))
	}
	for _, v := range vs {
		source = v.Source
		add(semconv.EventVitals, v.At, e.wire.Vitals(v))
	}
	return &collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{{
		Resource: &resourcepb.Resource{Attributes: e.values([]attribute.KeyValue{
			attribute.String(semconv.ServiceName, source.Service),
			attribute.String(semconv.ServiceInstanceID, source.Instance),
			attribute.String(semconv.ServiceVersion, source.Build),
		})},
		ScopeLogs: []*logspb.ScopeLogs{{Scope: &commonpb.InstrumentationScope{Name: semconv.Scope}, LogRecords: records}},
	}}}
}

// values turns attributes into messages of the protocol.
func (e *encoder) values(attrs []attribute.KeyValue) []*commonpb.KeyValue {
	out, all := e.lists.take(len(attrs)), e.attrs.take(len(attrs))
	for i, from := range attrs {
		to := &all[i]
		out[i] = &to.kv
		to.kv.Key, to.kv.Value = string(from.Key), &to.any
		switch v := from.Value; v.Type() {
		case attribute.INT64:
			to.n.IntValue = v.AsInt64()
			to.any.Value = &to.n
		case attribute.BOOL:
			to.any.Value = &commonpb.AnyValue_BoolValue{BoolValue: v.AsBool()}
		case attribute.FLOAT64:
			to.any.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: v.AsFloat64()}
		case attribute.BYTESLICE:
			to.bytes.BytesValue = v.AsByteSlice()
			to.any.Value = &to.bytes
		default:
			to.text.StringValue = v.AsString()
			to.any.Value = &to.text
		}
	}
	return out
}

// slab hands out memory that is used again once nobody needs it any more.
type slab[T any] struct {
	all  []T
	used int
}

// take returns n values, which hold whatever they were last used for.
func (s *slab[T]) take(n int) []T {
	if s.used+n > len(s.all) {
		// What has been handed out stays where it is.
		s.all, s.used = make([]T, 2*(len(s.all)+n)), 0
	}
	s.used += n
	return s.all[s.used-n : s.used : s.used]
}

// reset takes back all that was handed out.
func (s *slab[T]) reset() { s.used = 0 }
