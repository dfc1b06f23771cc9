package fleet

import (
	"slices"
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
	stored []stored     // the latest few, by when they were told of
	bursts []*burst     // in order of arrival; final ones stay for a while
	aging  signal.Nanos // before which none of them can be forgotten
	loose  []loose      // since the previous regular tick
	queued bool         // for an urgent tick
	listed bool         // for the next regular tick

	versions versions
	misses   uint64           // since the previous regular tick
	watch    signal.Nanos     // until when windows are kept for [signal.Tick.Keys]
	recent   []*signal.Window // since the previous regular tick
	copied   int              // so many of recent are the key's own
}

// watchFor is how long a key is told of singly after something happened to it
// that an episode does not tell.
const watchFor = 10 * time.Minute

// note keeps what the next regular tick may tell of the key beside its episodes:
// all windows since the one before, for what makes it worth telling may come
// last.
func (k *key) note(now signal.Nanos, w *signal.Window) {
	k.misses += w.Lookups.Misses
	started := &w.Recomputes.Started
	if w.Early.Count > 0 || !w.Locks.IsZero() || w.Invalidations > 0 || w.Stores.Stale > 0 || k.versions.suspicious() ||
		started[signal.CauseEarly] > 0 || started[signal.CauseEvicted] > 0 {
		k.watch = now.Add(watchFor)
	}
	k.recent = append(k.recent, w)
}

// copyRecent takes copies of the windows that note kept. They are also a burst's,
// which merges into them. Slices can be shared: merging makes new ones.
func (k *key) copyRecent() {
	for ; k.copied < len(k.recent); k.copied++ {
		c := *k.recent[k.copied]
		k.recent[k.copied] = &c
	}
}

// state returns what note kept, and starts anew; false if there is nothing. It
// comes before the key's bursts are looked at.
func (k *key) state(now signal.Nanos) (s signal.KeyState, ok bool) {
	if ok = len(k.recent) > 0 && now < k.watch; ok {
		k.copyRecent()
		s = signal.KeyState{Window: mergeAll(k.recent), TTL: k.ttl, Overtaken: k.versions.count()}
	}
	clear(k.recent)
	k.misses, k.recent, k.copied = 0, k.recent[:0], 0
	return s, ok
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

// add takes a window in, and reports whether it came too late to raise anything
// and whether it should be looked at without delay.
func (k *key) add(now signal.Nanos, w *signal.Window, offset time.Duration) (late, urgent bool) {
	k.active = now
	k.learn(w)
	k.versions.add(w, offset)
	k.note(now, w)
	sp, active := activity(w)
	if !active {
		k.loose = append(k.loose, loose{w, sp, offset})
		return false, false
	}
	b := k.place(w, sp)
	if b == nil {
		b = &burst{started: sp.from, span: sp, overdue: now.Sub(sp.to) > overdue}
		k.bursts = append(k.bursts, b)
	}
	b.span = b.span.with(sp)
	b.known = b.known || remembers(w)
	urgent = b.add(now, w, offset)
	if b.final {
		return true, false
	}
	return b.overdue, urgent && !b.overdue
}

// loose is a window in which nobody waited and nothing ran: what it tells goes
// with a burst, if there is one at the time. Which one shows when all that came
// with it is known.
type loose struct {
	*signal.Window
	span   span
	offset time.Duration
}

// attach adds loose windows to the first burst each belongs to.
func (k *key) attach(now signal.Nanos) {
	k.loose = slices.DeleteFunc(k.loose, func(l loose) bool {
		var home *burst
		for _, b := range k.bursts {
			if !b.final && b.takes(l.Window, l.span) && (home == nil || b.span.from < home.span.from) {
				home = b
			}
		}
		if home == nil {
			return false
		}
		home.known = home.known || remembers(l.Window)
		home.add(now, l.Window, l.offset)
		return true
	})
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
	k.copyRecent()
	k.attach(now)
	for _, b := range k.bursts {
		if !b.final {
			es = append(es, b.episode(k, now, t))
		}
	}
	return es
}

// tick is show for a regular tick: what is due becomes final.
func (k *key) tick(es []signal.Episode, now signal.Nanos, lateness time.Duration, t *totals) []signal.Episode {
	k.attach(now)
	k.loose = nil
	for _, b := range k.bursts {
		if !b.final {
			b.final = b.overdue || now.Sub(b.heard) >= lateness && now.Sub(b.span.to) >= lateness
			es = append(es, b.episode(k, now, t))
			if b.final {
				b.finish()
			}
		}
	}
	return es
}

// growing reports whether the key has an episode that is not final.
func (k *key) growing() bool {
	return slices.ContainsFunc(k.bursts, func(b *burst) bool { return !b.final })
}

// age forgets of the key what is of no more use at now, the instant of a regular
// tick, and reports whether nothing would be lost by forgetting all of it.
func (k *key) age(now signal.Nanos) bool {
	if now >= k.aging {
		k.aging = now.Add(maxPast)
		k.bursts = slices.DeleteFunc(k.bursts, func(b *burst) bool {
			if until := b.heard.Add(maxPast); !b.final || until > now {
				k.aging = min(k.aging, until)
				return false
			}
			return true // nothing can be late for it any more
		})
	}
	idle := now.Sub(k.active)
	if len(k.bursts) > 0 || idle <= maxPast {
		return false
	}
	return idle > max(keepKey, min(2*k.ttl, keepKeyMax))
}
