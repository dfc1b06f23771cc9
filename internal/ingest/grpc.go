package ingest

import (
	"context"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // OTLP clients may compress with it
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Register adds the OTLP logs service to s, which should have been made with
// [Receiver.ServerOptions].
func (r *Receiver) Register(s grpc.ServiceRegistrar) {
	desc := collogspb.LogsService_ServiceDesc
	desc.Methods = []grpc.MethodDesc{{MethodName: "Export", Handler: handleExport}}
	s.RegisterService(&desc, logsService{receiver: r})
}

// ServerOptions returns what a gRPC server needs for the bounds of r to hold, and
// for requests that are refused to be counted.
func (r *Receiver) ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(r.opt.MaxBody),
		grpc.MaxConcurrentStreams(uint32(r.opt.MaxConcurrent)),
		grpc.StatsHandler(refusals{r}),
	}
}

type logsService struct {
	collogspb.UnimplementedLogsServiceServer

	receiver *Receiver
}

// Export implements the OTLP logs service.
func (s logsService) Export(_ context.Context, req *collogspb.ExportLogsServiceRequest) (*collogspb.ExportLogsServiceResponse, error) {
	return s.receiver.deliver(TransportGRPC, req), nil
}

// handleExport takes the place of the generated handler, which decodes a request
// before anybody can look at it. This one waits for a turn and weighs it first.
func handleExport(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
	s := srv.(logsService)
	r := s.receiver
	if !r.acquire(ctx) {
		r.opt.Rejected(TransportGRPC, ReasonBusy, 1)
		// Unavailable asks an OTLP client to try again later.
		return nil, status.Error(codes.Unavailable, errBusy.Error())
	}
	defer r.release()
	req, err := r.decodeExport(decode)
	if err != nil {
		return nil, err
	}
	if interceptor == nil {
		return s.Export(ctx, req)
	}
	info := &grpc.UnaryServerInfo{Server: srv, FullMethod: collogspb.LogsService_Export_FullMethodName}
	return interceptor(ctx, req, info, func(ctx context.Context, req any) (any, error) {
		return s.Export(ctx, req.(*collogspb.ExportLogsServiceRequest))
	})
}

// decodeExport gets the bytes of a request by having it decoded as a message with
// no fields: what it does not know it keeps as it came. The codes of its errors
// are those gRPC gives requests it refuses by itself.
func (r *Receiver) decodeExport(decode func(any) error) (*collogspb.ExportLogsServiceRequest, error) {
	var raw emptypb.Empty
	if err := decode(&raw); err != nil {
		return nil, err
	}
	b := raw.ProtoReflect().GetUnknown()
	if err := weighProto(b, r.maxMessages()); err != nil {
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	req := &collogspb.ExportLogsServiceRequest{}
	if err := proto.Unmarshal(b, req); err != nil {
		return nil, status.Errorf(codes.Internal, "decode logs request: %v", err)
	}
	return req, nil
}

// refusals counts requests that did not reach Export: gRPC reads and
// decompresses them by itself, and tells nobody else.
type refusals struct{ receiver *Receiver }

type oursKey struct{}

// TagRPC marks calls of our method: the server may have other services.
func (refusals) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if info.FullMethodName == collogspb.LogsService_Export_FullMethodName {
		return context.WithValue(ctx, oursKey{}, true)
	}
	return ctx
}

// HandleRPC counts calls that ended in a way Export does not end them.
func (h refusals) HandleRPC(ctx context.Context, s stats.RPCStats) {
	end, ok := s.(*stats.End)
	if !ok || end.Error == nil || ctx.Value(oursKey{}) == nil {
		return
	}
	switch status.Code(end.Error) {
	case codes.ResourceExhausted:
		h.receiver.opt.Rejected(TransportGRPC, ReasonTooLarge, 1)
	case codes.Internal:
		h.receiver.opt.Rejected(TransportGRPC, ReasonMalformed, 1)
	case codes.Unimplemented:
		h.receiver.opt.Rejected(TransportGRPC, ReasonUnsupported, 1)
	}
}

// TagConn implements [stats.Handler].
func (refusals) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements [stats.Handler].
func (refusals) HandleConn(context.Context, stats.ConnStats) {}
