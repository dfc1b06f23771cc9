package otlp

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
)

// Protocols an [Exporter] speaks.
const (
	ProtocolGRPC = "grpc"
	ProtocolHTTP = "http/protobuf"
)

// Options configure an [Exporter]. The zero value works.
type Options struct {
	// Endpoint is where records go: host:port, or a URL with the scheme http
	// (no TLS) or https. Over HTTP the path defaults to /v1/logs. Default: the
	// environment; without one, localhost at the port usual for the protocol,
	// without TLS.
	Endpoint string
	// Protocol is ProtocolGRPC or ProtocolHTTP. Default: the environment,
	// else ProtocolGRPC.
	Protocol string
	// Insecure switches TLS off for an Endpoint without a scheme.
	Insecure bool

	// QueueSize bounds how many records wait to be sent, 1 to 1,000,000.
	// Default 2048. A window takes about 1 KiB, and 32 bytes more for each
	// recompute it tells of.
	QueueSize int
	// BatchSize bounds how many records one request carries, 1 to 10,000.
	// Default 512.
	BatchSize int
	// Timeout bounds one request, 10 ms to 1 min. Default: the environment,
	// else 5 s.
	Timeout time.Duration

	// OnError is told why records are being lost: once when exports begin to
	// fail or to be refused in part, and again only after one went well. It
	// is called by the exporter's goroutine. Default: [otel.Handle].
	OnError func(error)
}

const (
	defaultQueue, maxQueue              = 2048, 1_000_000
	defaultBatch, maxBatch              = 512, 10_000
	defaultTimeout                      = 5 * time.Second
	minTimeout, maxTimeout              = 10 * time.Millisecond, time.Minute
	envPrefix, envLogsPrefix            = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_LOGS_"
	defaultGRPCHost, defaultHTTPHost    = "localhost:4317", "localhost:4318"
	schemeSeparator, httpPath, httpRoot = "://", "/v1/logs", "/"
)

// withDefaults fills what is zero. A Timeout left to the environment stays zero.
func (o Options) withDefaults() Options {
	if o.Protocol == "" {
		o.Protocol = env("PROTOCOL")
	}
	if o.Protocol == "" {
		o.Protocol = ProtocolGRPC
	}
	if o.Endpoint == "" && env("ENDPOINT") == "" {
		o.Endpoint = defaultGRPCHost
		if o.Protocol == ProtocolHTTP {
			o.Endpoint = defaultHTTPHost
		}
		// Loopback needs no TLS, unless somebody has set it up.
		o.Insecure = o.Insecure || env("CERTIFICATE") == "" && env("CLIENT_CERTIFICATE") == "" && env("INSECURE") == ""
	}
	if o.QueueSize == 0 {
		o.QueueSize = defaultQueue
	}
	if o.BatchSize == 0 {
		o.BatchSize = defaultBatch
	}
	if o.Timeout == 0 && env("TIMEOUT") == "" {
		o.Timeout = defaultTimeout
	}
	if o.OnError == nil {
		o.OnError = otel.Handle
	}
	return o
}

// env returns the value of an OTLP exporter variable: the one for logs if it is
// set, else the general one.
func env(name string) string {
	if v := os.Getenv(envLogsPrefix + name); v != "" {
		return v
	}
	return os.Getenv(envPrefix + name)
}

func (o Options) validate() error {
	switch {
	case o.Protocol != ProtocolGRPC && o.Protocol != ProtocolHTTP:
		return fmt.Errorf("Protocol is %q: want %q or %q", o.Protocol, ProtocolGRPC, ProtocolHTTP)
	case o.QueueSize < 1 || o.QueueSize > maxQueue:
		return fmt.Errorf("QueueSize is %d: want 1 to %d", o.QueueSize, maxQueue)
	case o.BatchSize < 1 || o.BatchSize > maxBatch:
		return fmt.Errorf("BatchSize is %d: want 1 to %d", o.BatchSize, maxBatch)
	case o.Timeout != 0 && (o.Timeout < minTimeout || o.Timeout > maxTimeout):
		return fmt.Errorf("Timeout is %v: want %v to %v", o.Timeout, minTimeout, maxTimeout)
	case o.Endpoint != "":
		return o.validateEndpoint()
	}
	return nil
}

func (o Options) validateEndpoint() error {
	if !strings.Contains(o.Endpoint, schemeSeparator) {
		if _, _, err := net.SplitHostPort(o.Endpoint); err != nil {
			return fmt.Errorf("Endpoint is %q: want host:port or a URL: %w", o.Endpoint, err)
		}
		return nil
	}
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil:
		return fmt.Errorf("parse Endpoint %q: %w", o.Endpoint, err)
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("Endpoint is %q: want the scheme http or https", o.Endpoint)
	case u.Host == "":
		return fmt.Errorf("Endpoint is %q: it names no host", o.Endpoint)
	case u.Scheme == "https" && o.Insecure:
		return fmt.Errorf("Endpoint is %q and Insecure is set: want one or the other", o.Endpoint)
	}
	return nil
}
