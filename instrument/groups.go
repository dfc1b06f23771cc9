package instrument

import (
	"sync"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// otherGroup holds keys of groups there was no room for, keys that are not
// tracked, and hits on keys nobody has missed or stored lately.
const otherGroup = "other"

// groups is the bounded set of key groups that are told apart. The first ones
// to come have a place until they fall silent; then the heaviest of those that
// found none takes it.
type groups struct {
	max   int
	other *group

	mu     sync.RWMutex // guards the map; totals are guarded by Monitor.flushMu
	byName map[string]*group
	sketch *topK
}

// silentAfter is how long a group must have been inactive to lose its place.
// Its series then end; were it sooner, counters would come and go.
const silentAfter = int64(time.Hour)

// group is what is counted of one key group.
type group struct {
	totals   GroupTotals
	missPeak signal.Peak
	runsPeak signal.Peak
	activeAt int64
}

func newGroups(most int) *groups {
	g := &groups{max: most, byName: map[string]*group{}, sketch: newTopK(8 * most)}
	g.other = &group{totals: GroupTotals{Group: otherGroup}}
	g.byName[otherGroup] = g.other
	return g
}

// resolve returns the group of that name, or other if there is no room.
func (g *groups) resolve(name string) *group {
	g.mu.RLock()
	found := g.byName[name]
	full := len(g.byName) > g.max
	g.mu.RUnlock()
	switch {
	case found != nil:
		return found
	case full:
		return g.other
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if found := g.byName[name]; found != nil {
		return found
	}
	if len(g.byName) > g.max {
		return g.other
	}
	return g.addLocked(name)
}

func (g *groups) addLocked(name string) *group {
	n := &group{totals: GroupTotals{Group: name}}
	g.byName[name] = n
	return n
}

// weigh notes that a group, with a place or without, had n misses and
// recomputes.
func (g *groups) weigh(name string, n uint64) { g.sketch.offer(name, n) }

// begin forgets the live gauges before a flush takes them anew.
func (g *groups) begin(now int64) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, x := range g.byName {
		x.totals.MissNow, x.totals.InFlightNow = 0, 0
		if x.activeAt == 0 {
			x.activeAt = now
		}
	}
}

// rebalance gives the place of one group that has fallen silent to the heaviest
// that has none.
func (g *groups) rebalance(now int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.byName) <= g.max {
		return
	}
	var silent *group
	for _, x := range g.byName {
		if x != g.other && now-x.activeAt >= silentAfter && (silent == nil || x.activeAt < silent.activeAt) {
			silent = x
		}
	}
	if silent == nil {
		return
	}
	heir := g.sketch.heaviest(func(name string) bool { return g.byName[name] == nil })
	if heir == "" {
		return
	}
	delete(g.byName, silent.totals.Group)
	g.addLocked(heir).activeAt = now
}

// live takes the gauges of one key.
func (g *group) live(readers, running uint32) {
	g.totals.MissNow = max(g.totals.MissNow, readers)
	g.totals.InFlightNow = max(g.totals.InFlightNow, running)
}

// fold adds a finished window to the totals.
func (g *group) fold(w *signal.Window, now int64) {
	g.activeAt = now
	g.missPeak.Observe(signal.Nanos(now), w.MissPeak)
	g.runsPeak.Observe(signal.Nanos(now), w.InFlightPeak)
	g.totals.add(w)
}
