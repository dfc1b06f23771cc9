package ingest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

const (
	protoType = "application/x-protobuf"
	jsonType  = "application/json"
)

func zip(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// chunked hides the length of a body.
type chunked struct{ io.Reader }

func post(body io.Reader, contentType, encoding string) *http.Request {
	req := httptest.NewRequest(http.MethodPost, "/v1/logs", body)
	req.Header.Set("Content-Type", contentType)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	return req
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	good := marshal(t, oneWindow())
	asJSON, err := protojson.Marshal(oneWindow())
	if err != nil {
		t.Fatal(err)
	}
	const limit = 4096
	zeros := make([]byte, limit+1)
	bomb := bytes.Repeat(zip(make([]byte, 1<<20)), 100) // members of a gzip file follow each other
	noise := []byte(strings.Repeat("\xde\xad\xbe\xef", 40))
	for _, tt := range []struct {
		name        string
		body        io.Reader
		contentType string
		encoding    string
		status      int
		reason      string // empty: the window is taken
	}{
		{"protobuf", bytes.NewReader(good), protoType, "", 200, ""},
		{"protobuf of unknown length", chunked{bytes.NewReader(good)}, protoType, "", 200, ""},
		{"protobuf with gzip", bytes.NewReader(zip(good)), protoType, "gzip", 200, ""},
		{"protobuf with no compression named", bytes.NewReader(good), protoType, "identity", 200, ""},
		{"JSON", bytes.NewReader(asJSON), jsonType, "", 200, ""},
		{"JSON with a charset", bytes.NewReader(asJSON), jsonType + "; charset=utf-8", "", 200, ""},
		{"JSON with gzip", bytes.NewReader(zip(asJSON)), jsonType, "gzip", 200, ""},
		{"text", bytes.NewReader(good), "text/plain", "", 415, ingest.ReasonUnsupported},
		{"no type", bytes.NewReader(good), "", "", 415, ingest.ReasonUnsupported},
		{"zstd", bytes.NewReader(good), protoType, "zstd", 415, ingest.ReasonUnsupported},
		{"garbage for protobuf", bytes.NewReader(noise), protoType, "", 400, ingest.ReasonMalformed},
		{"garbage for JSON", bytes.NewReader(noise), jsonType, "", 400, ingest.ReasonMalformed},
		{"garbage for gzip", bytes.NewReader(noise), protoType, "gzip", 400, ingest.ReasonMalformed},
		{"a cut protobuf", bytes.NewReader(good[:len(good)-3]), protoType, "", 400, ingest.ReasonMalformed},
		{"a cut gzip", bytes.NewReader(zip(good)[:30]), protoType, "gzip", 400, ingest.ReasonMalformed},
		{"a cut JSON", bytes.NewReader(asJSON[:50]), jsonType, "", 400, ingest.ReasonMalformed},
		{"no JSON at all", bytes.NewReader(nil), jsonType, "", 400, ingest.ReasonMalformed},
		{"a body over the limit", bytes.NewReader(zeros), protoType, "", 413, ingest.ReasonTooLarge},
		{"a body of unknown length over the limit", chunked{bytes.NewReader(zeros)}, protoType, "", 413, ingest.ReasonTooLarge},
		{"protobuf of nothing but messages", bytes.NewReader(marshal(t, dense(limit/3))), protoType, "", 413, ingest.ReasonTooLarge},
		{"JSON of nothing but messages", strings.NewReader(`{"resourceLogs":[{}` + strings.Repeat(",{}", limit/4) + `]}`), jsonType, "", 413, ingest.ReasonTooLarge},
		{"protobuf that nests deep", bytes.NewReader(marshal(t, deep(70))), protoType, "", 413, ingest.ReasonTooLarge},
		{"a gzip bomb of 100 MiB", chunked{bytes.NewReader(bomb)}, protoType, "gzip", 413, ingest.ReasonTooLarge},
		{"a gzip that is over the limit only unpacked", bytes.NewReader(zip(zeros)), protoType, "gzip", 413, ingest.ReasonTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSink()
			w := httptest.NewRecorder()
			s.receiver(ingest.Options{MaxBody: limit}).ServeHTTP(w, post(tt.body, tt.contentType, tt.encoding))
			if w.Code != tt.status {
				t.Errorf("status is %d: want %d", w.Code, tt.status)
			}
			want := map[string]int{}
			if tt.reason != "" {
				want["http "+tt.reason] = 1
			}
			if diff := cmp.Diff(want, s.counts()); diff != "" {
				t.Error(diff)
			}
			if taken := len(s.batches) == 1; taken != (tt.reason == "") {
				t.Errorf("the window was taken: %v", taken)
			}
			checkReply(t, w)
		})
	}
}

// checkReply checks that a reply is what its type says: the logs response, or the
// status that OTLP answers an error with.
func checkReply(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	var m proto.Message = &collogspb.ExportLogsServiceResponse{}
	if w.Code != http.StatusOK {
		m = &statuspb.Status{}
	}
	var err error
	switch w.Header().Get("Content-Type") {
	case protoType:
		err = proto.Unmarshal(w.Body.Bytes(), m)
	case jsonType:
		err = protojson.Unmarshal(w.Body.Bytes(), m)
	default:
		if w.Code == http.StatusOK {
			t.Errorf("replied with %q", w.Header().Get("Content-Type"))
		}
		return
	}
	if err != nil {
		t.Error(err)
	}
	if st, ok := m.(*statuspb.Status); ok && st.Message == "" {
		t.Error("the error says nothing")
	}
}

func TestHTTPRefusesOtherMethods(t *testing.T) {
	t.Parallel()
	s := newSink()
	w := httptest.NewRecorder()
	s.receiver(ingest.Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/logs", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
		t.Errorf("status %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

func TestHTTPTurnsAwayABodyOf100MiBUnread(t *testing.T) {
	t.Parallel()
	s := newSink()
	server := httptest.NewServer(s.receiver(ingest.Options{}))
	defer server.Close()
	// A client that asks first is told before it has sent anything.
	transport := &http.Transport{ExpectContinueTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, iotest.ErrReader(errors.New("the body was read")))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 100 << 20
	req.Header.Set("Content-Type", protoType)
	req.Header.Set("Expect", "100-continue")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status is %s: want 413", resp.Status)
	}
	if diff := cmp.Diff(map[string]int{"http too_large": 1}, s.counts()); diff != "" {
		t.Error(diff)
	}
}

func TestHTTPTellsWhatItRefused(t *testing.T) {
	t.Parallel()
	req := request(resource,
		event(semconv.EventWindow, windowAttrs),
		event(semconv.EventWindow, windowAttrs.with(attrs{"cache.name": nil})),
		event(semconv.EventWindow, windowAttrs.with(attrs{"stampede.key.id": nil})),
		event(semconv.EventVitals, vitalsAttrs.with(attrs{"cache.name": nil})),
		event("user.login", nil),
	)
	s := newSink()
	w := httptest.NewRecorder()
	s.receiver(ingest.Options{}).ServeHTTP(w, post(bytes.NewReader(marshal(t, req)), protoType, ""))
	var got collogspb.ExportLogsServiceResponse
	if err := proto.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if p := got.GetPartialSuccess(); w.Code != http.StatusOK || p.GetRejectedLogRecords() != 3 || p.GetErrorMessage() != "no_cache: 2, no_key: 1" {
		t.Errorf("status %d, %v", w.Code, &got)
	}
	if diff := cmp.Diff(map[string]int{"http no_cache": 2, "http no_key": 1, "http not_ours": 1}, s.counts()); diff != "" {
		t.Error(diff)
	}
}

func TestJSONOfOTLP(t *testing.T) {
	t.Parallel()
	// As OTLP writes it, which is not quite as protobuf would: ids in
	// hexadecimal, enums as numbers, and fields that came later.
	const body = `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},
		"scopeLogs":[{"scope":{"name":"x"},"logRecords":[{"timeUnixNano":"1790000000123456789","severityNumber":9,"eventName":"stampede.window",
		"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"eee19b7ec3c1b174","laterField":{"a":[1]},
		"attributes":[{"key":"cache.name","value":{"stringValue":"feeds"}},{"key":"stampede.key.id","value":{"stringValue":"00000000deadbeef"}},
		{"key":"stampede.key.text","value":{"bytesValue":"ZmVlZDo3"}},{"key":"stampede.start","value":{"intValue":"1790000000123456789"}},
		{"key":"stampede.end","value":{"intValue":1790000000123456790}}]}]}]}]}`
	s := newSink()
	w := httptest.NewRecorder()
	s.receiver(ingest.Options{}).ServeHTTP(w, post(strings.NewReader(body), jsonType, ""))
	if w.Code != http.StatusOK || len(s.batches) != 1 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	got := (<-s.batches).Windows[0]
	if got.Service != "shop" || got.Key.ID != 0xdeadbeef || got.Key.Text != "feed:7" || got.Start != epoch || got.End != epoch+1 {
		t.Errorf("%+v", got)
	}
	if w.Header().Get("Content-Type") != jsonType {
		t.Errorf("replied with %q", w.Header().Get("Content-Type"))
	}
}

func TestHTTPTurnsAwayWhenBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSink()
		r := s.receiver(ingest.Options{MaxConcurrent: 1})
		slow, feed := io.Pipe()
		first := make(chan int)
		go func() {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, post(slow, protoType, ""))
			first <- w.Code
		}()
		synctest.Wait()

		began := time.Now()
		w := httptest.NewRecorder()
		r.ServeHTTP(w, post(bytes.NewReader(marshal(t, oneWindow())), protoType, ""))
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || time.Since(began) != ingest.MaxWait {
			t.Errorf("status %d after %v", w.Code, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // who went away does not wait
		began = time.Now()
		r.ServeHTTP(httptest.NewRecorder(), post(bytes.NewReader(nil), protoType, "").WithContext(ctx))
		if d := time.Since(began); d != 0 {
			t.Errorf("waited %v for nobody", d)
		}
		if diff := cmp.Diff(map[string]int{"http busy": 2}, s.counts()); diff != "" {
			t.Error(diff)
		}

		second := make(chan int)
		go func() {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, post(bytes.NewReader(marshal(t, oneWindow())), protoType, ""))
			second <- w.Code
		}()
		synctest.Wait()
		feed.Write(marshal(t, oneWindow()))
		feed.Close()
		if a, b := <-first, <-second; a != http.StatusOK || b != http.StatusOK {
			t.Errorf("%d for the slow one, %d for the one that waited its turn", a, b)
		}
	})
}

func TestHTTPDoesNotWaitForASlowBody(t *testing.T) {
	t.Parallel()
	s := newSink()
	server := httptest.NewServer(s.receiver(ingest.Options{ReadTimeout: 50 * time.Millisecond}))
	defer server.Close()
	slow, feed := io.Pipe()
	defer feed.Close()
	resp, err := server.Client().Post(server.URL, protoType, slow)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status is %s: want 400", resp.Status)
	}
}
