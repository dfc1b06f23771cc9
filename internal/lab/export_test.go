package lab

import (
	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Request makes the request that takes records of one source.
func Request(ws []*signal.Window, vs []*signal.Vitals) *collogspb.ExportLogsServiceRequest {
	var e encoder
	return e.request(ws, vs)
}
