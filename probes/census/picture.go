package census

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Fill sets the expiries of v, and what they were scaled up from, to what is
// known at now. Before the first slice ends it sets neither.
func (c *Census) Fill(now signal.Nanos, v *signal.Vitals) {
	v.Expiries, v.Sample = nil, signal.Sample{}
	looked := c.looked()
	if looked == 0 {
		return
	}
	scale := float64(c.population) / float64(looked)
	v.Sample = signal.Sample{
		Keys:       min(looked, c.population),
		Population: c.population,
		Weight:     max(1, scale),
	}
	v.Expiries = scaled(c.groupBins(now), scale)
}

// looked returns the number of keys in all slices.
func (c *Census) looked() uint64 {
	var n uint64
	for i := range c.slices {
		n += c.slices[i].looked
	}
	return n
}

// groupCount is what is known of one group.
type groupCount struct {
	name string
	bins map[signal.ExpiryBin]uint64 // keys by bin, which has no count
	keys uint64
}

// groupBins counts what is still to expire at now, by group and bin, with small
// groups counted as [Other].
func (c *Census) groupBins(now signal.Nanos) map[signal.ExpiryBin]uint64 {
	byNumber := map[uint16]*groupCount{}
	for i := range c.slices {
		for _, cell := range c.slices[i].cells {
			// The end of a second: a value that expires within it is still there.
			bin, ok := signal.BinExpiry(now, signal.Nanos(cell.at)*signal.Nanos(time.Second)+signal.Nanos(time.Second)-1)
			if !ok {
				continue
			}
			g := byNumber[cell.group]
			if g == nil {
				g = &groupCount{name: c.names.name(cell.group), bins: map[signal.ExpiryBin]uint64{}}
				byNumber[cell.group] = g
			}
			bin.Group = g.name
			g.bins[bin] += uint64(cell.keys)
			g.keys += uint64(cell.keys)
		}
	}
	groups := make([]*groupCount, 0, len(byNumber))
	for _, g := range byNumber {
		groups = append(groups, g)
	}
	return fold(groups, c.o.Groups)
}

// fold unites groups but for the largest, at most most of them, that leave room
// for the rest to count as [Other]: a record has [signal.MaxExpiryBins] at most.
func fold(groups []*groupCount, most int) map[signal.ExpiryBin]uint64 {
	slices.SortFunc(groups, func(a, b *groupCount) int {
		return cmp.Or(cmp.Compare(b.keys, a.keys), strings.Compare(a.name, b.name))
	})
	out := map[signal.ExpiryBin]uint64{}
	kept := 0
	for _, g := range groups {
		named := g.name != Other && kept < most && len(out)+len(g.bins) <= signal.MaxExpiryBins-binsOfOne
		if named {
			kept++
		}
		for bin, n := range g.bins {
			if !named {
				bin.Group = Other
			}
			out[bin] += n
		}
	}
	return out
}

// binsOfOne is how many bins one group has at most.
const binsOfOne = int(signal.ExpiryNear/time.Second) + int((signal.ExpiryFar-signal.ExpiryNear)/(10*time.Second)) + 2

// scaled returns bins of so many times the keys, in order, without those of
// none.
func scaled(counts map[signal.ExpiryBin]uint64, by float64) []signal.ExpiryBin {
	bins := make([]signal.ExpiryBin, 0, len(counts))
	for bin, n := range counts {
		keys := math.Round(float64(n) * by)
		if keys < 1 {
			continue
		}
		bin.Keys = uint32(min(keys, math.MaxUint32))
		bins = append(bins, bin)
	}
	if len(bins) == 0 {
		return nil
	}
	return signal.MergeExpiries(bins, nil)
}
