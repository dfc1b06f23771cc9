package otlp_test

import (
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
)

func TestBadOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    otlp.Options
		env  map[string]string
		want string
	}{
		{"a protocol nobody speaks", otlp.Options{Protocol: "carrier pigeon"}, nil, `Protocol is "carrier pigeon": want "grpc" or "http/protobuf"`},
		{
			"a protocol in the environment the SDK does not speak", otlp.Options{},
			map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, `Protocol is "http/json": want "grpc" or "http/protobuf"`,
		},
		{"a queue of nothing", otlp.Options{QueueSize: -1}, nil, "QueueSize is -1: want 1 to 1000000"},
		{"a batch too big", otlp.Options{BatchSize: 10_001}, nil, "BatchSize is 10001: want 1 to 10000"},
		{"a timeout too short", otlp.Options{Timeout: time.Millisecond}, nil, "Timeout is 1ms: want 10ms to 1m0s"},
		{"no port", otlp.Options{Endpoint: "exporter"}, nil, `Endpoint is "exporter": want host:port or a URL: address exporter: missing port in address`},
		{"another scheme", otlp.Options{Endpoint: "ftp://exporter:1"}, nil, `Endpoint is "ftp://exporter:1": want the scheme http or https`},
		{"a URL without a host", otlp.Options{Endpoint: "http:///v1/logs"}, nil, `Endpoint is "http:///v1/logs": it names no host`},
		{"a URL that is none", otlp.Options{Endpoint: "http://a b:1"}, nil, `parse Endpoint "http://a b:1": parse "http://a b:1": invalid character " " in host name`},
		{"TLS and none", otlp.Options{Endpoint: "https://exporter:1", Insecure: true}, nil, `Endpoint is "https://exporter:1" and Insecure is set: want one or the other`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			_, err := otlp.New(t.Context(), tt.o)
			if want := "configure OTLP exporter: " + tt.want; err == nil || err.Error() != want {
				t.Errorf("error is %v: want %s", err, want)
			}
		})
	}
}
