package ingest_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"unicode/utf8"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// seeds are requests of every kind.
func seeds() []*collogspb.ExportLogsServiceRequest {
	packed := signal.AppendIntervals(nil, epoch, intervals(epoch, 3))
	return []*collogspb.ExportLogsServiceRequest{
		{},
		oneWindow(),
		request(resource, event(semconv.EventVitals, vitalsAttrs)),
		request(resource, event(semconv.EventWindow, windowAttrs.with(attrs{
			"stampede.recompute.intervals": packed, "stampede.shares": `[{"service":"a"},{"service":"b","miss_peak":7}]`,
			"stampede.recompute.started.expired": 3, "stampede.recompute.sampled": true, "stampede.key.text": []byte("\xff"),
		}))),
	}
}

// checkBatch checks what Decode promises of all it lets through.
func checkBatch(t *testing.T, b ingest.Batch, rejects []ingest.Reject) {
	t.Helper()
	for _, w := range b.Windows {
		if w.Cache == "" || w.Start <= 0 || w.End < w.Start || w.End.Sub(w.Start) > ingest.MaxSpan || w.Busy < 0 || len(w.Key.Text) > 512 ||
			len(w.Intervals) > signal.MaxFleetIntervals || w.Service == "" && len(w.Shares) == 0 || !utf8.ValidString(w.Cache+w.Key.Group+w.Service) {
			t.Errorf("let through: %+v", w)
		}
		// What is let through can be merged.
		merged := *w
		merged.Merge(w)
	}
	for _, v := range b.Vitals {
		if v.Cache == "" || v.Service == "" || v.At <= 0 || v.Uptime < 0 || v.Origin.Budget < 0 {
			t.Errorf("let through: %+v", v)
		}
	}
	for _, r := range rejects {
		if r.Records < 1 || !slices.Contains(ingest.Reasons(), r.Reason) {
			t.Errorf("refused: %+v", r)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range seeds() {
		f.Add(marshal(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var req collogspb.ExportLogsServiceRequest
		if proto.Unmarshal(b, &req) != nil {
			return
		}
		batch, rejects := ingest.Decode(&req)
		checkBatch(t, batch, rejects)
	})
}

func FuzzHTTP(f *testing.F) {
	for _, s := range seeds() {
		b := marshal(f, s)
		asJSON, err := protojson.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, protoType, "")
		f.Add(zip(b), protoType, "gzip")
		f.Add(asJSON, jsonType, "")
		f.Add(zip(asJSON), jsonType, "gzip")
	}
	f.Fuzz(func(t *testing.T, b []byte, contentType, encoding string) {
		s := newSink()
		w := httptest.NewRecorder()
		req := post(bytes.NewReader(b), contentType, encoding)
		s.receiver(ingest.Options{MaxBody: 1 << 16}).ServeHTTP(w, req)
		refused := s.counts()
		if w.Code != http.StatusOK && len(refused) != 1 {
			t.Errorf("status %d, and %v counted", w.Code, refused)
		}
		checkReply(t, w)
		for len(s.batches) > 0 {
			checkBatch(t, <-s.batches, nil)
		}
	})
}
