package ingest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	contentProto = "application/x-protobuf"
	contentJSON  = "application/json"
)

// maxPooled bounds the buffers that are kept for the next request.
const maxPooled = 1 << 20

// refusal is why a request is turned away.
type refusal struct {
	status int // HTTP
	code   codes.Code
	reason string
	err    error
}

var (
	errTooLarge = errors.New("the body is too large")
	errBusy     = errors.New("too many requests at once")
)

// ServeHTTP implements OTLP over HTTP, for whatever path it is put at.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	content, no := r.accept(req)
	if no == nil {
		var resp *collogspb.ExportLogsServiceResponse
		if resp, no = r.handle(w, req, content); no == nil {
			reply(w, content, http.StatusOK, resp)
			return
		}
	}
	r.opt.Rejected(TransportHTTP, no.reason, 1)
	switch no.status {
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	if content == "" {
		http.Error(w, no.err.Error(), no.status)
		return
	}
	// What is wrong with a body may be told in its own words, which need not be
	// UTF-8, as those of a reply must.
	text := strings.ToValidUTF8(no.err.Error(), "\uFFFD")
	reply(w, content, no.status, status.New(no.code, text).Proto())
}

// accept looks at the head of a request and returns its content type, which is
// empty if it is none we can answer in.
func (r *Receiver) accept(req *http.Request) (content string, no *refusal) {
	refuse := func(status int, reason string, err error) *refusal {
		return &refusal{status, codes.InvalidArgument, reason, err}
	}
	if req.Method != http.MethodPost {
		return "", refuse(http.StatusMethodNotAllowed, ReasonUnsupported, errors.New("want POST"))
	}
	content, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || content != contentProto && content != contentJSON {
		return "", refuse(http.StatusUnsupportedMediaType, ReasonUnsupported, fmt.Errorf("want Content-Type %s or %s", contentProto, contentJSON))
	}
	switch req.Header.Get("Content-Encoding") {
	case "", "identity", "gzip":
	default:
		return content, refuse(http.StatusUnsupportedMediaType, ReasonUnsupported, errors.New("want Content-Encoding gzip or none"))
	}
	if req.ContentLength > int64(r.opt.MaxBody) {
		return content, refuse(http.StatusRequestEntityTooLarge, ReasonTooLarge, errTooLarge)
	}
	return content, nil
}

// handle reads and decodes the body, and delivers what is in it.
func (r *Receiver) handle(w http.ResponseWriter, req *http.Request, content string) (*collogspb.ExportLogsServiceResponse, *refusal) {
	if !r.acquire(req.Context()) {
		return nil, &refusal{http.StatusServiceUnavailable, codes.Unavailable, ReasonBusy, errBusy}
	}
	defer r.release()
	// A turn is not to be held by somebody who sends a byte a minute. A writer
	// that has no deadlines belongs to no network.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(r.opt.ReadTimeout))

	buf := r.buffer()
	defer r.recycle(buf)
	err := r.read(buf, req)
	var msg *collogspb.ExportLogsServiceRequest
	if err == nil {
		// Decoding copies all it keeps, so that the buffer can be used again.
		msg, err = r.decodeBody(buf.Bytes(), content)
	}
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, errTooDense), errors.Is(err, errTooDeep):
		return nil, &refusal{http.StatusRequestEntityTooLarge, codes.InvalidArgument, ReasonTooLarge, err}
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, codes.InvalidArgument, ReasonMalformed, err}
	}
	return r.deliver(TransportHTTP, msg), nil
}

func (r *Receiver) decodeBody(b []byte, content string) (*collogspb.ExportLogsServiceRequest, error) {
	if content == contentJSON {
		if err := weighJSON(b, r.maxMessages()); err != nil {
			return nil, err
		}
		return ParseJSON(b)
	}
	if err := weighProto(b, r.maxMessages()); err != nil {
		return nil, err
	}
	msg := &collogspb.ExportLogsServiceRequest{}
	if err := proto.Unmarshal(b, msg); err != nil {
		return nil, fmt.Errorf("decode logs request: %w", err)
	}
	return msg, nil
}

// ParseJSON decodes one logs request in the JSON encoding of OTLP: the body of a
// request, or a line of a Collector's file exporter. Fields it does not know are
// passed over. OTLP writes trace and span ids in hexadecimal where protobuf's own
// JSON would have base64; we have no use for them, so that they come out wrong
// does not matter, and hexadecimal digits always pass for base64.
func ParseJSON(b []byte) (*collogspb.ExportLogsServiceRequest, error) {
	req := &collogspb.ExportLogsServiceRequest{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, req); err != nil {
		return nil, fmt.Errorf("decode logs request: %w", err)
	}
	return req, nil
}

// read fills buf with the decompressed body, and fails with errTooLarge rather
// than go over the limit, compressed or not.
func (r *Receiver) read(buf *bytes.Buffer, req *http.Request) error {
	limit := int64(r.opt.MaxBody)
	wire := &io.LimitedReader{R: req.Body, N: limit + 1}
	body := io.Reader(wire)
	if req.Header.Get("Content-Encoding") == "gzip" {
		z, ok := r.gzips.Get().(*gzip.Reader)
		if !ok {
			z = new(gzip.Reader)
		}
		defer r.gzips.Put(z)
		if err := z.Reset(wire); err != nil {
			return fmt.Errorf("read body: %w", err)
		}
		body = &io.LimitedReader{R: z, N: limit + 1}
	} else if n := req.ContentLength; n > 0 {
		// What is claimed is not yet sent: believe it only so far.
		buf.Grow(int(min(n, maxPooled-bytes.MinRead)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(body)
	switch {
	case wire.N <= 0 || int64(buf.Len()) > limit:
		return errTooLarge
	case err != nil:
		return fmt.Errorf("read body: %w", err)
	}
	return nil
}

func (r *Receiver) buffer() *bytes.Buffer {
	if b, ok := r.buffers.Get().(*bytes.Buffer); ok {
		b.Reset()
		return b
	}
	return new(bytes.Buffer)
}

func (r *Receiver) recycle(b *bytes.Buffer) {
	if b.Cap() <= maxPooled {
		r.buffers.Put(b)
	}
}

// reply writes m in the encoding the request came in.
func reply(w http.ResponseWriter, content string, code int, m proto.Message) {
	marshal := proto.Marshal
	if content == contentJSON {
		marshal = protojson.Marshal
	}
	body, err := marshal(m)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", content)
	w.WriteHeader(code)
	_, _ = w.Write(body) // whoever asked is gone: there is nobody to tell
}
