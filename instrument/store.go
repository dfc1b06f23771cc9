package instrument

import (
	"math"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Store counts a value written to the cache by other means than a recompute
// that is marked: see [Run.Store]. Client hooks call [Monitor.ObserveStore]
// instead.
func (m *Monitor) Store(key string, x Expiry) {
	if m == nil {
		return
	}
	m.store(m.lockEntry(key), 0, x)
}

// store counts a value written to e by what began then; zero if not known. e.mu
// is held, and released: between finding a key and counting for it there must be
// no moment in which it could be forgotten.
func (m *Monitor) store(e *entry, began int64, x Expiry) {
	now := m.now()
	ttl := e.stored(e.open(now), now, began, x)
	group := e.groupName()
	e.mu.Unlock()
	if ttl > 0 {
		for _, ob := range m.observing() {
			ob.StoreTTL(group, ttl)
		}
	}
}

// stored counts a store at now, by what began then, and returns its time to
// live, zero if unknown. e.mu is held.
func (e *entry) stored(w *signal.Window, now, began int64, x Expiry) time.Duration {
	if began != 0 && began < e.life.goneAt {
		w.Stores.Stale++
	}
	expiry, ttl := e.life.store(now, x)
	s := &w.Stores
	s.Count++
	if e.life.state == lifeForever {
		s.NoExpiry++
	}
	if expiry == 0 {
		return 0
	}
	at := signal.Nanos(expiry)
	if s.ExpiryMin == 0 || at < s.ExpiryMin {
		s.ExpiryMin = at
	}
	s.ExpiryMax = max(s.ExpiryMax, at)
	if ttl > 0 && (s.TTLMin == 0 || ttl < s.TTLMin) {
		s.TTLMin = ttl
	}
	s.TTLMax = max(s.TTLMax, ttl)
	return ttl
}

// Version says which version the value has that was just written under key: right
// after [Monitor.Store], [Run.Store], or a write that a client hook has seen. A
// version is a number that grows whenever the data behind the key changes: a
// row's version, a position in a log of commits, a fencing token. It tells when a
// slow recompute writes what it has read long ago over what others have written
// since, wherever in the fleet they are. Zero, and what is beyond 2^63-1, is no
// version; a key that is not tracked is left alone.
func (m *Monitor) Version(key string, version uint64) {
	if m == nil || version > math.MaxInt64 {
		return
	}
	e := m.table.find(m.hash(key), key)
	if e == nil {
		return
	}
	now := m.now()
	e.mu.Lock()
	e.open(now).Stores.Versions.Note(version, signal.Nanos(now))
	e.mu.Unlock()
}

// Touch notes that a stored value's expiry was changed without writing it
// (EXPIRE, PERSIST). A key that is not tracked is left alone.
func (m *Monitor) Touch(key string, x Expiry) {
	if m == nil {
		return
	}
	e := m.table.find(m.hash(key), key)
	if e == nil {
		return
	}
	now := m.now()
	e.mu.Lock()
	e.life.touch(now, x)
	e.active.add(e)
	e.mu.Unlock()
}

// Invalidate counts a key deleted on purpose.
func (m *Monitor) Invalidate(key string) {
	if m == nil {
		return
	}
	now := m.now()
	e := m.lockEntry(key)
	w := e.open(now)
	w.Invalidations++
	w.InvalidatedAt = max(w.InvalidatedAt, signal.Nanos(now))
	e.life.invalidate(now)
	e.mu.Unlock()
}
