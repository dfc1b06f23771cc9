package instrument

import (
	"cmp"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Snapshot is a monitor's account of everything since it was made. Counts are
// cumulative.
type Snapshot struct {
	Cache      string
	Groups     []GroupTotals // sorted by Group; the one called "other" is always there
	Tracked    uint64        // keys in the table now
	Overflowed uint64        // events on keys there was no room for
	Dropped    uint64        // records the sinks have dropped
}

// GroupTotals is one key group's part of a [Snapshot].
type GroupTotals struct {
	Group         string
	Lookups       signal.Lookups
	Recomputes    signal.Recomputes
	Duplicates    uint64
	WhileFresh    uint64
	Coalesced     uint64
	Early         uint64
	LockAttempts  uint64
	LockAcquired  uint64
	LocksLost     uint64
	Stores        uint64
	Invalidations uint64
	Retries       signal.Retries

	// Of the group's worst key: now, and the peak of the last 20 to 30 s.
	MissNow      uint32
	MissPeak     uint32
	InFlightNow  uint32
	InFlightPeak uint32
}

// Snapshot flushes, as [Monitor.Flush] does, and returns the totals.
func (m *Monitor) Snapshot() Snapshot {
	if m == nil {
		return Snapshot{}
	}
	m.Flush()
	m.flushMu.Lock()
	defer m.flushMu.Unlock()
	s := Snapshot{
		Cache:      m.cache,
		Tracked:    uint64(m.table.keys.Load()),
		Overflowed: m.overflowed.Load(),
		Dropped:    m.dropped(),
	}
	now := signal.Nanos(m.now())
	m.groups.mu.RLock()
	defer m.groups.mu.RUnlock()
	for _, g := range m.groups.byName {
		t := g.totals
		t.MissPeak, t.InFlightPeak = g.missPeak.Value(now), g.runsPeak.Value(now)
		s.Groups = append(s.Groups, t)
	}
	slices.SortFunc(s.Groups, func(a, b GroupTotals) int { return cmp.Compare(a.Group, b.Group) })
	return s
}

// add counts a finished window in.
func (t *GroupTotals) add(w *signal.Window) {
	t.Lookups.Add(w.Lookups)
	t.Recomputes.Add(&w.Recomputes)
	t.Duplicates += w.Duplicates
	t.WhileFresh += w.WhileFresh
	t.Coalesced += w.Coalesced
	t.Early += w.Early.Count
	t.LockAttempts += w.Locks.Attempts
	t.LockAcquired += w.Locks.Acquired
	t.LocksLost += w.Locks.Lost
	t.Stores += w.Stores.Count
	t.Invalidations += w.Invalidations
	t.Retries.Requests += w.Retries.Requests
	t.Retries.Attempts += w.Retries.Attempts
}
