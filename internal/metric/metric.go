// Package metric makes Prometheus metrics from the definitions in semconv, so
// that no name, label or help text is written twice.
//
// Nothing here registers anything: the caller owns the registry.
package metric

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// maxLabelBytes bounds a label value that came from outside. It is no less than
// what the receivers accept as a name, so that no two names become one.
const maxLabelBytes = 256

// NewDesc returns the description of m, for a collector that makes its metrics
// when it is scraped.
func NewDesc(m semconv.Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

// NewCounter returns a counter for m, which must have the labels the caller
// gives values for.
func NewCounter(m semconv.Metric) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// NewGauge returns a gauge for m.
func NewGauge(m semconv.Metric) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// NewHistogram returns a histogram of seconds for m: native, with classic
// buckets kept for who does not read native ones.
func NewHistogram(m semconv.Metric, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: m.Name, Help: m.Help, Buckets: buckets,
		// A growth of 1.1 is schema 3: an error of 5 %, and 160 buckets
		// cover nine orders of magnitude.
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
	}, m.Labels)
}

// Const returns one sample of d as it is now. Label values may come from
// outside: see [Label].
func Const(d *prometheus.Desc, k semconv.Kind, v float64, labels ...string) prometheus.Metric {
	t := prometheus.GaugeValue
	if k == semconv.Counter {
		t = prometheus.CounterValue
	}
	for i := range labels {
		labels[i] = Label(labels[i])
	}
	m, err := prometheus.NewConstMetric(d, t, v, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(d, err)
	}
	return m
}

// Label makes s fit to be a label value: valid UTF-8 of at most 256 bytes. One
// that is not would cost the whole scrape.
func Label(s string) string {
	if len(s) > maxLabelBytes {
		s = s[:maxLabelBytes]
	}
	return strings.ToValidUTF8(s, "")
}
