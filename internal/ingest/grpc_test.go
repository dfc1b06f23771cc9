package ingest_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// dial connects to r; stop ends the connection and waits for the server.
func dial(t *testing.T, r *ingest.Receiver) (conn *grpc.ClientConn, stop func()) {
	t.Helper()
	addr, stopServer := serveGRPC(t, r)
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		conn.Close()
		stopServer()
	})
	t.Cleanup(stop)
	return conn, stop
}

func TestGRPCTakesGzipAndTellsWhatItRefused(t *testing.T) {
	t.Parallel()
	s := newSink()
	conn, _ := dial(t, s.receiver(ingest.Options{}))
	client := collogspb.NewLogsServiceClient(conn)
	resp, err := client.Export(t.Context(), request(resource,
		event(semconv.EventWindow, windowAttrs), event(semconv.EventWindow, windowAttrs.with(attrs{"stampede.end": nil})), event("", nil),
	), grpc.UseCompressor(gzip.Name))
	if err != nil {
		t.Fatal(err)
	}
	if p := resp.GetPartialSuccess(); p.GetRejectedLogRecords() != 1 || p.GetErrorMessage() != "no_time: 1" {
		t.Error(resp)
	}
	if b := <-s.batches; b.Transport != ingest.TransportGRPC || len(b.Windows) != 1 {
		t.Error(b)
	}
	if diff := cmp.Diff(map[string]int{"grpc no_time": 1, "grpc not_ours": 1}, s.counts()); diff != "" {
		t.Error(diff)
	}
}

func TestGRPCCountsWhatItRefusesBeforeWeSeeIt(t *testing.T) {
	t.Parallel()
	const limit = 4096
	big := request(attrs{"blob": make([]byte, limit)})
	for _, tt := range []struct {
		name   string
		call   func(context.Context, *grpc.ClientConn) error
		code   codes.Code
		counts map[string]int
	}{
		{
			"a message over the limit",
			func(ctx context.Context, c *grpc.ClientConn) error {
				_, err := collogspb.NewLogsServiceClient(c).Export(ctx, big)
				return err
			},
			codes.ResourceExhausted, map[string]int{"grpc too_large": 1},
		},
		{
			"a message over the limit only unpacked",
			func(ctx context.Context, c *grpc.ClientConn) error {
				_, err := collogspb.NewLogsServiceClient(c).Export(ctx, big, grpc.UseCompressor(gzip.Name))
				return err
			},
			codes.ResourceExhausted, map[string]int{"grpc too_large": 1},
		},
		{
			"a message of nothing but messages",
			func(ctx context.Context, c *grpc.ClientConn) error {
				_, err := collogspb.NewLogsServiceClient(c).Export(ctx, dense(limit/3))
				return err
			},
			codes.ResourceExhausted, map[string]int{"grpc too_large": 1},
		},
		{
			"a text that is not UTF-8",
			func(ctx context.Context, c *grpc.ClientConn) error {
				raw := marshal(t, oneWindow())
				raw = bytes.Replace(raw, []byte("feeds"), []byte("f\xff\xff\xffs"), 1)
				var message emptypb.Empty
				message.ProtoReflect().SetUnknown(raw)
				return c.Invoke(ctx, collogspb.LogsService_Export_FullMethodName, &message, &collogspb.ExportLogsServiceResponse{})
			},
			codes.Internal, map[string]int{"grpc malformed": 1},
		},
		{
			"garbage", // bytes where a message should be
			func(ctx context.Context, c *grpc.ClientConn) error {
				return c.Invoke(ctx, collogspb.LogsService_Export_FullMethodName, wrapperspb.Bytes([]byte("garbage")), &collogspb.ExportLogsServiceResponse{})
			},
			codes.Internal, map[string]int{"grpc malformed": 1},
		},
		{
			"a method nobody has",
			func(ctx context.Context, c *grpc.ClientConn) error {
				return c.Invoke(ctx, "/some.Other/Method", wrapperspb.Bytes(nil), wrapperspb.Bytes(nil))
			},
			codes.Unimplemented, map[string]int{},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSink()
			r := s.receiver(ingest.Options{MaxBody: limit})
			conn, stop := dial(t, r)
			if err := tt.call(t.Context(), conn); status.Code(err) != tt.code {
				t.Errorf("error is %v: want %v", err, tt.code)
			}
			stop() // gRPC counts a call after it has answered it
			if diff := cmp.Diff(tt.counts, s.counts()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// method is a registrar that keeps the one method it is given.
type method struct {
	service any
	handler grpc.MethodHandler
}

func (m *method) RegisterService(d *grpc.ServiceDesc, s any) {
	m.service, m.handler = s, d.Methods[0].Handler
}

// call calls the method with one window, as a server would.
func (m *method) call(t *testing.T) error {
	_, err := m.handler(m.service, t.Context(), func(dst any) error {
		return proto.Unmarshal(marshal(t, oneWindow()), dst.(proto.Message))
	}, nil)
	return err
}

// stuck is a sink that takes its time.
type stuck chan struct{}

func (s stuck) Ingest(ingest.Batch) { <-s }

func TestGRPCHonoursInterceptors(t *testing.T) {
	t.Parallel()
	s := newSink()
	r := s.receiver(ingest.Options{})
	var m method
	r.Register(&m)
	var saw *grpc.UnaryServerInfo
	_, err := m.handler(m.service, t.Context(), func(dst any) error {
		return proto.Unmarshal(marshal(t, oneWindow()), dst.(proto.Message))
	}, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		saw = info
		return next(ctx, req)
	})
	if err != nil || saw.FullMethod != collogspb.LogsService_Export_FullMethodName || len(s.batches) != 1 {
		t.Errorf("error %v, saw %v, %d batches", err, saw, len(s.batches))
	}
}

func TestGRPCTurnsAwayWhenBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, s := make(stuck), newSink()
		r := ingest.NewReceiver(release, ingest.Options{MaxConcurrent: 1, Rejected: s.reject})
		var m method
		r.Register(&m)
		first := make(chan error)
		go func() { first <- m.call(t) }()
		synctest.Wait()
		began := time.Now()
		err := m.call(t)
		if status.Code(err) != codes.Unavailable || time.Since(began) != ingest.MaxWait {
			t.Errorf("error is %v after %v", err, time.Since(began))
		}
		close(release)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(map[string]int{"grpc busy": 1}, s.counts()); diff != "" {
			t.Error(diff)
		}
	})
}
