package ingest

import (
	"context"
	"sync"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
)

// Transports, as metrics name them.
const (
	TransportGRPC = "grpc"
	TransportHTTP = "http"
)

// Sink takes what was received. Ingest is called concurrently, and its caller
// waits for it; b is the sink's to keep.
type Sink interface {
	Ingest(b Batch)
}

// Receiver receives OTLP logs. [Receiver.Register] serves them over gRPC, and a
// Receiver is an [http.Handler] for POST /v1/logs. It is safe for concurrent use.
type Receiver struct {
	sink  Sink
	opt   Options
	slots chan struct{}

	buffers sync.Pool // of *bytes.Buffer
	gzips   sync.Pool // of *gzip.Reader
}

// NewReceiver returns a Receiver that passes on to sink.
func NewReceiver(sink Sink, o Options) *Receiver {
	o = o.withDefaults()
	return &Receiver{sink: sink, opt: o, slots: make(chan struct{}, o.MaxConcurrent)}
}

// acquire waits for a turn, which release must give back if it got one.
func (r *Receiver) acquire(ctx context.Context) bool {
	select {
	case r.slots <- struct{}{}:
		return true
	default:
	}
	wait := time.NewTimer(MaxWait)
	defer wait.Stop()
	select {
	case r.slots <- struct{}{}:
		return true
	case <-wait.C:
	case <-ctx.Done():
	}
	return false
}

func (r *Receiver) release() { <-r.slots }

func (r *Receiver) maxMessages() int { return r.opt.MaxBody / bytesPerMessage }

// deliver decodes req, passes on what is good in it and returns the answer.
func (r *Receiver) deliver(transport string, req *collogspb.ExportLogsServiceRequest) *collogspb.ExportLogsServiceResponse {
	received := r.opt.Now()
	batch, refused := Decode(req)
	batch.Transport, batch.Received = transport, received
	if len(batch.Windows)+len(batch.Vitals) > 0 {
		r.sink.Ingest(batch)
	}
	for _, x := range refused {
		r.opt.Rejected(transport, x.Reason, x.Records)
	}
	resp := &collogspb.ExportLogsServiceResponse{}
	if n, why := rejects(refused).blame(); n > 0 {
		resp.PartialSuccess = &collogspb.ExportLogsPartialSuccess{RejectedLogRecords: int64(n), ErrorMessage: why}
	}
	return resp
}
