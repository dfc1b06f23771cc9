package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// gathering is a cache's state in the making.
type gathering struct {
	signal.CacheState
	services, servers who // its instances, and what probes look at
	expiries          map[signal.ExpiryBin]uint32
	misses            signal.Lookups // of sources that see no hits
	partial, whole    bool           // there is a source of that kind, and one that sees all reads
	claimed           signal.Nanos   // when the source was started whose claims are taken
	protect           map[string]int // how many instances that report claim it
}

func newGathering(cache string) *gathering {
	return &gathering{CacheState: signal.CacheState{Cache: cache}, expiries: map[signal.ExpiryBin]uint32{}, protect: map[string]int{}}
}

// who tells what a cache's sources are called and how long they have been up.
type who struct {
	service              string
	named, several       bool
	uptimeMin, uptimeMax time.Duration
	up, uptimes          int // that report, and that tell
}

func (w *who) name(service string) {
	w.several = w.several || w.named && w.service != service
	w.service, w.named = service, true
}

// report counts one that has been up for so long; a probe that does not know how
// long its server has been says zero.
func (w *who) report(uptime time.Duration, told bool) {
	w.up++
	if !told {
		return
	}
	if w.uptimes == 0 || uptime < w.uptimeMin {
		w.uptimeMin = uptime
	}
	w.uptimeMax = max(w.uptimeMax, uptime)
	w.uptimes++
}

// finish works out what takes all feeds to tell. A cache that only probes know
// of goes by the name and the uptime of its servers.
func (c *gathering) finish() {
	c.Expiries = c.bins()
	c.Claims.Protection = c.protection()
	c.Instances, c.Probes = c.services.up, c.servers.up
	if c.partial && !c.whole {
		c.Lookups, c.Unknown = c.misses, signal.UnknownHits
	}
	named, up := &c.services, &c.services
	if !c.services.named {
		named = &c.servers
	}
	if c.services.up == 0 {
		up = &c.servers
	}
	if !named.several {
		c.Service = named.service
	}
	c.UptimeMin, c.UptimeMax = up.uptimeMin, up.uptimeMax
}

// fill adds what f says to c. Instances that disagree on the origin's budget do
// so while a change rolls out; the larger one pages less.
func (f *feed) fill(c *gathering, now signal.Nanos) {
	if compareOrigins(f.last.Origin, c.Origin) > 0 {
		c.Origin = f.last.Origin
	}
	// Who sees misses only sees the same ones as who sees all reads.
	if f.last.Unknown.Has(signal.UnknownHits) {
		c.misses.Add(f.delta.lookups)
		c.partial = true
	} else {
		c.Lookups.Add(f.delta.lookups)
		c.whole = c.whole || f.last.Lookups.Total() > 0
	}
	c.Work.Add(&f.delta.work)
	c.Overflowed += f.delta.overflowed
	c.Expired += f.delta.expired
	c.Evicted += f.delta.evicted
	c.Flushed += f.delta.flushed
	c.Restarted += f.delta.restarted
	c.claim(f)
	silent := now.Sub(f.heard) > reportWithin
	switch {
	case silent && f.last.Probe:
		return // the probe's own account says so, and why
	case silent:
		c.Silent++
		return
	case f.last.Probe:
		c.servers.report(f.last.Uptime, f.last.Uptime > 0)
		if f.last.Watch {
			c.Watching++
		}
	default:
		c.services.report(f.last.Uptime, true)
	}
	c.Running += f.last.Running
	c.Waiting += f.last.Waiting
	for _, p := range f.last.Claims.Protection {
		c.protect[p]++
	}
}

func compareOrigins(a, b signal.Origin) int {
	return cmp.Or(cmp.Compare(a.Budget, b.Budget), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Recompute, b.Recompute))
}

// claim takes the claims of the source that was started last: while a change
// rolls out, that is the one that will stay.
func (c *gathering) claim(f *feed) {
	began := f.last.At.Add(-f.last.Uptime)
	if f.last.Claims.IsZero() || c.claimed > began || c.Claims.Equal(f.last.Claims) && c.claimed == began {
		return
	}
	if c.claimed == began && fmt.Sprint(c.Claims) >= fmt.Sprint(f.last.Claims) {
		return
	}
	c.claimed, c.Claims = began, f.last.Claims
}

// protection returns what every instance that reports claims. While a protection
// is rolled out, the instances that do not have it yet are not to be held to it.
func (c *gathering) protection() []string {
	var all []string
	for _, p := range slices.Sorted(maps.Keys(c.protect)) {
		if c.protect[p] >= c.services.up {
			all = append(all, p)
		}
	}
	return all
}

// expect adds what one source expects: expiries and hot keys, put right by its
// clock's offset. Bins of a source whose correction changes may touch two of the
// fleet's, and then count in the first.
func (c *gathering) expect(v *signal.Vitals, offset time.Duration) {
	for _, bin := range v.Expiries {
		n := bin.Keys
		bin.Keys = 0
		bin.At = bin.At.Add(offset)
		bin.At -= bin.At % signal.Nanos(max(bin.Width, time.Second))
		c.expiries[bin] += min(n, math.MaxUint32-c.expiries[bin])
	}
	c.Sample.Add(v.Sample)
	if len(v.Hot) == 0 {
		return
	}
	hot := slices.Clone(v.Hot)
	for i := range hot {
		hot[i].Expiry = hot[i].Expiry.Add(offset)
	}
	c.Hot = signal.MergeHotKeys(c.Hot, hot)
}

func (c *gathering) bins() []signal.ExpiryBin {
	bins := make([]signal.ExpiryBin, 0, len(c.expiries))
	for bin, n := range c.expiries {
		bin.Keys = n
		bins = append(bins, bin)
	}
	if len(bins) == 0 {
		return nil
	}
	return signal.MergeExpiries(bins, nil)
}
