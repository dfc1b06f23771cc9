package otlp_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

var _ instrument.Sink = (*otlp.Exporter)(nil)

const epoch = signal.Nanos(1_790_000_000_123_456_789)

func source() signal.Source {
	return signal.Source{Service: "shop", Instance: "shop-1", Build: "v1.2.3"}
}

func window() *signal.Window {
	return &signal.Window{
		Source: source(), Cache: "feeds", Key: signal.Key{ID: 0xabc, Group: "feed:*"},
		Start: epoch, End: epoch + 1_000_000_000, InFlightPeak: 2,
	}
}

func vitals() *signal.Vitals { return &signal.Vitals{Source: source(), Cache: "feeds", At: epoch} }

// fullWindow has something in every field an attribute exists for.
func fullWindow() *signal.Window {
	w := window()
	w.Key.Text, w.Generation, w.Unknown = "feed:\xff\n7", "g7", signal.UnknownStarts|signal.UnknownLocks
	w.Lookups = signal.Lookups{Hits: 1, Misses: 2, Stale: 3, Errors: 4}
	w.MissPeak = 5
	w.Recomputes.Started[signal.CauseExpired] = 6
	w.Recomputes.Ended[signal.CauseExpired][signal.OutcomeTimedOut] = 7
	w.Duplicates, w.WhileFresh, w.Coalesced, w.Busy, w.BusyMax = 8, 9, 10, 11, 12
	w.Intervals, w.Sampled = []signal.Interval{{ID: 1, Start: epoch + 1, Cause: signal.CauseExpired}}, true
	w.Stores = signal.Stores{Count: 13, NoExpiry: 14, ExpiryMin: 15, ExpiryMax: 16, TTLMin: 17, TTLMax: 18, Stale: 37, Versions: signal.Versions{Oldest: 41, OldestAt: 42, Newest: 43, NewestAt: 44}}
	w.Invalidations, w.InvalidatedAt = 19, 36
	w.Early = signal.Early{Count: 20, LeadSum: 21, LeadMax: 22, DeltaMax: 23}
	w.Locks = signal.Locks{Attempts: 24, Acquired: 25, Waits: 26, WaitSum: 27, WaitMax: 28, WaitPeak: 29, Holds: 30, HoldSum: 31, HoldMax: 32, Lost: 33, Waiting: 38, Held: 39, HeldSince: 40}
	w.Retries = signal.Retries{Requests: 34, Attempts: 35}
	w.Shares = []signal.Share{{Source: source(), Recomputes: 6, InFlightPeak: 2, MissPeak: 5}}
	return w
}

// closing shuts exp down when the test ends.
func closing(t *testing.T, exp *otlp.Exporter) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := exp.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

func newExporter(t *testing.T, o otlp.Options) *otlp.Exporter {
	t.Helper()
	exp, err := otlp.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, exp)
	return exp
}

func TestWindowOnTheWire(t *testing.T) {
	t.Parallel()
	c := newCollector()
	addr, _ := c.serveGRPC(t, "localhost:0")
	exp := newExporter(t, otlp.Options{Endpoint: addr, Insecure: true})
	exp.Window(fullWindow(), true)
	e := c.events(t, 1)[0]

	if e.scope != semconv.Scope || e.record.EventName != semconv.EventWindow || signal.Nanos(e.record.TimeUnixNano) != epoch+1_000_000_000 {
		t.Errorf("scope %q, event %q, time %d", e.scope, e.record.EventName, e.record.TimeUnixNano)
	}
	want := map[string]any{
		"service.name": "shop", "service.instance.id": "shop-1", "service.version": "v1.2.3",
	}
	if diff := cmp.Diff(want, e.resource); diff != "" {
		t.Error(diff)
	}
	want = map[string]any{
		"cache.name": "feeds", "stampede.key.id": "0000000000000abc", "stampede.key.group": "feed:*", "stampede.key.text": []byte("feed:\xff\n7"),
		"stampede.generation": "g7", "stampede.start": int64(epoch), "stampede.end": int64(epoch) + 1_000_000_000, "stampede.unknown": int64(18),
		"stampede.lookups.hits": int64(1), "stampede.lookups.misses": int64(2), "stampede.lookups.stale": int64(3), "stampede.lookups.errors": int64(4),
		"stampede.miss.peak": int64(5), "stampede.recompute.in_flight.peak": int64(2),
		"stampede.recompute.started.expired": int64(6), "stampede.recompute.ended.expired.timed_out": int64(7),
		"stampede.recompute.duplicates": int64(8), "stampede.recompute.while_fresh": int64(9), "stampede.coalesced": int64(10),
		"stampede.recompute.busy.sum": int64(11), "stampede.recompute.busy.max": int64(12),
		"stampede.recompute.intervals": signal.AppendIntervals(nil, epoch, fullWindow().Intervals), "stampede.recompute.sampled": true,
		"stampede.stores.count": int64(13), "stampede.stores.no_expiry": int64(14), "stampede.stores.expiry.min": int64(15), "stampede.stores.expiry.max": int64(16),
		"stampede.stores.ttl.min": int64(17), "stampede.stores.ttl.max": int64(18), "stampede.invalidations.count": int64(19), "stampede.invalidations.last": int64(36), "stampede.stores.stale": int64(37),
		"stampede.stores.version.oldest": int64(41), "stampede.stores.version.oldest_at": int64(42), "stampede.stores.version.newest": int64(43), "stampede.stores.version.newest_at": int64(44),
		"stampede.early.count": int64(20), "stampede.early.lead.sum": int64(21), "stampede.early.lead.max": int64(22), "stampede.early.delta.max": int64(23),
		"stampede.lock.attempts": int64(24), "stampede.lock.acquired": int64(25), "stampede.lock.waits": int64(26), "stampede.lock.wait.sum": int64(27),
		"stampede.lock.wait.max": int64(28), "stampede.lock.wait.peak": int64(29), "stampede.lock.holds": int64(30), "stampede.lock.hold.sum": int64(31),
		"stampede.lock.hold.max": int64(32), "stampede.lock.lost": int64(33), "stampede.lock.waiting": int64(38), "stampede.lock.held": int64(39), "stampede.lock.held.since": int64(40), "stampede.origin.requests": int64(34), "stampede.origin.attempts": int64(35),
		"stampede.shares": `[{"service":"shop","instance":"shop-1","build":"v1.2.3","recomputes":6,"in_flight_peak":2,"miss_peak":5}]`,
	}
	if diff := cmp.Diff(want, attributes(e.record.Attributes)); diff != "" {
		t.Error(diff)
	}
}

func TestVitalsOnTheWire(t *testing.T) {
	t.Parallel()
	c := newCollector()
	addr, _ := c.serveGRPC(t, "localhost:0")
	exp := newExporter(t, otlp.Options{Endpoint: "http://" + addr})
	exp.Vitals(&signal.Vitals{
		Source: source(), Cache: "feeds", At: epoch, Uptime: 1, Lookups: signal.Lookups{Hits: 2}, Work: fullWork(), Running: 10, Waiting: 11,
		Expiries: fullExpiries(), Claims: fullClaims(), Tracked: 4, Overflowed: 5,
		Dropped: 6, Expired: 7, Evicted: 8, Origin: signal.Origin{Name: "db", Budget: 9}, Closing: true,
	})
	e := c.events(t, 1)[0]
	if e.record.EventName != semconv.EventVitals || signal.Nanos(e.record.TimeUnixNano) != epoch {
		t.Errorf("event %q, time %d", e.record.EventName, e.record.TimeUnixNano)
	}
	want := map[string]any{
		"cache.name": "feeds", "stampede.at": int64(epoch), "stampede.uptime": int64(1), "stampede.lookups.hits": int64(2),
		"stampede.recompute.started.expired": int64(3), "stampede.recompute.busy.sum": int64(12), "stampede.recompute.duplicates": int64(13),
		"stampede.recompute.while_fresh": int64(14), "stampede.coalesced": int64(15), "stampede.stores.count": int64(16), "stampede.early.count": int64(17),
		"stampede.origin.requests": int64(18), "stampede.origin.attempts": int64(19), "stampede.recompute.running": int64(10), "stampede.miss.waiting": int64(11),
		"stampede.recompute.durations": signal.AppendDurations(nil, &signal.Durations{5: 20}), "stampede.expiries": signal.AppendExpiries(nil, epoch, fullExpiries()),
		"stampede.claims.protection": "singleflight,xfetch", "stampede.claims.timeout": int64(21), "stampede.claims.attempts": int64(22),
		"stampede.claims.beta": 1.5, "stampede.claims.refresh_ahead": 0.25, "stampede.claims.clamp": int64(25), "stampede.claims.lock_ttl": int64(23), "stampede.claims.stale_for": int64(24),
		"stampede.keys.tracked": int64(4), "stampede.keys.overflowed": int64(5), "stampede.records.dropped": int64(6),
		"stampede.keys.expired": int64(7), "stampede.keys.evicted": int64(8), "stampede.origin.name": "db", "stampede.origin.budget": int64(9), "stampede.closing": true,
	}
	if diff := cmp.Diff(want, attributes(e.record.Attributes)); diff != "" {
		t.Error(diff)
	}
}

func fullWork() signal.Work {
	w := signal.Work{Busy: 12, Duplicates: 13, WhileFresh: 14, Coalesced: 15, Stores: 16, Early: 17, Retries: signal.Retries{Requests: 18, Attempts: 19}, Durations: signal.Durations{5: 20}}
	w.Recomputes.Started[signal.CauseExpired] = 3
	return w
}

func fullExpiries() []signal.ExpiryBin {
	return []signal.ExpiryBin{{At: epoch + 1_000_000_000, Width: time.Second, Keys: 7}}
}

func fullClaims() signal.Claims {
	return signal.Claims{Protection: []string{"singleflight", "xfetch"}, Timeout: 21, Attempts: 22, Beta: 1.5, RefreshAhead: 0.25, Clamp: 25, LockTTL: 23, StaleFor: 24}
}

func TestWhatIsAbsentIsNotSent(t *testing.T) {
	t.Parallel()
	c := newCollector()
	addr, _ := c.serveGRPC(t, "localhost:0")
	exp := newExporter(t, otlp.Options{Endpoint: addr, Insecure: true})
	exp.Window(&signal.Window{
		Cache: "bad \xff name", Start: epoch, Busy: -5,
		Lookups: signal.Lookups{Hits: math.MaxUint64},
	}, true)
	want := map[string]any{
		"cache.name": "bad \uFFFD name", "stampede.key.id": "0000000000000000", "stampede.start": int64(epoch),
		"stampede.lookups.hits": int64(math.MaxInt64),
	}
	if diff := cmp.Diff(want, attributes(c.events(t, 1)[0].record.Attributes)); diff != "" {
		t.Error(diff)
	}
}

func TestEveryRecordGoesOutUnderItsOwnSource(t *testing.T) {
	// It must not run in parallel: it sets the environment.
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,service.version=other,host.name=h1")
	t.Setenv("OTEL_SERVICE_NAME", "another")
	t.Setenv("OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT", "1")
	t.Setenv("OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT", "1")
	c := newCollector()
	addr, _ := c.serveGRPC(t, "localhost:0")
	exp := newExporter(t, otlp.Options{Endpoint: addr, Insecure: true})
	a, b := window(), window()
	b.Source = signal.Source{Service: "cart"}
	exp.Window(a, false)
	exp.Window(b, true)

	got := map[any]map[string]any{}
	for _, e := range c.events(t, 2) {
		got[e.resource["service.name"]] = e.resource
		if n := len(e.record.Attributes); n != 6 {
			t.Errorf("%d attributes came: want 6, whatever the environment says", n)
		}
	}
	want := map[any]map[string]any{
		"shop": {"service.name": "shop", "service.instance.id": "shop-1", "service.version": "v1.2.3", "host.name": "h1"},
		"cart": {"service.name": "cart", "service.instance.id": "", "service.version": "", "host.name": "h1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTransports(t *testing.T) {
	for _, tt := range []struct {
		name     string
		http     bool
		env      map[string]string // ADDR stands for the receiver's address
		options  otlp.Options
		path     string
		encoding string
	}{
		{name: "gRPC by options", options: otlp.Options{Endpoint: "ADDR", Insecure: true}},
		{name: "gRPC by URL", options: otlp.Options{Endpoint: "http://ADDR"}},
		{name: "gRPC by environment", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://ADDR"}},
		{name: "gRPC with gzip", options: otlp.Options{Endpoint: "http://ADDR"}, env: map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}},
		{name: "HTTP by options", http: true, options: otlp.Options{Endpoint: "ADDR", Insecure: true, Protocol: otlp.ProtocolHTTP}, path: "/v1/logs"},
		{name: "HTTP by URL", http: true, options: otlp.Options{Endpoint: "http://ADDR", Protocol: otlp.ProtocolHTTP}, path: "/v1/logs"},
		{name: "HTTP by URL with a path", http: true, options: otlp.Options{Endpoint: "http://ADDR/otlp", Protocol: otlp.ProtocolHTTP}, path: "/otlp"},
		{
			name: "HTTP by environment", http: true, path: "/base/v1/logs",
			env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://ADDR/base"},
		},
		{
			name: "the logs variables win", http: true, path: "/exact", encoding: "gzip",
			env: map[string]string{
				"OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
				"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://ADDR/exact", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://nowhere.invalid",
				"OTEL_EXPORTER_OTLP_LOGS_COMPRESSION": "gzip",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCollector()
			var addr string
			if tt.http {
				addr = c.serveHTTP(t)
			} else {
				addr, _ = c.serveGRPC(t, "localhost:0")
			}
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue")
			for k, v := range tt.env {
				t.Setenv(k, strings.ReplaceAll(v, "ADDR", addr))
			}
			tt.options.Endpoint = strings.ReplaceAll(tt.options.Endpoint, "ADDR", addr)
			exp := newExporter(t, tt.options)
			exp.Window(window(), true)
			c.events(t, 1)
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.path != tt.path {
				t.Errorf("path is %q: want %q", c.path, tt.path)
			}
			if got := c.headers.Get("X-Tenant"); got != "blue" {
				t.Errorf("header is %q: want blue", got)
			}
			if got := c.headers.Get("Content-Encoding"); got != tt.encoding {
				t.Errorf("encoding is %q: want %q", got, tt.encoding)
			}
		})
	}
}

func TestTheSDKsReportOfAPartialSuccessIsUnderstood(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		http bool
	}{{"over gRPC", false}, {"over HTTP", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := newCollector()
			c.partial = &collogspb.ExportLogsPartialSuccess{ErrorMessage: "mind (your) step"}
			errs := make(chan error, 100)
			o := otlp.Options{Insecure: true, OnError: func(err error) { errs <- err }}
			if tt.http {
				o.Protocol, o.Endpoint = otlp.ProtocolHTTP, c.serveHTTP(t)
			} else {
				o.Endpoint, _ = c.serveGRPC(t, "localhost:0")
			}
			exp := newExporter(t, o)
			exp.Window(window(), true)
			c.events(t, 1)
			const want = "export 1 records: OTLP partial success: mind (your) step (0 logs rejected)"
			if err := <-errs; err.Error() != want {
				t.Errorf("error is %v: want %s", err, want)
			}
			if n := exp.Dropped(); n != 0 {
				t.Errorf("dropped %d: want none, for a warning", n)
			}
		})
	}
}

func TestRejected(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text     string
		n        uint64
		answered bool
	}{
		{"OTLP partial success: line one\nline (2 logs rejected) two (17 logs rejected)", 17, true},
		{"OTLP partial success: empty message (0 logs rejected)", 0, true},
		{"rpc error: OTLP partial success: no (3 logs rejected)", 0, false},
		{"connection refused", 0, false},
	} {
		n, answered := otlp.Rejected(errors.New(tt.text))
		if n != tt.n || answered != tt.answered {
			t.Errorf("%q: %d, %v: want %d, %v", tt.text, n, answered, tt.n, tt.answered)
		}
	}
}

// intervals is n recomputes that end.
func intervals(start signal.Nanos, n int) []signal.Interval {
	ivs := make([]signal.Interval, n)
	for i := range ivs {
		at := start + signal.Nanos(i)
		ivs[i] = signal.Interval{ID: 7<<32 + uint64(i), Start: at, End: at + 400_000_000, Cause: signal.CauseExpired, Outcome: signal.OutcomeOK}
	}
	return ivs
}
