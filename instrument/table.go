package instrument

import (
	"sync"
	"sync/atomic"
)

// table is a bounded set of tracked keys, made so that a lookup that finds
// nothing costs one cache line and no lock: it is set-associative, like a CPU's
// cache. A key's hash picks a bucket of ways slots; if all are taken, an idle
// key makes room, and if none is idle there is no room.
//
// It never grows or moves, which is what keeps readers free of locks and memory
// bounded. The price is that a bucket can be full before the table is: it has
// twice as many slots as keys, so at the bound a bucket holds 4 keys on average
// and one in fifty would want more than 8 (Poisson).
type table struct {
	mask    uint64
	buckets []bucket
	locks   [stripes]sync.Mutex // by bucket; taken to insert and to remove

	maxKeys  int64
	maxBytes int64
	keys     atomic.Int64
	bytes    atomic.Int64
	// epoch counts flushes. A bucket that was found full of busy keys is not
	// searched for an idle one again in the same epoch.
	epoch atomic.Uint32
}

const ways = 8

type bucket struct {
	tags [ways]atomic.Uint64 // hash of the key in the slot, zero if empty
	ents [ways]atomic.Pointer[entry]
	full atomic.Uint32 // epoch in which there was no idle key; see table.epoch
}

const bucketBytes = ways*16 + 8

func newTable(maxKeys, maxBytes int) *table {
	n := 1
	for n*ways < 2*maxKeys && (2*n*bucketBytes) <= maxBytes/2 {
		n *= 2
	}
	t := &table{mask: uint64(n - 1), buckets: make([]bucket, n), maxKeys: int64(maxKeys), maxBytes: int64(maxBytes)}
	t.bytes.Store(int64(n) * bucketBytes)
	t.epoch.Store(1)
	return t
}

// find returns the entry of key, or nil.
func (t *table) find(hash uint64, key string) *entry {
	b := &t.buckets[hash&t.mask]
	for i := range b.tags {
		if b.tags[i].Load() == hash {
			if e := b.ents[i].Load(); e != nil && e.is(hash, key) {
				return e
			}
		}
	}
	return nil
}

// insert adds the entry that create returns for key, unless it is there already.
// It returns nil if there is no room.
func (t *table) insert(hash uint64, key string, create func() *entry) *entry {
	i := hash & t.mask
	b := &t.buckets[i]
	epoch := t.epoch.Load()
	if b.full.Load() == epoch {
		return nil
	}
	mu := &t.locks[i%stripes]
	mu.Lock()
	defer mu.Unlock()
	if e := t.find(hash, key); e != nil {
		return e
	}
	slot := t.room(b)
	if slot < 0 {
		b.full.Store(epoch)
		return nil
	}
	e := create()
	t.keys.Add(1)
	t.bytes.Add(e.bytes())
	b.ents[slot].Store(e)
	b.tags[slot].Store(hash)
	return e
}

// room returns a free slot of b, evicting its longest idle key if it must, or
// -1. The bucket's lock is held.
func (t *table) room(b *bucket) int {
	within := t.keys.Load() < t.maxKeys && t.bytes.Load() < t.maxBytes
	victim, oldest := -1, int64(0)
	for i := range b.ents {
		e := b.ents[i].Load()
		if e == nil {
			if within {
				return i
			}
			continue
		}
		if at, idle := e.idleSince(); idle && (victim < 0 || at < oldest) {
			victim, oldest = i, at
		}
	}
	if victim < 0 || !b.ents[victim].Load().kill() {
		return -1
	}
	t.keys.Add(-1)
	t.bytes.Add(-b.ents[victim].Load().bytes())
	b.tags[victim].Store(0)
	b.ents[victim].Store(nil)
	if t.bytes.Load() >= t.maxBytes {
		return -1
	}
	return victim
}
