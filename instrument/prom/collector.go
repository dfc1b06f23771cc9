// Package prom exports what monitors measure as Prometheus metrics, on a
// registry that the application owns:
//
//	registry.MustRegister(prom.NewCollector(monitor))
//
// docs/metrics.md lists the metrics. Counters are cumulative and peaks are kept
// in fixed windows, so one lost scrape loses nothing, and two scrapers do not
// take from each other. Durations are native histograms with classic buckets
// kept. No label ever holds a key: key_group is bounded by
// [instrument.Options.MaxGroups].
package prom

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/internal/metric"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

// Collector is a [prometheus.Collector] of one or more monitors. A scrape costs
// one [instrument.Monitor.Snapshot] of each.
type Collector struct {
	monitors []*instrument.Monitor
	descs    map[string]*prometheus.Desc

	recompute, early, wait, hold, ttl *prometheus.HistogramVec

	mu     sync.Mutex
	groups map[[2]string]bool // cache and group with histograms
}

// Bucket bounds, in seconds: for work and waits, and for times to live.
var (
	workBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	lifeBuckets = []float64{.1, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600, 86400, 7 * 86400}
)

// NewCollector returns a collector of the monitors. Their cache names must
// differ. From now on their durations are observed.
func NewCollector(monitors ...*instrument.Monitor) *Collector {
	c := &Collector{
		monitors:  monitors,
		descs:     map[string]*prometheus.Desc{},
		recompute: metric.NewHistogram(semconv.RecomputeDuration, workBuckets),
		early:     metric.NewHistogram(semconv.EarlyLead, workBuckets),
		wait:      metric.NewHistogram(semconv.LockWait, workBuckets),
		hold:      metric.NewHistogram(semconv.LockHold, workBuckets),
		ttl:       metric.NewHistogram(semconv.StoreTTL, lifeBuckets),
		groups:    map[[2]string]bool{},
	}
	for _, m := range semconv.Application() {
		if m.Kind != semconv.Histogram {
			c.descs[m.Name] = metric.NewDesc(m)
		}
	}
	for _, m := range monitors {
		m.Observe(&observer{c: c, cache: m.Cache()})
	}
	return c
}

func (c *Collector) histograms() []*prometheus.HistogramVec {
	return []*prometheus.HistogramVec{c.recompute, c.early, c.wait, c.hold, c.ttl}
}

// Describe implements [prometheus.Collector].
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
	for _, h := range c.histograms() {
		h.Describe(ch)
	}
}

// Collect implements [prometheus.Collector].
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	live := map[[2]string]bool{}
	for _, m := range c.monitors {
		s := m.Snapshot()
		p := page{c: c, ch: ch, cache: s.Cache}
		p.put(semconv.TrackedKeys, float64(s.Tracked))
		p.put(semconv.OverflowedEvents, float64(s.Overflowed))
		p.put(semconv.DroppedRecords, float64(s.Dropped))
		p.origin(s.Groups)
		for i := range s.Groups {
			p.group(&s.Groups[i])
			live[[2]string{s.Cache, s.Groups[i].Group}] = true
		}
	}
	c.prune(live)
	for _, h := range c.histograms() {
		h.Collect(ch)
	}
}

// prune drops the histograms of groups that have lost their place.
func (c *Collector) prune(live map[[2]string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := range c.groups {
		if live[g] {
			continue
		}
		for _, h := range c.histograms() {
			h.DeleteLabelValues(g[0], g[1])
		}
		delete(c.groups, g)
	}
}

// observer feeds one monitor's durations into the histograms.
type observer struct {
	c     *Collector
	cache string
}

func (o *observer) observe(h *prometheus.HistogramVec, group string, d time.Duration) {
	o.c.mu.Lock()
	o.c.groups[[2]string{o.cache, group}] = true
	o.c.mu.Unlock()
	h.WithLabelValues(metric.Label(o.cache), metric.Label(group)).Observe(d.Seconds())
}

func (o *observer) RecomputeDuration(g string, d time.Duration) { o.observe(o.c.recompute, g, d) }
func (o *observer) EarlyLead(g string, d time.Duration)         { o.observe(o.c.early, g, d) }
func (o *observer) LockWait(g string, d time.Duration)          { o.observe(o.c.wait, g, d) }
func (o *observer) LockHold(g string, d time.Duration)          { o.observe(o.c.hold, g, d) }
func (o *observer) StoreTTL(g string, d time.Duration)          { o.observe(o.c.ttl, g, d) }
