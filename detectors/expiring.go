package detectors

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// during returns the bins of values that expire in the seconds from from to to.
func (d *deadlines) during(from, to signal.Nanos) []signal.ExpiryBin {
	var out []signal.ExpiryBin
	for _, b := range d.coming {
		if b.At.Add(b.Width) > from && b.At <= to {
			out = append(out, b)
		}
	}
	return out
}

// heaviestGroup returns the group that most of the values that expire in those
// seconds belong to, and how many it has; "" if nobody tells groups apart.
func (d *deadlines) heaviestGroup(from, to signal.Nanos) (group string, keys float64) {
	by := map[string]float64{}
	for _, b := range d.during(from, to) {
		if b.Group != "" {
			by[b.Group] += float64(b.Keys)
		}
	}
	for _, g := range slices.Sorted(maps.Keys(by)) {
		if by[g] > keys {
			group, keys = g, by[g]
		}
	}
	yield, _ := d.yield()
	return group, keys * yield
}

// margin returns half the width of the 95 % interval of a count of keys that
// fall due at the origin; 0 if all deadlines are known.
func (o *originDemand) margin(keys float64) float64 {
	var s signal.Sample
	for _, c := range o.demand {
		s.Add(c.dues.sample)
	}
	return s.Margin(keys)
}

// tellWave adds which values of a cache expire in a wave of so many keys: the
// largest group, the hottest of them, and how sure their number is.
func (o *originDemand) tellWave(l *evidenceList, at signal.Nanos, c *signal.CacheState, k *cacheDemand, w *wave) {
	if group, keys := k.dues.heaviestGroup(w.from, w.at); group != "" {
		l.add("group.keys", min(keys, w.keys), "{key}", fmt.Sprintf("of them in %s, the largest group", group))
	}
	if s := k.dues.sample; s.Weight > 1 {
		l.add("keys.margin", o.margin(w.keys), "{key}", fmt.Sprintf("either way, at 95 %%: estimated from %d of %d keys", s.Keys, s.Population))
	}
	if h, ok := hottest(c, w); ok {
		l.add("hot.ahead", max(0, h.Expiry.Sub(at).Seconds()), "s",
			fmt.Sprintf("until key %v of %s expires, which has %.0f %% of the server's use", h.ID, cmp.Or(h.Group, "no group"), 100*h.Share))
	}
}

// hottest returns the hottest key that expires in w, if it is known.
func hottest(c *signal.CacheState, w *wave) (signal.HotKey, bool) {
	for _, h := range c.Hot { // the hottest first
		if s := second(h.Expiry); s >= w.from && s <= w.at {
			return h, true
		}
	}
	return signal.HotKey{}, false
}

// mostly says, in a summary, which group most of the keys of a wave are of.
func (k *cacheDemand) mostly(w *wave) string {
	group, keys := k.dues.heaviestGroup(w.from, w.at)
	if group == "" || keys < w.keys/2 {
		return ""
	}
	return ", mostly of " + group + ","
}
