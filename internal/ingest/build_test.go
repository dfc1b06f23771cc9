package ingest_test

import (
	"maps"
	"slices"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// attrs are attributes by name; the value says the type.
type attrs map[string]any

// with returns a copy of a with more on top; nil takes one away.
func (a attrs) with(more attrs) attrs {
	out := maps.Clone(a)
	for k, v := range more {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out
}

func (a attrs) proto() []*commonpb.KeyValue {
	var kvs []*commonpb.KeyValue
	for _, k := range slices.Sorted(maps.Keys(a)) {
		v := &commonpb.AnyValue{}
		switch x := a[k].(type) {
		case string:
			v.Value = &commonpb.AnyValue_StringValue{StringValue: x}
		case int:
			v.Value = &commonpb.AnyValue_IntValue{IntValue: int64(x)}
		case signal.Nanos:
			v.Value = &commonpb.AnyValue_IntValue{IntValue: int64(x)}
		case bool:
			v.Value = &commonpb.AnyValue_BoolValue{BoolValue: x}
		case []byte:
			v.Value = &commonpb.AnyValue_BytesValue{BytesValue: x}
		case float64:
			v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: x}
		case empty:
		}
		kvs = append(kvs, &commonpb.KeyValue{Key: k, Value: v})
	}
	return kvs
}

// empty is the value of an attribute that has none.
type empty struct{}

var (
	resource    = attrs{"service.name": "shop", "service.instance.id": "shop-1", "service.version": "v1"}
	windowAttrs = attrs{
		"cache.name": "feeds", "stampede.key.id": "00000000deadbeef", "stampede.start": epoch, "stampede.end": epoch + 1_000_000_000,
	}
	vitalsAttrs = attrs{"cache.name": "feeds", "stampede.at": epoch}
)

func event(name string, a attrs) *logspb.LogRecord {
	return &logspb.LogRecord{EventName: name, Attributes: a.proto()}
}

func request(resource attrs, records ...*logspb.LogRecord) *collogspb.ExportLogsServiceRequest {
	return &collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{{
		Resource:  &resourcepb.Resource{Attributes: resource.proto()},
		ScopeLogs: []*logspb.ScopeLogs{{LogRecords: records}},
	}}}
}

// oneWindow is a request with one good window in it.
func oneWindow() *collogspb.ExportLogsServiceRequest {
	return request(resource, event(semconv.EventWindow, windowAttrs))
}

func intervals(start signal.Nanos, n int) []signal.Interval {
	ivs := make([]signal.Interval, n)
	for i := range ivs {
		at := start + signal.Nanos(i)*3_000_017
		ivs[i] = signal.Interval{ID: 7<<32 + uint64(i), Start: at, End: at + 400_000_000, Cause: signal.CauseExpired, Outcome: signal.OutcomeOK}
	}
	return ivs
}

// dense is a request of n empty records: two bytes each on the wire, and far more
// in memory.
func dense(n int) *collogspb.ExportLogsServiceRequest {
	records := make([]*logspb.LogRecord, n)
	for i := range records {
		records[i] = &logspb.LogRecord{}
	}
	return request(nil, records...)
}

// deep is a request whose one attribute nests n times.
func deep(n int) *collogspb.ExportLogsServiceRequest {
	v := &commonpb.AnyValue{}
	for range n {
		v = &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{v}}}}
	}
	return request(nil, &logspb.LogRecord{Attributes: []*commonpb.KeyValue{{Key: "deep", Value: v}}})
}
