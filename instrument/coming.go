package instrument

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// coming knows the keys whose values this process stored and that are still
// there, as far as it knows, by the second in which they expire. Counting them
// so costs a flush a step for every second, not for every key. Only flushing
// touches it.
type coming struct {
	bySecond map[int64][]*entry
	bins     map[signal.ExpiryBin]uint32
}

func newComing() coming {
	return coming{bySecond: map[int64][]*entry{}, bins: map[signal.ExpiryBin]uint32{}}
}

const second = int64(time.Second)

// move puts e where the expiry of its value is; zero if it has none.
func (c *coming) move(e *entry, expiry int64) {
	if e.due == expiry {
		return
	}
	if e.due != 0 {
		c.remove(e)
	}
	if e.due = expiry; expiry != 0 {
		s := expiry / second
		e.dueAt = len(c.bySecond[s])
		c.bySecond[s] = append(c.bySecond[s], e)
	}
}

// remove takes e out of the second it is in. The last one there takes its place.
func (c *coming) remove(e *entry) {
	s := e.due / second
	all := c.bySecond[s]
	last := len(all) - 1
	all[e.dueAt] = all[last]
	all[e.dueAt].dueAt = e.dueAt
	all[last] = nil
	if c.bySecond[s] = all[:last]; last == 0 {
		delete(c.bySecond, s)
	}
}

// take returns how many values expire when, as seen at now, in order. It forgets
// those that have.
func (c *coming) take(now signal.Nanos) []signal.ExpiryBin {
	if len(c.bins) > 0 {
		clear(c.bins) // which costs something even if it is empty
	}
	for s, es := range c.bySecond {
		first, last := signal.Nanos(s*second), signal.Nanos((s+1)*second-1)
		bin, ok := signal.BinExpiry(now, first)
		other, also := signal.BinExpiry(now, last)
		switch {
		case last <= now:
			for _, e := range es {
				e.due = 0
			}
			delete(c.bySecond, s)
		case bin == other && ok == also:
			if ok {
				c.bins[bin] += uint32(len(es))
			}
		default: // now, or the edge of what is told, lies in this second
			for _, e := range es {
				if bin, ok := signal.BinExpiry(now, signal.Nanos(e.due)); ok {
					c.bins[bin]++
				}
			}
		}
	}
	return c.sorted()
}

// sorted returns the bins that take has filled.
func (c *coming) sorted() []signal.ExpiryBin {
	if len(c.bins) == 0 {
		return nil
	}
	out := make([]signal.ExpiryBin, 0, len(c.bins))
	for bin, n := range c.bins {
		bin.Keys = n
		out = append(out, bin)
	}
	return signal.MergeExpiries(out, nil)
}
