package memcached

import (
	"fmt"
	"time"
)

// limitFor is how long something that happened once is said to limit a probe.
const limitFor = time.Minute

// limits remembers what kept a probe from seeing all.
type limits struct {
	lines         int // the budget
	lost, resting time.Time
}

// dropped says that the server left lines of its log out.
func (l *limits) dropped(now time.Time) { l.lost = now }

// rested says that the probe hung up.
func (l *limits) rested(now time.Time) { l.resting = now }

// list returns what holds at now.
func (l *limits) list(now time.Time, deletions, connected bool) []string {
	var all []string
	if now.Sub(l.resting) < limitFor {
		all = append(all, fmt.Sprintf("The server's log has more than %d lines a second, so it is read a part of the time only.", l.lines))
	}
	if now.Sub(l.lost) < limitFor {
		all = append(all, "The server leaves lines out of its log, because there are more than it has room for: what happened meanwhile is not known.")
	}
	if connected && !deletions {
		all = append(all, "The server does not log deletions, as it would from version 1.6.20 on, so a value that was deleted counts as dropped by the server.")
	}
	return all
}
