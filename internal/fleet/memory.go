package fleet

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// memory recognises windows that were received before: receivers see one again
// when its sender did not learn that it had arrived. It keeps a hash of each. At
// 10,000 windows a second, one would be taken for another once in thousands of years.
type memory struct {
	recent, older map[uint64]struct{}
	since         signal.Nanos // when recent was begun
}

const (
	// rememberFor is after how long a window that comes again is refused for
	// being too old, whoever remembers it.
	rememberFor = maxPast + maxFuture
	// memorySize is how many are remembered in any case, and half of how many
	// are at most.
	memorySize = 1 << 16
)

// fresh reports whether id was not seen before, and remembers it.
func (m *memory) fresh(now signal.Nanos, id uint64) bool {
	if _, ok := m.recent[id]; ok {
		return false
	}
	if _, ok := m.older[id]; ok {
		return false
	}
	if m.recent == nil || now.Sub(m.since) > rememberFor || len(m.recent) >= memorySize {
		m.older, m.recent, m.since = m.recent, make(map[uint64]struct{}, len(m.recent)), now
	}
	m.recent[id] = struct{}{}
	return true
}

// stamp identifies a window, by what its source said of it.
func (f *Fleet) stamp(w *signal.Window) uint64 {
	var h maphash.Hash
	h.SetSeed(f.seed)
	for _, s := range [...]string{w.Service, w.Instance, w.Build, w.Cache} {
		h.WriteString(s)
		h.WriteByte(0)
	}
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], uint64(w.Key.ID))
	binary.LittleEndian.PutUint64(b[8:], uint64(w.Start))
	binary.LittleEndian.PutUint64(b[16:], uint64(w.End))
	h.Write(b[:])
	return h.Sum64()
}
