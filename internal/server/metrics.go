package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/collectors/version"

	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager"
	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/internal/metric"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// metrics are the server's own. Safe for concurrent use.
type metrics struct {
	rejected      *prometheus.CounterVec
	notifications *prometheus.CounterVec
	reload        prometheus.Gauge
	reloadTime    prometheus.Gauge
}

// notifierName is the only notifier there is, as metrics name it.
const notifierName = "alertmanager"

// newMetrics returns metrics that are registered with r, together with those of
// the process. Series whose labels are known exist from the start: a rate needs
// the zero before the one.
func newMetrics(r prometheus.Registerer) *metrics {
	reload, reloadTime := metric.NewGauge(semconv.ConfigReload), metric.NewGauge(semconv.ConfigReloadTime)
	m := &metrics{
		rejected:      metric.NewCounter(semconv.RecordsRejected),
		notifications: metric.NewCounter(semconv.Notifications),
		reload:        reload.WithLabelValues(),
		reloadTime:    reloadTime.WithLabelValues(),
	}
	for _, transport := range []string{ingest.TransportGRPC, ingest.TransportHTTP} {
		for _, reason := range ingest.Reasons() {
			m.rejected.WithLabelValues(transport, reason)
		}
	}
	for _, outcome := range []string{alertmanager.OutcomeOK, alertmanager.OutcomeFailed} {
		m.notifications.WithLabelValues(notifierName, outcome)
	}
	r.MustRegister(m.rejected, m.notifications, reload, reloadTime,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		version.NewCollector("stampede_exporter"),
	)
	return m
}

// refused counts records a receiver refused.
func (m *metrics) refused(transport, reason string, n int) {
	m.rejected.WithLabelValues(transport, reason).Add(float64(n))
}

// sent counts a request to an Alertmanager.
func (m *metrics) sent(outcome string) { m.notifications.WithLabelValues(notifierName, outcome).Inc() }

// loaded records a reading of the configuration.
func (m *metrics) loaded(now time.Time, err error) {
	if err != nil {
		m.reload.Set(0)
		return
	}
	m.reload.Set(1)
	m.reloadTime.Set(float64(now.UnixNano()) / 1e9)
}
