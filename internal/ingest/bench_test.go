//go:build unix

package ingest_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// perRequest is how many windows a process with twenty active keys sends a
// second.
const perRequest = 20

// typical is one second of a process in trouble: windows of 24 attributes, with
// six recomputes each.
func typical() *collogspb.ExportLogsServiceRequest {
	var records []*logspb.LogRecord
	for range perRequest {
		records = append(records, event(semconv.EventWindow, windowAttrs.with(attrs{
			"stampede.key.group": "feed:*", "stampede.unknown": 2, "stampede.lookups.hits": 250, "stampede.lookups.misses": 7,
			"stampede.miss.peak": 7, "stampede.recompute.started.expired": 6, "stampede.recompute.ended.expired.ok": 6,
			"stampede.recompute.in_flight.peak": 6, "stampede.recompute.duplicates": 5, "stampede.recompute.while_fresh": 1,
			"stampede.coalesced": 1, "stampede.recompute.busy.sum": 2_400_000_000, "stampede.recompute.busy.max": 410_000_000,
			"stampede.recompute.intervals": signal.AppendIntervals(nil, epoch, intervals(epoch, 6)),
			"stampede.stores.count":        6, "stampede.stores.expiry.min": epoch, "stampede.stores.expiry.max": epoch,
			"stampede.stores.ttl.min": 5_000_000_000, "stampede.stores.ttl.max": 5_000_000_000, "stampede.invalidations": 1,
		})))
	}
	return request(resource, records...)
}

// measure runs what per request, and reports what a window costs in CPU time of
// this process. Unlike the time on the wall, that is not swayed much by what else
// the machine does.
func measure(b *testing.B, body []byte, request func()) {
	b.Helper()
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	before := cpuTime(b)
	for b.Loop() {
		request()
	}
	perWindow := float64(cpuTime(b)-before) / float64(b.N*perRequest)
	b.ReportMetric(perWindow, "cpu-ns/window")
	b.ReportMetric(1e9/perWindow, "windows/cpu-s")
}

// cpuTime returns the CPU time this process has used, in nanoseconds.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkUnmarshal is what all else is held against: the bare decoding of
// protobuf.
func BenchmarkUnmarshal(b *testing.B) {
	body := marshal(b, typical())
	measure(b, body, func() {
		var req collogspb.ExportLogsServiceRequest
		if err := proto.Unmarshal(body, &req); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkUnmarshalAndDecode is the same bytes made into windows.
func BenchmarkUnmarshalAndDecode(b *testing.B) {
	body := marshal(b, typical())
	measure(b, body, func() {
		var req collogspb.ExportLogsServiceRequest
		if err := proto.Unmarshal(body, &req); err != nil {
			b.Fatal(err)
		}
		if batch, _ := ingest.Decode(&req); len(batch.Windows) != perRequest {
			b.Fatal("not all were taken")
		}
	})
}

// discard is a sink that does nothing.
type discard struct{}

func (discard) Ingest(ingest.Batch) {}

// BenchmarkHTTP is a whole request, short of the network.
func BenchmarkHTTP(b *testing.B) {
	body := marshal(b, typical())
	r := ingest.NewReceiver(discard{}, ingest.Options{})
	measure(b, body, func() {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, post(bytes.NewReader(body), protoType, ""))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	})
}
