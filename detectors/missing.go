package detectors

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// missingFor is how long keys whose episodes are over are remembered, and
	// missingMost how many of one cache: beyond, more are not counted.
	missingFor  = 2 * time.Minute
	missingMost = 200_000
)

// missing counts the keys of one cache that readers found gone. A key that waits
// for its turn at the origin may have several episodes on end; it is counted
// once.
type missing struct {
	open fates // keys whose episodes are not over
	// ended holds the others by the second of their end, and keys when that
	// was for each.
	ended map[signal.Nanos]*ending
	keys  map[signal.KeyID]ended

	// Of the latest tick: keys whose episodes became final and whose values
	// had expired, or may have, and the longest time to live.
	expired float64
	ttl     time.Duration
}

// ended is how one key's latest episode did.
type ended struct {
	at   signal.Nanos // the second
	fate fate
}

// ending is what ended in one second. Keys that have begun anew since are in
// the list, and not in the counts.
type ending struct {
	fates
	keys []signal.KeyID
}

// begin prepares for the episodes of the next tick, and forgets old ones.
func (m *missing) begin(at signal.Nanos) {
	m.open, m.expired, m.ttl = fates{}, 0, 0
	if m.ended == nil {
		m.ended, m.keys = map[signal.Nanos]*ending{}, map[signal.KeyID]ended{}
	}
	for s, x := range m.ended {
		if at.Sub(s).Abs() <= missingFor {
			continue
		}
		for _, k := range x.keys {
			if m.keys[k].at == s {
				delete(m.keys, k)
			}
		}
		delete(m.ended, s)
	}
}

// close counts an episode that became final at at. All of a tick come before
// those that go on.
func (m *missing) close(at signal.Nanos, e *signal.Episode) {
	x := ended{second(min(e.Window.End, at)), fateOf(e)}
	m.ttl = max(m.ttl, e.TTL)
	if x.fate == fateExpired || x.fate == fateGone {
		m.expired++
	}
	k := e.Window.Key.ID
	was, again := m.keys[k]
	if at.Sub(x.at) > missingFor || len(m.keys) >= missingMost && !again {
		return
	}
	if again && (was.at > x.at || was.at == x.at && was.fate > x.fate) {
		return
	}
	m.reopen(k)
	if m.ended[x.at] == nil {
		m.ended[x.at] = &ending{}
	}
	m.ended[x.at].fates[x.fate]++
	m.ended[x.at].keys = append(m.ended[x.at].keys, k)
	m.keys[k] = x
}

// look counts an episode that goes on.
func (m *missing) look(e *signal.Episode) {
	m.open[fateOf(e)]++
	m.ttl = max(m.ttl, e.TTL)
	m.reopen(e.Window.Key.ID)
}

// reopen takes a key that is gone again out of those whose episodes are over.
func (m *missing) reopen(k signal.KeyID) {
	if x, ok := m.keys[k]; ok {
		m.ended[x.at].fates[x.fate]--
		delete(m.keys, k)
	}
}

// since returns the keys that were gone at some time after from: their episodes
// go on, or ended since.
func (m *missing) since(from signal.Nanos) fates {
	f := m.open
	from = second(from)
	for s, x := range m.ended {
		if s > from {
			f.add(&x.fates)
		}
	}
	return f
}

// second returns the second that n is in.
func second(n signal.Nanos) signal.Nanos { return n - n%signal.Nanos(time.Second) }
