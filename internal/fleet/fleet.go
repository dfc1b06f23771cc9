package fleet

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Fleet is what is known of all sources. Make one with [New].
type Fleet struct {
	o       Options
	sources sources
	shards  [64]shard
	seed    maphash.Seed // of stamps

	ticks     atomic.Uint64
	shown     atomic.Int64 // episodes of the latest regular tick
	late      atomic.Uint64
	future    atomic.Uint64
	past      atomic.Uint64
	duplicate atomic.Uint64
	overflow  atomic.Uint64
}

// shard holds the keys whose ids share their low bits.
type shard struct {
	mu     sync.Mutex
	keys   map[keyName]*key
	seen   memory
	active []*key       // those that the next regular tick tells of
	ticked signal.Nanos // when the last one was
	urgent []*key
	totals map[string]*totals // by cache
}

type keyName struct {
	cache string
	id    signal.KeyID
}

// New returns an empty fleet.
func New(o Options) (*Fleet, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("make fleet: %w", err)
	}
	f := &Fleet{o: o, seed: maphash.MakeSeed()}
	f.sources.init(o.MaxSources)
	for i := range f.shards {
		f.shards[i].keys = map[keyName]*key{}
		f.shards[i].totals = map[string]*totals{}
	}
	return f, nil
}

// Add takes records that arrived at now, on the fleet's clock. The records are
// the fleet's from then on. It reports whether some key should be looked at
// without waiting for the next regular tick: see [Fleet.UrgentTick]. It is safe
// for concurrent use.
func (f *Fleet) Add(now signal.Nanos, ws []*signal.Window, vs []*signal.Vitals) (urgent bool) {
	for _, v := range vs {
		if !f.sources.add(now, v) {
			f.overflow.Add(1)
		}
	}
	for _, w := range ws {
		if f.addWindow(now, w) {
			urgent = true
		}
	}
	return urgent
}

func (f *Fleet) addWindow(now signal.Nanos, w *signal.Window) (urgent bool) {
	id := f.stamp(w)
	offset := f.sources.offset(now, w)
	if offset != 0 {
		w.Shift(offset)
	}
	switch {
	case w.End.Sub(now) > maxFuture:
		f.future.Add(1)
		return false
	case now.Sub(w.End) > maxPast:
		f.past.Add(1)
		return false
	}
	s := &f.shards[w.Key.ID%signal.KeyID(len(f.shards))]
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.key(now, keyName{w.Cache, w.Key.ID}, f.o.MaxKeys/len(f.shards)+1)
	switch {
	case k == nil:
		f.overflow.Add(1)
		return false
	case !s.seen.fresh(now, id):
		f.duplicate.Add(1)
		return false
	}
	s.total(w.Cache).count(now, w)
	late, urgent := k.add(now, w, offset)
	if late {
		f.late.Add(1)
	}
	if !k.listed {
		k.listed = true
		s.active = append(s.active, k)
	}
	if urgent && !k.queued {
		k.queued = true
		s.urgent = append(s.urgent, k)
	}
	return urgent
}

// key returns the key of that name, making room for it if it must; nil if all
// that are remembered are busy.
func (s *shard) key(now signal.Nanos, n keyName, most int) *key {
	k := s.keys[n]
	switch {
	case k == nil:
	case k.age(s.ticked): // it only has not been its shard's turn yet
		delete(s.keys, n)
	default:
		return k
	}
	if len(s.keys) >= most && !s.evict(now) {
		return nil
	}
	k = &key{name: n}
	s.keys[n] = k
	return k
}

// evict forgets a key without an episode, the longest idle of a few.
func (s *shard) evict(now signal.Nanos) bool {
	var victim *key
	looked := 0
	for _, k := range s.keys { // in random order
		k.age(s.ticked)
		if len(k.bursts) == 0 && (victim == nil || k.active < victim.active) {
			victim = k
		}
		if looked++; looked == 16 {
			break
		}
	}
	if victim == nil {
		return false
	}
	delete(s.keys, victim.name)
	*victim = key{name: victim.name} // there may be something to tell of it; no longer
	return true
}

// Tick returns the state of the fleet at now, and moves time on: episodes that
// are due become final, sources and keys that fell silent are forgotten.
func (f *Fleet) Tick(now signal.Nanos) *signal.Tick {
	t := &signal.Tick{At: now, Caches: f.sources.states(now), Episodes: make([]signal.Episode, 0, f.shown.Load())}
	misses := map[string]*missed{}
	turn := f.ticks.Add(1)
	for i := range f.shards {
		s := &f.shards[i]
		s.mu.Lock()
		s.tick(t, misses, f.o.Lateness)
		if (uint64(i)+turn)%sweepIn == 0 {
			s.sweep(now)
		}
		s.forget(now)
		s.mu.Unlock()
	}
	f.shown.Store(int64(len(t.Episodes)))
	sortEpisodes(t.Episodes)
	slices.SortFunc(t.Keys, func(a, b signal.KeyState) int {
		return cmp.Or(cmp.Compare(a.Window.Cache, b.Window.Cache), cmp.Compare(a.Window.Key.ID, b.Window.Key.ID))
	})
	for i := range t.Caches {
		if m := misses[t.Caches[i].Cache]; m != nil {
			t.Caches[i].MissedKeys, t.Caches[i].MissTop, t.Caches[i].Misses = m.keys, m.top, m.all
		}
	}
	return t
}

// tick adds to t and misses what there is to tell of the shard's keys. Those of
// which there is nothing cost nothing, however many are remembered.
func (s *shard) tick(t *signal.Tick, misses map[string]*missed, lateness time.Duration) {
	active := s.active[:0]
	for _, k := range s.active {
		count(misses, k.name.cache, k.misses)
		if state, ok := k.state(t.At); ok {
			t.Keys = append(t.Keys, state)
		}
		t.Episodes = k.tick(t.Episodes, t.At, lateness, s.total(k.name.cache))
		if k.listed = k.growing(); k.listed {
			active = append(active, k)
		}
	}
	clear(s.active[len(active):])
	s.active, s.ticked = active, t.At
}

// sweepIn is in how many ticks every shard has its turn to be swept.
const sweepIn = 16

// sweep forgets keys that fell silent. A key that is spoken of in between is
// looked at then, so that it makes no difference whose turn it is.
func (s *shard) sweep(now signal.Nanos) {
	for name, k := range s.keys {
		if k.age(now) {
			delete(s.keys, name)
		}
	}
}

// missed sums the misses of a cache's keys.
type missed struct {
	keys     int
	top, all uint64
}

func count(of map[string]*missed, cache string, misses uint64) {
	if misses == 0 {
		return
	}
	m := of[cache]
	if m == nil {
		m = &missed{}
		of[cache] = m
	}
	m.keys++
	m.top = max(m.top, misses)
	m.all += misses
}

// UrgentTick returns the episodes of the keys that asked for it since the last
// call, or nil if none did.
func (f *Fleet) UrgentTick(now signal.Nanos) *signal.Tick {
	t := &signal.Tick{At: now, Urgent: true}
	for i := range f.shards {
		s := &f.shards[i]
		s.mu.Lock()
		for _, k := range s.urgent {
			k.queued = false
			t.Episodes = k.show(t.Episodes, now, s.total(k.name.cache))
		}
		s.urgent = nil
		s.mu.Unlock()
	}
	if len(t.Episodes) == 0 {
		return nil
	}
	sortEpisodes(t.Episodes)
	for _, c := range f.sources.peek(now) {
		if slices.ContainsFunc(t.Episodes, func(e signal.Episode) bool { return e.Window.Cache == c.Cache }) {
			t.Caches = append(t.Caches, c)
		}
	}
	return t
}

func sortEpisodes(es []signal.Episode) {
	slices.SortFunc(es, func(a, b signal.Episode) int {
		return cmp.Or(cmp.Compare(a.Window.Cache, b.Window.Cache), cmp.Compare(a.Window.Key.ID, b.Window.Key.ID), cmp.Compare(a.Started, b.Started))
	})
}

// Stats is a fleet's account of itself.
type Stats struct {
	Keys       int           // remembered
	Sources    int           // instances times caches, remembered
	Overflowed uint64        // records there was no room for
	Late       uint64        // windows that came after their episode was final
	Future     uint64        // windows from too far ahead to be believed
	Past       uint64        // windows too old to be of use
	Duplicate  uint64        // windows that had been received before
	OffsetMax  time.Duration // largest clock offset of a source that reports
}

// Stats returns the fleet's account of itself.
func (f *Fleet) Stats() Stats {
	st := Stats{Overflowed: f.overflow.Load(), Late: f.late.Load(), Future: f.future.Load(), Past: f.past.Load(), Duplicate: f.duplicate.Load()}
	st.Sources, st.OffsetMax = f.sources.stats()
	for i := range f.shards {
		s := &f.shards[i]
		s.mu.Lock()
		st.Keys += len(s.keys)
		s.mu.Unlock()
	}
	return st
}
