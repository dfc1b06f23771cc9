package census

import (
	"fmt"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Other is the group of keys whose own group is not told apart.
const Other = "other"

// Options configure a [Census]. The zero value works.
type Options struct {
	// Keep is how long a slice counts, 1s to 1h; the newest counts whatever
	// its age. A longer time gives a larger sample, and one that is slower to
	// notice what was written since. Default 30s.
	Keep time.Duration
	// Groups bounds how many groups are told apart, 1 to 100: those with most
	// values to expire; the rest count as [Other]. Default 16.
	Groups int
}

func (o Options) withDefaults() Options {
	if o.Keep == 0 {
		o.Keep = 30 * time.Second
	}
	if o.Groups == 0 {
		o.Groups = 16
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.Keep < time.Second || o.Keep > time.Hour:
		return fmt.Errorf("Keep is %v: want 1s to 1h", o.Keep)
	case o.Groups < 1 || o.Groups > maxGroups:
		return fmt.Errorf("Groups is %d: want 1 to %d", o.Groups, maxGroups)
	}
	return nil
}

// Census counts keys by group and by the second they expire. It takes memory in
// proportion to the different seconds it has seen for each group, 12 bytes each
// and slice, whatever the number of keys. It is not safe for concurrent use.
type Census struct {
	o          Options
	names      names
	open       slice   // being looked at
	slices     []slice // ended, oldest first
	population uint64  // as of the newest
}

// New returns a census that has seen nothing.
func New(o Options) (*Census, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Census{o: o}, nil
}

// Key counts a key that was looked at, at now, in the slice that is open: of a
// group, that expires at expiry, or never if that is zero. Both instants are on
// the clock of the caller.
func (c *Census) Key(now signal.Nanos, group string, expiry signal.Nanos) {
	c.open.looked++
	if _, ok := signal.BinExpiry(now, expiry); ok {
		c.open.count(cell{at: uint32(expiry / signal.Nanos(time.Second)), group: c.names.number(group), keys: 1})
	}
}

// EndSlice makes what was looked at since the previous slice count, as of now,
// and drops slices that are not needed any more. Population is how many keys
// the server holds, those that never expire included.
//
// If that is less than half of what it was, the keys looked at before are taken
// to be gone: somebody flushed the server, or it was started anew.
func (c *Census) EndSlice(now signal.Nanos, population uint64) {
	if population < c.population/2 {
		c.forget(len(c.slices))
	}
	c.population = population
	c.open.at = now
	c.open.compact()
	c.slices = append(c.slices, c.open)
	c.open = slice{}
	c.forget(c.spare(now))
}

// DropSlice forgets what was looked at since the previous slice: for a walk that
// was cut short and begins anew.
func (c *Census) DropSlice() { c.drop(&c.open) }

// Reset forgets all that was looked at.
func (c *Census) Reset() { *c = Census{o: c.o} }

// spare returns how many of the oldest slices are not needed: they are too old,
// or those after them cover all keys.
func (c *Census) spare(now signal.Nanos) int {
	last := len(c.slices) - 1
	covered := c.slices[last].looked
	for i := last - 1; i >= 0; i-- {
		if covered >= c.population || now.Sub(c.slices[i].at) > c.o.Keep {
			return i + 1
		}
		covered += c.slices[i].looked
	}
	return 0
}

// forget drops the oldest n slices.
func (c *Census) forget(n int) {
	for i := range n {
		c.drop(&c.slices[i])
	}
	c.slices = append(c.slices[:0], c.slices[n:]...)
}

// drop empties s.
func (c *Census) drop(s *slice) {
	for _, cell := range s.cells {
		c.names.release(cell.group, uint64(cell.keys))
	}
	*s = slice{}
}
