package fleet

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// key is what is remembered of one key. Its shard's lock guards it.
type key struct {
	name   keyName
	active signal.Nanos // when the latest window arrived
	known  signal.Nanos // since when a value for it is known to have been there; zero if never
	ttl    time.Duration
	ttlAt  signal.Nanos
	stored []stored // the latest few, by when they were told of
	seen   memory
	bursts []*burst // in order of arrival; final ones stay for a while
	queued bool     // for an urgent tick

	misses uint64           // since the previous regular tick
	watch  signal.Nanos     // until when windows are kept for [signal.Tick.Keys]
	recent []*signal.Window // since the previous regular tick
}

// watchFor is how long a key is told of singly after something happened to it
// that an episode does not tell.
const watchFor = 10 * time.Minute

// note keeps what the next regular tick tells of the key beside its episodes.
// The window is also a burst's, which merges into it; so a copy is kept. Its
// slices can be shared: merging makes new ones.
func (k *key) note(now signal.Nanos, w *signal.Window) {
	k.misses += w.Lookups.Misses
	started := &w.Recomputes.Started
	if w.Early.Count > 0 || !w.Locks.IsZero() || w.Invalidations > 0 || w.Stores.Stale > 0 ||
		started[signal.CauseEarly] > 0 || started[signal.CauseEvicted] > 0 {
		k.watch = now.Add(watchFor)
	}
	if now < k.watch {
		c := *w
		k.recent = append(k.recent, &c)
	}
}

// state returns what note kept, and starts anew; false if there is nothing.
func (k *key) state() (signal.KeyState, bool) {
	k.misses = 0
	if len(k.recent) == 0 {
		return signal.KeyState{}, false
	}
	s := signal.KeyState{Window: mergeAll(k.recent), TTL: k.ttl}
	k.recent = nil
	return s, true
}

// mergeAll merges windows, at least one, into one of them. Merging in pairs, and
// the pairs in pairs, keeps the cost near that of one sort.
func mergeAll(all []*signal.Window) *signal.Window {
	for len(all) > 1 {
		half := all[:0]
		for i := 0; i < len(all); i += 2 {
			if i+1 < len(all) {
				all[i].Merge(all[i+1])
			}
			half = append(half, all[i])
		}
		all = half
	}
	return all[0]
}

// stamp identifies a window, by what its source said of it: receivers see one
// again when a sender did not learn that it had arrived.
type stamp struct {
	signal.Source
	start, end signal.Nanos
}

// memory recognises a stamp among at least the last memorySize. Senders repeat
// within seconds; a key has a window or a few per instance and second.
type memory struct{ recent, older map[stamp]struct{} }

const memorySize = 4096

// fresh reports whether id was not seen before, and remembers it.
func (m *memory) fresh(id stamp) bool {
	if _, ok := m.recent[id]; ok {
		return false
	}
	if _, ok := m.older[id]; ok {
		return false
	}
	if m.recent == nil || len(m.recent) >= memorySize {
		m.older, m.recent = m.recent, map[stamp]struct{}{}
	}
	m.recent[id] = struct{}{}
	return true
}

// add takes a window in, and reports whether it came too late to raise anything
// and whether it should be looked at without delay.
func (k *key) add(now signal.Nanos, w *signal.Window, offset time.Duration) (late, urgent bool) {
	k.active = now
	k.learn(w)
	k.note(now, w)
	sp, active := activity(w)
	b := k.place(w, sp)
	switch {
	case b == nil && !active:
		return false, false
	case b == nil:
		b = &burst{started: sp.from, span: sp, overdue: now.Sub(sp.to) > overdue}
		k.bursts = append(k.bursts, b)
	case active:
		b.span = b.span.with(sp)
	}
	b.known = b.known || remembers(w)
	urgent = b.add(now, w, offset)
	if b.final {
		return true, false
	}
	return b.overdue, urgent && !b.overdue
}

// stored is a value as a window tells of it: by its end, at the latest, it was
// there, and it was to expire then.
type stored struct{ by, expiry signal.Nanos }

// maxStored is how many values back an episode may have begun and still find out
// which of them it replaces.
const maxStored = 8

// due returns when the value that was there before at was to expire; zero if
// that is not known.
func (k *key) due(at signal.Nanos) signal.Nanos {
	var last stored
	for _, s := range k.stored {
		if s.by <= at && (s.by > last.by || s.by == last.by && s.expiry > last.expiry) {
			last = s
		}
	}
	return last.expiry
}

// learn notes what w says of the key's stored value. By its end, at the latest,
// there was one.
func (k *key) learn(w *signal.Window) {
	if (w.Stores.Count > 0 || w.Lookups.Hits > 0) && (k.known == 0 || w.End < k.known) {
		k.known = w.End
	}
	if x := w.Stores.ExpiryMax; x > 0 {
		if len(k.stored) >= maxStored {
			k.stored = append(k.stored[:0], k.stored[1:]...)
		}
		k.stored = append(k.stored, stored{w.End, x})
	}
	if t := w.Stores.TTLMin; t > 0 && (w.End > k.ttlAt || w.End == k.ttlAt && t < k.ttl) {
		k.ttl, k.ttlAt = t, w.End
	}
}

// remembers reports whether the window's own source knew a value for the key
// before it recomputed.
func remembers(w *signal.Window) bool {
	s := &w.Recomputes.Started
	return s[signal.CauseExpired]+s[signal.CauseEvicted]+s[signal.CauseInvalidated] > 0
}

// place returns the burst that activity in sp belongs to, or nil. If it ties
// several together they become one, under the name of the first.
func (k *key) place(w *signal.Window, sp span) *burst {
	var home *burst
	kept := k.bursts[:0]
	for _, b := range k.bursts {
		switch {
		case !b.takes(w, sp):
			kept = append(kept, b)
		case home == nil:
			home = b
			kept = append(kept, b)
		case home.final != b.final || home.span.with(b.span).length() > maxEpisode:
			kept = append(kept, b)
		default:
			home.join(b)
		}
	}
	clear(k.bursts[len(kept):])
	k.bursts = kept
	return home
}

// show appends the key's episodes that are not final.
func (k *key) show(es []signal.Episode, now signal.Nanos, t *totals) []signal.Episode {
	for _, b := range k.bursts {
		if !b.final {
			es = append(es, b.episode(k, now, t))
		}
	}
	return es
}

// tick is show for a regular tick: what is due becomes final, what was final is
// forgotten once nothing can be late for it.
func (k *key) tick(es []signal.Episode, now signal.Nanos, lateness time.Duration, t *totals) []signal.Episode {
	kept := k.bursts[:0]
	for _, b := range k.bursts {
		if !b.final {
			b.final = b.overdue || now.Sub(b.heard) >= lateness && now.Sub(b.span.to) >= lateness
			es = append(es, b.episode(k, now, t))
		}
		if !b.final || now.Sub(b.heard) < maxPast {
			kept = append(kept, b)
		}
	}
	clear(k.bursts[len(kept):])
	k.bursts = kept
	return es
}

// forgettable reports whether nothing is lost by forgetting the key.
func (k *key) forgettable(now signal.Nanos) bool {
	keep := max(keepKey, min(2*k.ttl, keepKeyMax))
	if len(k.bursts) == 0 && now.Sub(k.active) > maxPast {
		k.seen = memory{} // what would come again would be too old
	}
	return len(k.bursts) == 0 && now.Sub(k.active) > keep
}
