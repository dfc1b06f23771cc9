package engine

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/metric"
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// collected is every metric that is made when it is scraped.
var collected = []semconv.Metric{
	semconv.FleetInFlightPeak, semconv.FleetMissPeak, semconv.FleetRecomputes, semconv.FleetDuplicates, semconv.FleetEarly, semconv.FleetWasted, semconv.FleetBusy,
	semconv.OriginBudget, semconv.OriginUse, semconv.InstancesReporting, semconv.InstancesSilent,
	semconv.ProbesReporting, semconv.ExpirySampleWeight, semconv.HotKeyShare,
	semconv.LateWindows, semconv.UnusedWindows, semconv.FleetOverflowed, semconv.FleetKeys, semconv.ClockOffset,
	semconv.ExpiringKeys,
	semconv.Incidents, semconv.IncidentsOpened, semconv.IncidentsOverflowed, semconv.StateSaves,
}

// measured is what each kind of [detectors.Measure] is exported as.
var measured = [detectors.NumMeasures]semconv.Metric{
	detectors.MeasureLoad:           semconv.OriginLoad,
	detectors.MeasureHitRatio:       semconv.OriginHitRatio,
	detectors.MeasureSaturation:     semconv.OriginSaturation,
	detectors.MeasureAmplification:  semconv.OriginAmplification,
	detectors.MeasureGoodput:        semconv.OriginGoodput,
	detectors.MeasureCeiling:        semconv.OriginCeiling,
	detectors.MeasureDemand:         semconv.OriginDemand,
	detectors.MeasureCounterfactual: semconv.OriginCounterfactual,
	detectors.MeasureBacklogAhead:   semconv.OriginBacklogAhead,
}

// horizons are how far ahead expiries are counted, by the value of the label
// within.
var horizons = []struct {
	within string
	ahead  time.Duration
}{{"10s", 10 * time.Second}, {"1m", time.Minute}, {"5m", 5 * time.Minute}, {"1h", time.Hour}}

// collector shows what the fleet and the incident manager know when it is
// scraped. It implements [prometheus.Collector].
type collector struct {
	e     *Engine
	descs map[string]*prometheus.Desc // by name
}

// NewCollector returns a collector of what e knows of the fleet and of
// incidents. Incidents are never told apart by key.
func NewCollector(e *Engine) prometheus.Collector {
	c := &collector{e: e, descs: map[string]*prometheus.Desc{}}
	for _, m := range slices.Concat(collected, measured[:]) {
		c.descs[m.Name] = metric.NewDesc(m)
	}
	return c
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	out := func(m semconv.Metric, v float64, labels ...string) {
		ch <- metric.Const(c.descs[m.Name], m.Kind, v, labels...)
	}
	totals := c.e.Totals()
	for i := range totals {
		collectTotals(&totals[i], out)
	}
	collectCaches(c.e.Caches(), totals, c.e.declared.Load(), out)
	collectExpiries(signal.At(c.e.Now()), c.e.Caches(), out)
	collectMeasures(c.e.Measures(), out)
	collectStats(c.e.o.Fleet.Stats(), out)
	collectIncidents(c.e.o.Incidents.Stats(), out)
}

// emit takes one sample.
type emit func(m semconv.Metric, v float64, labels ...string)

func collectTotals(t *fleet.CacheTotals, out emit) {
	out(semconv.FleetInFlightPeak, float64(t.InFlightPeak), t.Cache)
	out(semconv.FleetMissPeak, float64(t.MissPeak), t.Cache)
	out(semconv.FleetRecomputes, float64(t.Recomputes), t.Cache)
	out(semconv.FleetDuplicates, float64(t.Duplicates), t.Cache)
	out(semconv.FleetEarly, float64(t.Early), t.Cache)
	out(semconv.FleetWasted, t.Wasted.Seconds(), t.Cache)
	out(semconv.FleetBusy, t.Busy.Seconds(), t.Cache)
}

// collectCaches shows who reports, and what the origins behind can do: as
// declared, and how much of it the worst key took.
func collectCaches(caches []signal.CacheState, totals []fleet.CacheTotals, declared *Declarations, out emit) {
	peaks := map[string]uint32{}
	for _, t := range totals {
		peaks[t.Cache] = t.InFlightPeak
	}
	budgets, use := map[string]int{}, map[string]float64{}
	for name, budget := range declared.Budgets {
		budgets[name] = budget
	}
	for _, c := range caches {
		collectSources(&c, out)
		if c.Origin.Budget <= 0 {
			continue
		}
		origin := c.Origin.Name
		if origin == "" {
			origin = c.Cache // one the application gave no name
		}
		budgets[origin] = max(budgets[origin], c.Origin.Budget)
		use[origin] = max(use[origin], float64(peaks[c.Cache])/float64(c.Origin.Budget))
	}
	for origin, budget := range budgets {
		out(semconv.OriginBudget, float64(budget), origin)
	}
	for origin, ratio := range use {
		out(semconv.OriginUse, ratio, origin)
	}
}

// collectMeasures shows what detectors measured. An origin without a name goes by
// that of its cache, which another may have: the first is shown.
func collectMeasures(all []detectors.Measure, out emit) {
	type series struct {
		kind   detectors.MeasureKind
		origin string
	}
	seen := map[series]bool{}
	for _, m := range all {
		if s := (series{m.Kind, m.Origin}); !seen[s] {
			seen[s] = true
			out(measured[m.Kind], m.Value, m.Origin)
		}
	}
}

// collectExpiries counts the values that are to expire. A bin counts by its
// start.
func collectExpiries(now signal.Nanos, caches []signal.CacheState, out emit) {
	for _, c := range caches {
		for _, h := range horizons {
			var keys float64
			for _, bin := range c.Expiries {
				if bin.At < now.Add(h.ahead) && bin.At.Add(bin.Width) > now {
					keys += float64(bin.Keys)
				}
			}
			out(semconv.ExpiringKeys, keys, c.Cache, h.within)
		}
	}
}

func collectStats(s fleet.Stats, out emit) {
	out(semconv.LateWindows, float64(s.Late))
	out(semconv.UnusedWindows, float64(s.Future), "future")
	out(semconv.UnusedWindows, float64(s.Past), "past")
	out(semconv.UnusedWindows, float64(s.Duplicate), "duplicate")
	out(semconv.FleetOverflowed, float64(s.Overflowed))
	out(semconv.FleetKeys, float64(s.Keys))
	out(semconv.ClockOffset, s.OffsetMax.Seconds())
}

func collectIncidents(s incident.Stats, out emit) {
	for _, n := range s.Series {
		out(semconv.Incidents, float64(n.Open), n.Detector, n.Service, n.Cache, n.Severity.String())
		out(semconv.IncidentsOpened, float64(n.Opened), n.Detector, n.Service, n.Cache, n.Severity.String())
	}
	out(semconv.IncidentsOverflowed, float64(s.Overflowed))
	out(semconv.StateSaves, float64(s.Saves), "ok")
	out(semconv.StateSaves, float64(s.SaveFailures), "failed")
}
