package ingest

import (
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Batch is what one request brought.
type Batch struct {
	// Transport is [TransportGRPC] or [TransportHTTP]; empty from [Decode].
	Transport string
	Windows   []*signal.Window
	Vitals    []*signal.Vitals
	// Received is when the request had arrived, by Options.Now; zero from
	// [Decode].
	Received time.Time
}

// attrEventName is where SDKs older than the EventName field of a log record put
// the name of an event.
const attrEventName = "event.name"

// Decode returns the windows and vitals in req, in order, and how many records
// it refused, by reason. It keeps no part of req but strings. It may be called
// concurrently.
func Decode(req *collogspb.ExportLogsServiceRequest) (Batch, []Reject) {
	var d decoder
	n := 0
	for _, rl := range req.GetResourceLogs() {
		for _, sl := range rl.GetScopeLogs() {
			n += len(sl.GetLogRecords())
		}
	}
	d.batch.Windows = make([]*signal.Window, 0, n)
	for _, rl := range req.GetResourceLogs() {
		src, reason := source(rl.GetResource())
		for _, sl := range rl.GetScopeLogs() {
			for _, r := range sl.GetLogRecords() {
				if why := d.record(src, reason, r); why != "" {
					d.rejects.add(why)
				}
			}
		}
	}
	return d.batch, d.rejects
}

// decoder holds what one call of [Decode] gathers.
type decoder struct {
	batch   Batch
	rejects rejects
	// The drafts are reused from record to record.
	window windowDraft
	vitals vitalsDraft
}

// record adds r to the batch, or returns why not. sourceReason is what is wrong
// with the resource it came under.
func (d *decoder) record(src signal.Source, sourceReason string, r *logspb.LogRecord) (reason string) {
	name := eventName(r)
	if name != semconv.EventWindow && name != semconv.EventVitals {
		return ReasonNotOurs
	}
	if sourceReason != "" {
		return sourceReason
	}
	if name == semconv.EventVitals {
		d.vitals = vitalsDraft{Vitals: &signal.Vitals{Source: src}}
		if reason = fill(vitalsFields, &d.vitals, r.GetAttributes()); reason == "" {
			reason = d.vitals.finish()
		}
		if reason == "" {
			d.batch.Vitals = append(d.batch.Vitals, d.vitals.Vitals)
		}
		return reason
	}
	d.window = windowDraft{Window: &signal.Window{Source: src}}
	if reason = fill(windowFields, &d.window, r.GetAttributes()); reason == "" {
		reason = d.window.finish()
	}
	if reason == "" {
		d.batch.Windows = append(d.batch.Windows, d.window.Window)
	}
	return reason
}

func eventName(r *logspb.LogRecord) string {
	if n := r.GetEventName(); n != "" {
		return n
	}
	for _, kv := range r.GetAttributes() {
		if kv.GetKey() == attrEventName {
			return kv.GetValue().GetStringValue()
		}
	}
	return ""
}

// source returns whom a resource speaks for. That it may be nobody is for the
// record to judge.
func source(r *resourcepb.Resource) (src signal.Source, reason string) {
	reason = fill(sourceFields, &src, r.GetAttributes())
	return src, reason
}

// fill sets the fields of dst that kvs have values for. Attributes it does not
// know are passed over: a Collector may add its own.
func fill[T any](fields map[string]field[T], dst *T, kvs []*commonpb.KeyValue) (reason string) {
	for _, kv := range kvs {
		if set, ok := fields[kv.GetKey()]; ok {
			if reason := set(dst, kv.GetValue()); reason != "" {
				return reason
			}
		}
	}
	return ""
}
