package keyspace

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/stampede-exporter/stampede-exporter/internal/keyname"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// maxKeyText is the longest key kept whole; a longer one is told by its hash.
const maxKeyText = 256

// Ledger keeps account of the keys of one cache. It is for one goroutine.
type Ledger struct {
	o    Options
	keys map[string]*entry // by key, or what stands for a long one
	// waiting are the keys with open misses, and active those with a window.
	waiting map[*entry]struct{}
	active  []*entry
	done    []*signal.Window // windows that are over before the flush
	asked   []*entry         // keys whose time to live somebody would like to know
	ids     uint64
	counts  Counts
}

// New returns an empty ledger.
func New(o Options) (*Ledger, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	l := &Ledger{o: o, keys: map[string]*entry{}, waiting: map[*entry]struct{}{}}
	return l, nil
}

// Observe takes an event in.
func (l *Ledger) Observe(e Event) {
	if l.ids == 0 {
		l.ids = uint64(l.lifeHash(e.At)) << 32
	}
	key := nameOf(e.Key)
	for _, p := range l.o.Locks {
		if guarded, ok := p.match(key); ok {
			l.lockEvent(e, key, guarded)
			return
		}
	}
	k := l.entry(e.At, key, e.Key)
	if k == nil {
		return
	}
	switch e.Kind {
	case Miss:
		l.miss(k, e.At)
	case Store:
		l.store(k, e)
	case Change:
		if !k.present { // or each step would count as a value of its own
			l.store(k, e)
		}
	case Expire, Left:
		l.setLife(k, e)
	case Delete:
		w := l.open(k, e.At)
		w.Invalidations++
		w.InvalidatedAt = max(w.InvalidatedAt, e.At)
		k.gone(signal.CauseInvalidated)
	case Expired:
		k.gone(signal.CauseExpired)
	case Evicted:
		k.gone(signal.CauseEvicted)
	}
}

// Gap says that events may have been lost since the latest one observed. What
// was open is unknown: it is forgotten, and never counted as if nothing had come
// of it.
func (l *Ledger) Gap() {
	for _, k := range l.keys {
		k.misses, k.matched, k.present, k.due = nil, 0, false, 0
		k.cause = signal.CauseUnknown
		k.lock = lockState{}
	}
	clear(l.waiting)
	l.asked = nil
}

// Cache returns the name of the cache the ledger is of.
func (l *Ledger) Cache() string { return l.o.Cache }

// Forget drops all that is known of keys for which drop returns true, without a
// word: they are not watched any more. Those of more than 256 bytes, which are
// not kept, are dropped in any case.
func (l *Ledger) Forget(drop func(key []byte) bool) {
	for name, k := range l.keys {
		if k.long || drop([]byte(name)) {
			l.remove(k)
		}
	}
}

// Untimed returns up to most keys that a recompute has stored since the last
// call and whose time to live the server did not tell. Who finds it out tells
// the ledger with a Left event. Keys of more than 256 bytes are left out.
func (l *Ledger) Untimed(most int) [][]byte {
	var out [][]byte
	for _, k := range l.asked {
		k.asked = false
		if k.due == 0 && k.present && len(out) < most {
			out = append(out, []byte(k.key))
		}
	}
	l.asked = nil
	return out
}

// nameOf returns the key, or what stands for one too long to keep.
func nameOf(key []byte) string {
	if len(key) <= maxKeyText {
		return string(key)
	}
	sum := keyname.Sum("", string(key))
	return string(key[:64]) + "\x00" + string(sum[:])
}

// entry returns what is known of a key, making room for it if it must; nil if
// there is none, which is counted.
func (l *Ledger) entry(at signal.Nanos, name string, key []byte) *entry {
	if k := l.keys[name]; k != nil {
		return k
	}
	if len(l.keys) >= l.o.MaxKeys && !l.evict(at) {
		l.counts.Overflowed++
		return nil
	}
	text := string(key[:min(len(key), maxKeyText)])
	k := &entry{
		key:   name,
		long:  len(key) > maxKeyText,
		id:    keyname.ID(keyname.Sum(l.o.Salt, string(key))),
		group: l.group(text),
		cause: signal.CauseCold,
	}
	if l.o.RawKeys {
		k.text = strings.ToValidUTF8(text, "\uFFFD")
	}
	l.keys[name] = k
	return k
}

// group names the family of a key. Whoever gave the function, a panic in it must
// not end the probe.
func (l *Ledger) group(key string) (name string) {
	defer func() {
		if recover() != nil {
			name = "other"
		}
	}()
	return keyname.Safe(l.o.Group(key))
}

// evict forgets a key on which nothing goes on, the longest idle of a few; or
// else one that somebody missed once and nobody stored, as there are many if
// somebody walks through keys that do not exist.
func (l *Ledger) evict(at signal.Nanos) bool {
	var idle, lone *entry
	looked := 0
	for _, k := range l.keys { // in random order
		switch {
		case k.w != nil || k.lock.heldAt != 0:
		case len(k.misses) == 0:
			if idle == nil || k.seen < idle.seen {
				idle = k
			}
		case len(k.misses) == 1 && at.Sub(k.seen) > signal.MaxSpan:
			if lone == nil || k.seen < lone.seen {
				lone = k
			}
		}
		if looked++; looked == 32 {
			break
		}
	}
	if idle == nil {
		idle = lone
	}
	if idle == nil {
		return false
	}
	l.remove(idle)
	return true
}

// remove forgets a key.
func (l *Ledger) remove(k *entry) {
	delete(l.keys, k.key)
	delete(l.waiting, k)
	k.w, k.present = nil, false
}

// lifeHash tells the recomputes of this ledger from all others'.
func (l *Ledger) lifeHash(began signal.Nanos) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%d", l.o.Source.Service, l.o.Source.Instance, l.o.Cache, began)
	return h.Sum32()
}
