package probetest

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/internal/wire"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// runsAfterTouch is how many runs a probe has to tell of what was done.
const runsAfterTouch = 10

func (c Case) validRecords(t *testing.T) {
	p := open(t, c.New(t))
	var all probes.Result
	add := func(res probes.Result) {
		all.Windows = append(all.Windows, res.Windows...)
		all.Vitals = append(all.Vitals, res.Vitals...)
	}
	add(works(t, p))
	if c.Touch != nil {
		for _, k := range HostileKeys() {
			c.Touch(t, k)
		}
	}
	keys := map[signal.KeyID]bool{}
	for range runsAfterTouch {
		res, err := run(t, p, shortRun)
		if err != nil {
			t.Errorf("a run failed: %v", err)
		}
		add(res)
		for _, w := range res.Windows {
			keys[w.Key.ID] = true
		}
		if len(keys) >= c.Keys {
			break
		}
	}
	if c.Keys > 0 && len(keys) != c.Keys {
		t.Errorf("it tells of %d keys, want %d", len(keys), c.Keys)
	}
	if len(all.Windows)+len(all.Vitals) == 0 {
		t.Error("there is no record")
	}
	for _, w := range all.Windows {
		checkWindow(t, w)
	}
	for _, v := range all.Vitals {
		checkVitals(t, v)
	}
	crossTheWire(t, &all)
}

func checkNames(t testing.TB, s signal.Source, cache string) {
	t.Helper()
	for _, name := range []string{s.Service, s.Instance, cache} {
		if name == "" || !utf8.ValidString(name) || strings.Contains(name, "@") || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("source %+v, cache %q: want printable names", s, cache)
		}
	}
}

func checkWindow(t testing.TB, w *signal.Window) {
	t.Helper()
	checkNames(t, w.Source, w.Cache)
	if w.Start <= 0 || w.End < w.Start || w.End.Sub(w.Start) > signal.MaxSpan || len(w.Intervals) > signal.MaxIntervals {
		t.Errorf("window from %d to %d with %d intervals", w.Start, w.End, len(w.Intervals))
	}
	if w.Key.Group == "" || len(w.Key.Group) > 64 || !utf8.ValidString(w.Key.Group) {
		t.Errorf("key group %q", w.Key.Group)
	}
	for _, iv := range w.Intervals {
		if iv.ID == 0 || iv.Start <= 0 || iv.End != 0 && iv.End < iv.Start {
			t.Errorf("recompute %+v", iv)
		}
	}
	if !slices.IsSortedFunc(w.Intervals, func(a, b signal.Interval) int { return int(a.Start - b.Start) }) {
		t.Error("recomputes are not in order")
	}
}

func checkVitals(t testing.TB, v *signal.Vitals) {
	t.Helper()
	checkNames(t, v.Source, v.Cache)
	if v.At <= 0 || v.Uptime < 0 || !v.Probe {
		t.Errorf("vitals at %d, up %v, of a probe: %v", v.At, v.Uptime, v.Probe)
	}
}

// crossTheWire sends records as a forwarding exporter would, and fails if one is
// refused or comes out as another.
func crossTheWire(t testing.TB, res *probes.Result) {
	t.Helper()
	for _, w := range res.Windows {
		var e wire.Encoder
		b, refused := ingest.Decode(request(w.Source, semconv.EventWindow, uint64(w.End), e.Window(w)))
		if len(refused) > 0 || len(b.Windows) != 1 {
			t.Errorf("a window of %q is refused: %+v", w.Key.Group, refused)
			continue
		}
		if diff := cmp.Diff(w, b.Windows[0]); diff != "" {
			t.Errorf("a window is another after the wire (-sent +received):\n%s", diff)
		}
	}
	for _, v := range res.Vitals {
		var e wire.Encoder
		b, refused := ingest.Decode(request(v.Source, semconv.EventVitals, uint64(v.At), e.Vitals(v)))
		if len(refused) > 0 || len(b.Vitals) != 1 {
			t.Errorf("vitals of %q are refused: %+v", v.Cache, refused)
			continue
		}
		if diff := cmp.Diff(v, b.Vitals[0]); diff != "" {
			t.Errorf("vitals are others after the wire (-sent +received):\n%s", diff)
		}
	}
}

func request(s signal.Source, event string, at uint64, attrs []attribute.KeyValue) *collogspb.ExportLogsServiceRequest {
	return &collogspb.ExportLogsServiceRequest{ResourceLogs: []*logspb.ResourceLogs{{
		Resource: &resourcepb.Resource{Attributes: values([]attribute.KeyValue{
			attribute.String(semconv.ServiceName, s.Service),
			attribute.String(semconv.ServiceInstanceID, s.Instance),
			attribute.String(semconv.ServiceVersion, s.Build),
		})},
		ScopeLogs: []*logspb.ScopeLogs{{
			Scope:      &commonpb.InstrumentationScope{Name: semconv.Scope},
			LogRecords: []*logspb.LogRecord{{EventName: event, TimeUnixNano: at, Attributes: values(attrs)}},
		}},
	}}}
}

func values(attrs []attribute.KeyValue) []*commonpb.KeyValue {
	out := make([]*commonpb.KeyValue, 0, len(attrs))
	for _, a := range attrs {
		v := &commonpb.AnyValue{}
		switch a.Value.Type() {
		case attribute.INT64:
			v.Value = &commonpb.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
		case attribute.BOOL:
			v.Value = &commonpb.AnyValue_BoolValue{BoolValue: a.Value.AsBool()}
		case attribute.FLOAT64:
			v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: a.Value.AsFloat64()}
		case attribute.BYTESLICE:
			v.Value = &commonpb.AnyValue_BytesValue{BytesValue: a.Value.AsByteSlice()}
		default:
			v.Value = &commonpb.AnyValue_StringValue{StringValue: a.Value.AsString()}
		}
		out = append(out, &commonpb.KeyValue{Key: string(a.Key), Value: v})
	}
	return out
}
