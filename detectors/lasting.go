package detectors

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// lapse is how long a condition may fail and still count as one that lasts:
// counts of a second or two are mostly chance.
const lapse = 5 * time.Second

// lasting measures how long a condition has held without a lapse.
type lasting struct{ since, seen signal.Nanos }

// look says whether the condition holds at a tick, and returns for how long it
// has by then; zero if it does not.
func (l *lasting) look(at signal.Nanos, holds bool) time.Duration {
	if l.since != 0 && (at < l.seen || at.Sub(l.seen) > lapse) {
		*l = lasting{}
	}
	if !holds {
		return 0
	}
	if l.since == 0 {
		l.since = at
	}
	l.seen = at
	return at.Sub(l.since)
}
