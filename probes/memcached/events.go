package memcached

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/probes/keyspace"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// maxHeld bounds the locks whose holder's connection is remembered.
const maxHeld = 4096

// ledger is a [keyspace.Ledger].
type ledger interface {
	Observe(keyspace.Event)
	Gap()
	Flush(now signal.Nanos) ([]*signal.Window, keyspace.Counts)
}

// events tells a ledger what records of the log mean.
type events struct {
	ledger ledger
	locks  []keyspace.LockPattern
	// deletions is set if the server logs them.
	deletions bool
	// held are locks that were taken, by key.
	held map[string]hold
}

// hold is a lock that was taken: on which connection, and when it runs out; zero
// if it never does.
type hold struct {
	conn int64
	due  signal.Nanos
}

func newEvents(l ledger, locks []keyspace.LockPattern) *events {
	return &events{ledger: l, locks: locks, held: map[string]hold{}}
}

// entry makes an entry of a record that was read at seen. A get that found its
// key is of no interest but for locks, and most lines are such.
func (v *events) entry(r record, c *clock, seen signal.Nanos) entry {
	e := entry{gid: r.gid, at: c.local(r.at, seen), seen: seen, conn: r.conn, ttl: r.ttl, kind: r.kind, found: r.found}
	if r.kind != got || r.found != value || len(v.locks) > 0 && v.isLock(r.key) {
		e.key = string(r.key)
	}
	return e
}

func (v *events) isLock(key []byte) bool {
	for _, l := range v.locks {
		if l.Matches(key) {
			return true
		}
	}
	return false
}

// observe tells of entries, in order.
func (v *events) observe(entries []entry) {
	for i := range entries {
		switch e := &entries[i]; e.kind {
		case got:
			v.looked(e)
		case stored:
			v.stored(e)
		case deleted:
			v.tell(e, keyspace.Delete, 0)
			delete(v.held, e.key)
		case evicted:
			v.tell(e, keyspace.Evicted, 0)
		}
	}
}

// gap says that records are missing from here on.
func (v *events) gap() {
	v.ledger.Gap()
	clear(v.held)
}

func (v *events) tell(e *entry, kind keyspace.Kind, ttl time.Duration) {
	v.ledger.Observe(keyspace.Event{At: e.at, Key: []byte(e.key), Kind: kind, TTL: ttl})
}

// looked tells of a command that looked for a key.
func (v *events) looked(e *entry) {
	switch e.found {
	case outdated:
		v.tell(e, keyspace.Expired, 0)
		delete(v.held, e.key)
	case flushed:
		v.tell(e, keyspace.Delete, 0)
		delete(v.held, e.key)
	case value:
		v.release(e)
		return
	case nothing:
		v.missing(e)
	}
	if !e.own {
		v.tell(e, keyspace.Miss, 0)
	}
}

// stored tells of a value that was written. One that is written past its expiry
// is a way to delete the key.
func (v *events) stored(e *entry) {
	if e.ttl < 0 {
		v.tell(e, keyspace.Delete, 0)
		delete(v.held, e.key)
		return
	}
	if len(v.locks) > 0 && len(v.held) < maxHeld && v.isLock([]byte(e.key)) {
		v.held[e.key] = hold{e.conn, dueAt(e)}
	}
	v.tell(e, keyspace.Store, life(e))
}

// life returns the time to live of a value that was stored, as a ledger wants to
// be told.
func life(e *entry) time.Duration {
	if e.ttl == 0 {
		return -1 // it never expires
	}
	return time.Duration(e.ttl) * time.Second
}

func dueAt(e *entry) signal.Nanos {
	if e.ttl == 0 {
		return 0
	}
	return e.at.Add(life(e))
}

// release takes a get that found a lock, on the connection that took the lock,
// for its release, if the server does not log deletions: a delete looks for its
// key first. Who looks whether the lock is still his before he deletes it is
// taken for having released it a moment too early.
func (v *events) release(e *entry) {
	if h, ok := v.held[e.key]; ok && !e.own && !v.deletions && h.conn == e.conn {
		v.tell(e, keyspace.Delete, 0)
		delete(v.held, e.key)
	}
}

// coarse is how much earlier than it says a value may expire: the server's clock
// moves once a second.
const coarse = time.Second

// missing tells why a lock that somebody wants to take is not there any more:
// the server has dropped it at its expiry, or its holder has deleted it.
func (v *events) missing(e *entry) {
	h, ok := v.held[e.key]
	switch {
	case !ok:
		return
	case h.due != 0 && e.at >= h.due.Add(-coarse):
		v.tell(e, keyspace.Expired, 0)
	default:
		v.tell(e, keyspace.Delete, 0)
	}
	delete(v.held, e.key)
}
