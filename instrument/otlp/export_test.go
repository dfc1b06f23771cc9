package otlp

import (
	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Start returns an Exporter that sends through client.
func Start(client sdklog.Exporter, o Options) (*Exporter, error) {
	o = o.withDefaults()
	return start(client, o), o.validate()
}

// MaxPause is the longest pause between tries.
const MaxPause = maxPause

// Rejected reads the SDK's report of a partial success.
var Rejected = rejected

// Encoder returns a function that makes a log record of a window, as the
// exporter's goroutine does.
func Encoder() func(*signal.Window) {
	b := newBatch()
	return func(w *signal.Window) {
		b.add(item{window: w})
		b.reset()
	}
}
