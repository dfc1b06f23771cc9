package archtest

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// weight is every module that a program for Linux links because it imports one
// of these packages: what a service takes on to be watched. Think before it
// grows.
var weight = map[string][]string{
	"instrument": {},
	"instrument/goredis": {
		"github.com/cespare/xxhash/v2",
		"github.com/redis/go-redis/v9",
		"go.uber.org/atomic",
		"golang.org/x/sys",
	},
	"instrument/prom": {
		"github.com/beorn7/perks",
		"github.com/cespare/xxhash/v2",
		"github.com/munnerz/goautoneg",
		"github.com/pandatix/go-abnf",
		"github.com/prometheus/client_golang",
		"github.com/prometheus/client_model",
		"github.com/prometheus/common",
		"github.com/prometheus/procfs",
		"golang.org/x/sys",
		"google.golang.org/protobuf",
	},
	"instrument/otlp": {
		"github.com/cenkalti/backoff/v5",
		"github.com/cespare/xxhash/v2",
		"github.com/go-logr/logr",
		"github.com/go-logr/stdr",
		"github.com/google/uuid",
		"github.com/grpc-ecosystem/grpc-gateway/v2",
		"go.opentelemetry.io/auto/sdk",
		"go.opentelemetry.io/otel",
		"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc",
		"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp",
		"go.opentelemetry.io/otel/log",
		"go.opentelemetry.io/otel/metric",
		"go.opentelemetry.io/otel/sdk",
		"go.opentelemetry.io/otel/sdk/log",
		"go.opentelemetry.io/otel/trace",
		"go.opentelemetry.io/proto/otlp",
		"golang.org/x/net",
		"golang.org/x/sys",
		"golang.org/x/text",
		"google.golang.org/genproto/googleapis/api",
		"google.golang.org/genproto/googleapis/rpc",
		"google.golang.org/grpc",
		"google.golang.org/protobuf",
	},
}

func TestInstrumentationStaysLight(t *testing.T) {
	for _, path := range slices.Sorted(maps.Keys(weight)) {
		linked := map[string]bool{}
		for _, p := range list(t, "-deps", "./"+path) {
			if p.Module != nil && !p.Module.Main {
				linked[p.Module.Path] = true
			}
		}
		got := append([]string{}, slices.Sorted(maps.Keys(linked))...)
		if diff := cmp.Diff(weight[path], got); diff != "" {
			t.Errorf("a program that imports %s links other modules than it did (-before +now):\n%s", path, diff)
		}
	}
}
