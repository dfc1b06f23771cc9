package memcached

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// clock tells the instants of a server's log on this machine's clock. The zero
// value is ready.
type clock struct {
	correction time.Duration
	// The shortest time a line seemed to take, in the current minute and in
	// the one before: either clock may be stepped.
	least, before time.Duration
	began         signal.Nanos // the current minute; zero if no line has come
}

// logLateness is how long a line of the log takes to come: the server gathers
// its log once a second if little happens. Clocks that are no further apart than
// lines are late are taken to agree, as those of servers do: their difference
// cannot be told from the lateness.
const logLateness = 2 * time.Second

// local returns when, on this machine's clock, something happened that the
// server says happened at at, and that was read at seen. Nothing happens after
// it was read.
func (c *clock) local(at, seen signal.Nanos) signal.Nanos {
	took := seen.Sub(at)
	switch {
	case c.began == 0:
		c.began, c.least, c.before = seen, took, took
	case seen.Sub(c.began).Abs() >= time.Minute:
		c.began, c.least, c.before = seen, took, c.least
	}
	c.least = min(c.least, took)
	c.correction = 0
	if fastest := min(c.least, c.before); fastest < 0 || fastest > logLateness {
		c.correction = fastest
	}
	return min(at.Add(c.correction), seen)
}

// ahead returns how far this machine's clock is ahead of the server's; zero if
// they are no further apart than can be told, as the server's answer has seconds
// only and its clock moves once in one.
func (n *counters) ahead(now time.Time) time.Duration {
	if n.clock == 0 || n.clock > uint64(maxSeconds) {
		return 0
	}
	d := now.Sub(time.Unix(int64(n.clock), 0))
	if d > -logLateness && d < logLateness {
		return 0
	}
	return d.Round(time.Second)
}
