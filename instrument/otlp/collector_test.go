package otlp_test

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // so that the server understands it
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// collector is a receiver that keeps what it gets, as it came over the wire.
type collector struct {
	collogspb.UnimplementedLogsServiceServer

	got chan *collogspb.ExportLogsServiceRequest

	mu      sync.Mutex
	headers http.Header // of the latest request
	path    string      // of the latest request over HTTP
	partial *collogspb.ExportLogsPartialSuccess
}

func newCollector() *collector {
	return &collector{got: make(chan *collogspb.ExportLogsServiceRequest, 1000)}
}

func (c *collector) take(h http.Header, path string, req *collogspb.ExportLogsServiceRequest) *collogspb.ExportLogsServiceResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers, c.path = h, path
	c.got <- req
	return &collogspb.ExportLogsServiceResponse{PartialSuccess: c.partial}
}

func (c *collector) Export(ctx context.Context, req *collogspb.ExportLogsServiceRequest) (*collogspb.ExportLogsServiceResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	h := http.Header{}
	for k, vs := range md {
		for _, v := range vs {
			h.Add(k, v)
		}
	}
	return c.take(h, "", req), nil
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	b, err := io.ReadAll(body)
	req := &collogspb.ExportLogsServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(b, req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, err := proto.Marshal(c.take(r.Header, r.URL.Path, req))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(out)
}

// serveGRPC serves c at addr until the returned function is called or the test
// ends.
func (c *collector) serveGRPC(t *testing.T, addr string) (at string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	collogspb.RegisterLogsServiceServer(s, c)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	stop = sync.OnceFunc(func() {
		s.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

// serveHTTP serves c on a free port until the test ends.
func (c *collector) serveHTTP(t *testing.T) (hostport string) {
	t.Helper()
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// event is one log record with the resource it came under.
type event struct {
	resource map[string]any
	scope    string
	record   *logspb.LogRecord
}

// events returns the next n records that c gets.
func (c *collector) events(t *testing.T, n int) []event {
	t.Helper()
	var out []event
	for len(out) < n {
		var req *collogspb.ExportLogsServiceRequest
		select {
		case req = <-c.got:
		case <-t.Context().Done():
			t.Fatal("the test ended")
		}
		for _, rl := range req.ResourceLogs {
			for _, sl := range rl.ScopeLogs {
				for _, r := range sl.LogRecords {
					out = append(out, event{attributes(rl.Resource.Attributes), sl.Scope.Name, r})
				}
			}
		}
	}
	return out
}

func attributes(kvs []*commonpb.KeyValue) map[string]any {
	m := map[string]any{}
	for _, kv := range kvs {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			m[kv.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[kv.Key] = v.IntValue
		case *commonpb.AnyValue_BoolValue:
			m[kv.Key] = v.BoolValue
		case *commonpb.AnyValue_DoubleValue:
			m[kv.Key] = v.DoubleValue
		case *commonpb.AnyValue_BytesValue:
			m[kv.Key] = v.BytesValue
		default:
			m[kv.Key] = v
		}
	}
	return m
}
