package engine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/internal/metric"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// Metrics count what the engine does. Safe for concurrent use.
type Metrics struct {
	windows *prometheus.CounterVec
	vitals  *prometheus.CounterVec
	ticks   prometheus.Observer
	panics  *prometheus.CounterVec
}

// NewMetrics returns metrics that are registered with r.
func NewMetrics(r prometheus.Registerer) *Metrics {
	// 100 µs to 1.6 s: a tick of a small fleet takes the first, and past a
	// second ticks are late.
	ticks := metric.NewHistogram(semconv.TickDuration, prometheus.ExponentialBuckets(0.0001, 4, 8))
	m := &Metrics{
		windows: metric.NewCounter(semconv.WindowsReceived),
		vitals:  metric.NewCounter(semconv.VitalsReceived),
		ticks:   ticks.WithLabelValues(),
		panics:  metric.NewCounter(semconv.DetectorPanics),
	}
	for _, transport := range []string{ingest.TransportGRPC, ingest.TransportHTTP} {
		m.received(transport, 0, 0)
	}
	r.MustRegister(m.windows, m.vitals, ticks, m.panics)
	return m
}

func (m *Metrics) received(transport string, windows, vitals int) {
	m.windows.WithLabelValues(transport).Add(float64(windows))
	m.vitals.WithLabelValues(transport).Add(float64(vitals))
}

func (m *Metrics) tick(d time.Duration)     { m.ticks.Observe(d.Seconds()) }
func (m *Metrics) panicked(detector string) { m.panics.WithLabelValues(detector).Inc() }
