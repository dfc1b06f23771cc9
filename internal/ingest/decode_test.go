package ingest_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"

	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestDecodeRefusesWindows(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	const minute = signal.Nanos(time.Minute)
	for _, tt := range []struct {
		name     string
		resource attrs
		window   attrs
		want     string // empty: it is taken
	}{
		{"a window with the least there can be", nil, nil, ""},
		{"no service", attrs{"service.name": nil}, nil, ingest.ReasonNoService},
		{"an empty service", attrs{"service.name": ""}, nil, ingest.ReasonNoService},
		{"a service that is a number", attrs{"service.name": 7}, nil, ingest.ReasonWrongType},
		{"no instance and no version", attrs{"service.instance.id": nil, "service.version": nil}, nil, ""},
		{"an instance at the bound", attrs{"service.instance.id": long(256)}, nil, ""},
		{"an instance over the bound", attrs{"service.instance.id": long(257)}, nil, ingest.ReasonTooLong},
		{"a version of binary", attrs{"service.version": "v\xff"}, nil, ingest.ReasonBadText},
		{"no cache", nil, attrs{"cache.name": nil}, ingest.ReasonNoCache},
		{"an empty cache", nil, attrs{"cache.name": ""}, ingest.ReasonNoCache},
		{"a cache with a value of no type", nil, attrs{"cache.name": empty{}}, ingest.ReasonWrongType},
		{"a cache at the bound", nil, attrs{"cache.name": long(200)}, ""},
		{"a cache over the bound", nil, attrs{"cache.name": long(201)}, ingest.ReasonTooLong},
		{"a cache with a newline", nil, attrs{"cache.name": "a\nb"}, ingest.ReasonBadText},
		{"a cache with a C1 control", nil, attrs{"cache.name": "a\u0085b"}, ingest.ReasonBadText},
		{"a cache in Greek", nil, attrs{"cache.name": "κρυφή μνήμη"}, ""},
		{"a cache of markup, which is for pages to escape", nil, attrs{"cache.name": "</script>\"'"}, ""},
		{"no key", nil, attrs{"stampede.key.id": nil}, ingest.ReasonNoKey},
		{"a key that hashed to zero", nil, attrs{"stampede.key.id": "0000000000000000"}, ""},
		{"a short key", nil, attrs{"stampede.key.id": "deadbeef"}, ingest.ReasonBadText},
		{"a key that is no hash", nil, attrs{"stampede.key.id": "feed:7 feed:7 fe"}, ingest.ReasonBadText},
		{"a key as a number", nil, attrs{"stampede.key.id": 7}, ingest.ReasonWrongType},
		{"a group over the bound", nil, attrs{"stampede.key.group": long(129)}, ingest.ReasonTooLong},
		{"a group with an escape sequence", nil, attrs{"stampede.key.group": "\x1b[31m"}, ingest.ReasonBadText},
		{"a text of any bytes", nil, attrs{"stampede.key.text": []byte("\x00\xff\n")}, ""},
		{"a text that is not bytes", nil, attrs{"stampede.key.text": "feed:7"}, ingest.ReasonWrongType},
		{"a text over the bound", nil, attrs{"stampede.key.text": []byte(long(513))}, ingest.ReasonTooLong},
		{"no start", nil, attrs{"stampede.start": nil}, ingest.ReasonNoTime},
		{"no end", nil, attrs{"stampede.end": nil}, ingest.ReasonNoTime},
		{"a start before 1970", nil, attrs{"stampede.start": -1}, ingest.ReasonOutOfRange},
		{"an end before the start", nil, attrs{"stampede.end": epoch - 1}, ingest.ReasonBadSpan},
		{"no span at all", nil, attrs{"stampede.end": epoch}, ""},
		{"a span at the bound", nil, attrs{"stampede.end": epoch + minute}, ""},
		{"a span over the bound", nil, attrs{"stampede.end": epoch + minute + 1}, ingest.ReasonBadSpan},
		{"a window from the future, which is for the fleet to judge", nil, attrs{"stampede.start": 1 << 62, "stampede.end": 1 << 62}, ""},
		{"a negative count", nil, attrs{"stampede.lookups.misses": -1}, ingest.ReasonOutOfRange},
		{"a negative duration", nil, attrs{semconv.AttrBusy: -1}, ingest.ReasonOutOfRange},
		{"a count that is text", nil, attrs{"stampede.lookups.misses": "7"}, ingest.ReasonWrongType},
		{"a count that is a fraction", nil, attrs{"stampede.lookups.misses": 7.0}, ingest.ReasonWrongType},
		{"a peak over 32 bits", nil, attrs{"stampede.miss.peak": 1 << 32}, ingest.ReasonOutOfRange},
		{"more unknown than there is to know", nil, attrs{"stampede.unknown": 1 << 16}, ingest.ReasonOutOfRange},
		{"a cause nobody knows, which a newer source may", nil, attrs{"stampede.recompute.started.boredom": 1}, ""},
		{"an attribute of somebody else's", nil, attrs{"k8s.pod.name": 7.5}, ""},
		{"damaged intervals", nil, attrs{"stampede.recompute.intervals": []byte{1, 9}}, ingest.ReasonBadPacked},
		{"intervals of a later version", nil, attrs{"stampede.recompute.intervals": []byte{2}}, ingest.ReasonBadPacked},
		{"too many intervals", nil, attrs{"stampede.recompute.intervals": signal.AppendIntervals(nil, epoch, intervals(epoch, signal.MaxFleetIntervals+1))}, ingest.ReasonBadPacked},
		{"sampled that is a number", nil, attrs{"stampede.recompute.sampled": 1}, ingest.ReasonWrongType},
		{"shares that are no JSON", nil, attrs{"stampede.shares": "shop-1"}, ingest.ReasonBadShares},
		{"shares of nobody", nil, attrs{"stampede.shares": "[]"}, ingest.ReasonBadShares},
		{"a share without a service", nil, attrs{"stampede.shares": `[{"service":""}]`}, ingest.ReasonBadShares},
		{"shares out of order", nil, attrs{"stampede.shares": `[{"service":"b"},{"service":"a"}]`}, ingest.ReasonBadShares},
		{"a share twice", nil, attrs{"stampede.shares": `[{"service":"a"},{"service":"a"}]`}, ingest.ReasonBadShares},
		{"a negative share", nil, attrs{"stampede.shares": `[{"service":"a","recomputes":-1}]`}, ingest.ReasonBadShares},
		{"a share with a bad name", nil, attrs{"stampede.shares": `[{"service":"a\n"}]`}, ingest.ReasonBadText},
		{"shares of several services, which need no service of their own", attrs{"service.name": nil}, attrs{"stampede.shares": `[{"service":"a"},{"service":"b"}]`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// A good window goes along, and must not suffer.
			req := request(resource.with(tt.resource), event(semconv.EventWindow, windowAttrs.with(tt.window)))
			req.ResourceLogs = append(req.ResourceLogs, oneWindow().ResourceLogs...)
			batch, rejects := ingest.Decode(req)
			windows := 2
			var want []ingest.Reject
			if tt.want != "" {
				windows, want = 1, []ingest.Reject{{Reason: tt.want, Records: 1}}
			}
			if len(batch.Windows) != windows {
				t.Errorf("%d windows: want %d", len(batch.Windows), windows)
			}
			if diff := cmp.Diff(want, rejects); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeRefusesVitals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		resource attrs
		vitals   attrs
		want     string
	}{
		{"vitals with the least there can be", nil, nil, ""},
		{"no service", attrs{"service.name": nil}, nil, ingest.ReasonNoService},
		{"no cache", nil, attrs{"cache.name": nil}, ingest.ReasonNoCache},
		{"no time", nil, attrs{"stampede.at": nil}, ingest.ReasonNoTime},
		{"a negative uptime", nil, attrs{"stampede.uptime": -1}, ingest.ReasonOutOfRange},
		{"an origin with a newline", nil, attrs{semconv.AttrOrigin: "db\n"}, ingest.ReasonBadText},
		{"a budget that is text", nil, attrs{"stampede.origin.budget": "8"}, ingest.ReasonWrongType},
		{"expiries with groups", nil, attrs{"stampede.expiries": []byte{2, 1, 1, 'a', 0, 1, 3, 1}}, ""},
		{"expiries of a later version", nil, attrs{"stampede.expiries": []byte{3}}, ingest.ReasonBadPacked},
		{"expiries of a group that does not print", nil, attrs{"stampede.expiries": []byte{2, 1, 1, 27, 0, 1, 3, 1}}, ingest.ReasonBadPacked},
		{"a negative weight", nil, attrs{"stampede.expiries.weight": -1.0}, ingest.ReasonOutOfRange},
		{"a sample that is a fraction", nil, attrs{"stampede.expiries.sampled": 0.5}, ingest.ReasonWrongType},
		{"a hot key", nil, attrs{"stampede.keys.hot": `[{"id":"00f3a1c2d4e5b697","group":"feed:*","share":1,"expiry":7}]`}, ""},
		{"hot keys that are no JSON", nil, attrs{"stampede.keys.hot": "feed:home"}, ingest.ReasonBadPacked},
		{"no hot keys", nil, attrs{"stampede.keys.hot": "[]"}, ingest.ReasonBadPacked},
		{"too many hot keys", nil, attrs{"stampede.keys.hot": "[" + strings.Repeat(`{"id":"00f3a1c2d4e5b697","share":0},`, signal.MaxHotKeys) + `{"id":"00f3a1c2d4e5b697","share":0}]`}, ingest.ReasonBadPacked},
		{"hot keys out of order", nil, attrs{"stampede.keys.hot": `[{"id":"00f3a1c2d4e5b697","share":0.1},{"id":"00f3a1c2d4e5b698","share":0.2}]`}, ingest.ReasonBadPacked},
		{"a hot key with more than all use", nil, attrs{"stampede.keys.hot": `[{"id":"00f3a1c2d4e5b697","share":1.5}]`}, ingest.ReasonOutOfRange},
		{"a hot key of a group with an escape", nil, attrs{"stampede.keys.hot": `[{"id":"00f3a1c2d4e5b697","group":"\u001b[2J","share":0.5}]`}, ingest.ReasonBadText},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			batch, rejects := ingest.Decode(request(resource.with(tt.resource), event(semconv.EventVitals, vitalsAttrs.with(tt.vitals))))
			var want []ingest.Reject
			if tt.want != "" {
				want = []ingest.Reject{{Reason: tt.want, Records: 1}}
			}
			if diff := cmp.Diff(want, rejects); diff != "" {
				t.Error(diff)
			}
			if got := len(batch.Vitals); got != 1-len(want) {
				t.Errorf("%d vitals", got)
			}
		})
	}
}

func TestDecodeTellsOursFromOthers(t *testing.T) {
	t.Parallel()
	batch, rejects := ingest.Decode(request(resource,
		event("", windowAttrs.with(attrs{"event.name": semconv.EventWindow})), // as SDKs did it once
		event("", vitalsAttrs.with(attrs{"event.name": semconv.EventVitals})),
		event("", windowAttrs),
		event("user.login", windowAttrs.with(attrs{"event.name": semconv.EventWindow})),
		event("", attrs{"event.name": 7}),
		&logspb.LogRecord{},
		nil,
	))
	if len(batch.Windows) != 1 || len(batch.Vitals) != 1 {
		t.Errorf("%d windows and %d vitals: want one of each", len(batch.Windows), len(batch.Vitals))
	}
	if diff := cmp.Diff([]ingest.Reject{{Reason: ingest.ReasonNotOurs, Records: 5}}, rejects); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeOfOthersUnderABadResource(t *testing.T) {
	t.Parallel()
	_, rejects := ingest.Decode(request(attrs{"service.name": 7}, event("user.login", nil), event(semconv.EventWindow, windowAttrs)))
	want := []ingest.Reject{{Reason: ingest.ReasonNotOurs, Records: 1}, {Reason: ingest.ReasonWrongType, Records: 1}}
	if diff := cmp.Diff(want, rejects); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeSurvivesHoles(t *testing.T) {
	t.Parallel()
	for _, req := range []*collogspb.ExportLogsServiceRequest{
		nil,
		{},
		{ResourceLogs: []*logspb.ResourceLogs{nil, {}, {ScopeLogs: []*logspb.ScopeLogs{nil, {}}}}},
		request(nil, event(semconv.EventWindow, nil)),
		{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{{LogRecords: []*logspb.LogRecord{
			{EventName: semconv.EventWindow, Attributes: []*commonpb.KeyValue{nil, {}, {Key: "cache.name"}}},
		}}}}}},
	} {
		batch, _ := ingest.Decode(req)
		if len(batch.Windows)+len(batch.Vitals) > 0 {
			t.Errorf("something came of %v", req)
		}
	}
}

func TestReasonsAreListedInOrder(t *testing.T) {
	t.Parallel()
	if !slices.IsSorted(ingest.Reasons()) {
		t.Errorf("%q", ingest.Reasons())
	}
}

func TestEveryReasonIsDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range ingest.Reasons() {
		if !strings.Contains(string(doc), "`"+reason+"`") {
			t.Errorf("docs/wire.md does not say what %s is", reason)
		}
	}
}
