package engine

import (
	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// collectSources shows who reports of a cache. One that only probes know of has
// no instances that could be missed.
func collectSources(c *signal.CacheState, out emit) {
	if c.Instances+c.Silent > 0 || c.Probes == 0 {
		out(semconv.InstancesReporting, float64(c.Instances), c.Cache)
		out(semconv.InstancesSilent, float64(c.Silent), c.Cache)
	}
	if c.Probes > 0 {
		out(semconv.ProbesReporting, float64(c.Probes), c.Cache)
	}
	if c.Sample.Weight > 0 {
		out(semconv.ExpirySampleWeight, c.Sample.Weight, c.Cache)
	}
	hottest := map[string]float64{}
	for _, k := range c.Hot { // at most signal.MaxHotKeys, so that groups are few
		hottest[k.Group] = max(hottest[k.Group], k.Share)
	}
	for group, share := range hottest {
		out(semconv.HotKeyShare, share, c.Cache, group)
	}
}
