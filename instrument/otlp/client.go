package otlp

import (
	"context"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// newClient makes the SDK's own OTLP exporter. It takes from the environment
// what o leaves open. Its retries are off: they would hold up the one goroutine
// that sends, and could deliver a window twice.
func newClient(ctx context.Context, o Options) (sdklog.Exporter, error) {
	if o.Protocol == ProtocolHTTP {
		return otlploghttp.New(ctx, httpOptions(o)...)
	}
	return otlploggrpc.New(ctx, grpcOptions(o)...)
}

func grpcOptions(o Options) []otlploggrpc.Option {
	opts := []otlploggrpc.Option{
		otlploggrpc.WithRetry(otlploggrpc.RetryConfig{Enabled: false}),
		// The default lets two minutes pass between attempts to connect, for
		// which a receiver that is back would hear nothing.
		otlploggrpc.WithDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: minPause, Multiplier: 2, Jitter: 0.2, MaxDelay: maxPause},
			MinConnectTimeout: maxPause,
		})),
	}
	switch {
	case o.Endpoint == "":
	case strings.Contains(o.Endpoint, schemeSeparator):
		opts = append(opts, otlploggrpc.WithEndpointURL(o.Endpoint))
	default:
		opts = append(opts, otlploggrpc.WithEndpoint(o.Endpoint))
	}
	if o.Insecure {
		opts = append(opts, otlploggrpc.WithInsecure())
	}
	if o.Timeout > 0 {
		opts = append(opts, otlploggrpc.WithTimeout(o.Timeout))
	}
	return opts
}

func httpOptions(o Options) []otlploghttp.Option {
	opts := []otlploghttp.Option{otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: false})}
	switch {
	case o.Endpoint == "":
	case strings.Contains(o.Endpoint, schemeSeparator):
		opts = append(opts, otlploghttp.WithEndpointURL(o.Endpoint))
		if u, err := url.Parse(o.Endpoint); err == nil && (u.Path == "" || u.Path == httpRoot) {
			opts = append(opts, otlploghttp.WithURLPath(httpPath))
		}
	default:
		opts = append(opts, otlploghttp.WithEndpoint(o.Endpoint))
	}
	if o.Insecure {
		opts = append(opts, otlploghttp.WithInsecure())
	}
	if o.Timeout > 0 {
		opts = append(opts, otlploghttp.WithTimeout(o.Timeout))
	}
	return opts
}

// Pauses between tries while the receiver is away.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)
