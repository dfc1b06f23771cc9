package server

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stampede-exporter/stampede-exporter/internal/metric"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// probeMetrics are about probes and about what cache servers say of themselves.
// Safe for concurrent use.
type probeMetrics struct {
	success  *prometheus.GaugeVec
	duration *prometheus.HistogramVec
	failures *prometheus.CounterVec
	gaps     *prometheus.CounterVec
	skipped  *prometheus.CounterVec
	limits   *prometheus.GaugeVec
	servers  serverCounts
	states   probeStates
}

// target is one probe.
type target struct{ probe, target string }

// newProbeMetrics returns metrics that are registered with r.
func newProbeMetrics(r prometheus.Registerer) *probeMetrics {
	m := &probeMetrics{
		success: metric.NewGauge(semconv.ProbeSuccess),
		// 1 ms to 4 s, the longest a run may take.
		duration: metric.NewHistogram(semconv.ProbeDuration, prometheus.ExponentialBuckets(0.001, 4, 7)),
		failures: metric.NewCounter(semconv.ProbeFailures),
		gaps:     metric.NewCounter(semconv.ProbeGaps),
		skipped:  metric.NewCounter(semconv.ProbeSkipped),
		limits:   metric.NewGauge(semconv.ProbeLimits),
	}
	r.MustRegister(m.success, m.duration, m.failures, m.gaps, m.skipped, m.limits, &m.servers)
	return m
}

// reset forgets probes that may not be there any more.
func (m *probeMetrics) reset() {
	m.success.Reset()
	m.duration.Reset()
	m.failures.Reset()
	m.gaps.Reset()
	m.skipped.Reset()
	m.limits.Reset()
	m.servers.reset()
	m.states.reset()
}

// reported takes the account of one run of a probe.
func (s *Server) reported(r probes.Report) {
	m := s.probeMetrics
	m.duration.WithLabelValues(r.Probe, r.Target).Observe(r.Took.Seconds())
	success := 1.0
	if r.Reason != probes.Succeeded {
		success = 0
		m.failures.WithLabelValues(r.Probe, r.Target, string(r.Reason)).Inc()
	}
	m.success.WithLabelValues(r.Probe, r.Target).Set(success)
	m.gaps.WithLabelValues(r.Probe, r.Target).Add(float64(r.Gaps))
	m.skipped.WithLabelValues(r.Probe, r.Target).Add(float64(r.Skipped))
	m.limits.WithLabelValues(r.Probe, r.Target).Set(float64(len(r.Limits)))
	s.logProbe(r, m.states.take(r))
}

// probed takes what a probe returned.
func (s *Server) probed(ws []*signal.Window, vs []*signal.Vitals) {
	for _, v := range vs {
		s.probeMetrics.servers.set(v)
	}
	s.engine.Add(ws, vs)
}

// serverCounts collects what cache servers last said of themselves, by cache.
// The zero value is ready.
type serverCounts struct {
	mu   sync.Mutex
	last map[server]counts // guarded by mu
}

// server is one server that was probed for one cache.
type server struct{ cache, service, instance string }

// counts are cumulative since the server started, but for the clients that wait
// and the keys there are.
type counts struct {
	hits, misses, expired, evicted uint64
	signal.Server
}

var (
	serverLookups = metric.NewDesc(semconv.ServerLookups)
	serverExpired = metric.NewDesc(semconv.ServerExpired)
	serverEvicted = metric.NewDesc(semconv.ServerEvicted)
	serverFlushes = metric.NewDesc(semconv.ServerFlushes)
	serverSets    = metric.NewDesc(semconv.ServerSets)
	serverBlocked = metric.NewDesc(semconv.ServerBlocked)
	serverKeys    = metric.NewDesc(semconv.ServerKeys)
)

// set takes a server's own account. Probes of other things do not know how long
// the server has been up, and count some of the same.
func (c *serverCounts) set(v *signal.Vitals) {
	if v.Uptime == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[server]counts{}
	}
	c.last[server{v.Cache, v.Service, v.Instance}] = counts{v.Lookups.Hits, v.Lookups.Misses, v.Expired, v.Evicted, v.Server}
}

func (c *serverCounts) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.last)
}

// Describe implements [prometheus.Collector].
func (c *serverCounts) Describe(ch chan<- *prometheus.Desc) {
	ch <- serverLookups
	ch <- serverExpired
	ch <- serverEvicted
	ch <- serverFlushes
	ch <- serverSets
	ch <- serverBlocked
	ch <- serverKeys
}

// Collect implements [prometheus.Collector].
func (c *serverCounts) Collect(ch chan<- prometheus.Metric) {
	sums := c.byCache()
	for _, cache := range slices.SortedFunc(maps.Keys(sums), cmp.Compare) {
		n := sums[cache]
		ch <- metric.Const(serverLookups, semconv.Counter, float64(n.hits), cache, "hit")
		ch <- metric.Const(serverLookups, semconv.Counter, float64(n.misses), cache, "miss")
		ch <- metric.Const(serverExpired, semconv.Counter, float64(n.expired), cache)
		ch <- metric.Const(serverEvicted, semconv.Counter, float64(n.evicted), cache)
		ch <- metric.Const(serverFlushes, semconv.Counter, float64(n.Flushes), cache)
		ch <- metric.Const(serverSets, semconv.Counter, float64(n.Sets), cache)
		ch <- metric.Const(serverBlocked, semconv.Gauge, float64(n.Blocked), cache)
		ch <- metric.Const(serverKeys, semconv.Gauge, float64(n.Keys), cache)
	}
}

// byCache sums over the servers of each cache.
func (c *serverCounts) byCache() map[string]counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	sums := map[string]counts{}
	for s, n := range c.last {
		cache := metric.Label(s.cache)
		sum := sums[cache]
		sum.hits += n.hits
		sum.misses += n.misses
		sum.expired += n.expired
		sum.evicted += n.evicted
		sum.Flushes += n.Flushes
		sum.Sets += n.Sets
		sum.Blocked += n.Blocked
		sum.Keys += n.Keys
		sums[cache] = sum
	}
	return sums
}
