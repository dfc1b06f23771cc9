package instrument

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Expiry says how long a stored value lives. Set exactly one field; the zero
// value means not known.
type Expiry struct {
	TTL  time.Duration // from now; must be positive
	At   time.Time     // at this instant, the same for every instance
	Keep bool          // as the value it replaces
	None bool          // it never expires
}

// life is what a monitor remembers of a key's stored value.
type life struct {
	state    lifeState
	storedAt int64 // by this process, last
	expiry   int64 // if state is lifeTimed
	goneAt   int64 // invalidated by this process, last
}

type lifeState uint8

const (
	lifeNone    lifeState = iota // never seen
	lifeTimed                    // until expiry
	lifeForever                  // without expiry
	lifeUnknown                  // stored, expiry not known
)

// expirySlack is how much earlier than its expiry a value may be found gone and
// still count as expired: servers keep expiries in whole milliseconds, and a
// store takes its time to get there.
const expirySlack = int64(50 * time.Millisecond)

// cause says why a reader found nothing at now.
func (l *life) cause(now int64) signal.Cause {
	switch {
	case l.state == lifeNone:
		return signal.CauseCold
	case l.goneAt > l.storedAt:
		return signal.CauseInvalidated
	case l.state == lifeUnknown:
		return signal.CauseUnknown
	case l.state == lifeTimed && now >= l.expiry-expirySlack:
		return signal.CauseExpired
	default:
		return signal.CauseEvicted
	}
}

// due returns when the value that is there expires; zero if there is none, or
// that is not known.
func (l *life) due() int64 {
	if l.state != lifeTimed || l.goneAt > l.storedAt {
		return 0
	}
	return l.expiry
}

// freshSince reports whether a value stored after since is fresh at now.
func (l *life) freshSince(since, now int64) bool {
	return since != 0 && l.storedAt > since && l.goneAt <= l.storedAt &&
		(l.state != lifeTimed || now < l.expiry)
}

// store notes that a value was written at now, and returns its expiry instant
// and time to live; zero if it has none or it is not known.
func (l *life) store(now int64, x Expiry) (expiry int64, ttl time.Duration) {
	l.storedAt = now
	return l.touch(now, x)
}

// touch notes that the value's life was changed at now.
func (l *life) touch(now int64, x Expiry) (expiry int64, ttl time.Duration) {
	switch {
	case x.TTL > 0:
		l.state, l.expiry = lifeTimed, now+int64(x.TTL)
	case !x.At.IsZero():
		l.state, l.expiry = lifeTimed, x.At.UnixNano()
	case x.None:
		l.state = lifeForever
	case x.Keep && l.state != lifeNone:
	default:
		l.state = lifeUnknown
	}
	if l.state != lifeTimed {
		return 0, 0
	}
	return l.expiry, max(0, time.Duration(l.expiry-now))
}

// invalidate notes that the value was deleted at now.
func (l *life) invalidate(now int64) {
	if l.state == lifeNone {
		l.state = lifeUnknown
	}
	l.goneAt = max(now, l.storedAt+1)
}
