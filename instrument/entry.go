package instrument

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/stampede-exporter/stampede-exporter/internal/keyname"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// maxKeyText is the longest key kept whole; of a longer one only a prefix and
// hashes are kept.
const maxKeyText = 256

// Bounds on what one key may hold while it is busy. Each running recompute and
// each waiting reader is a goroutine of the application, which costs it more
// than it costs the monitor.
const (
	maxPending = 4096
	maxRunning = 4096
	maxClosed  = 4 * signal.MaxIntervals // before it is sampled down
)

// entry is what the monitor knows of one key.
type entry struct {
	hash   uint64
	size   int    // length of the key
	key    string // the key, or a prefix if size > maxKeyText
	wanted string // the group it belongs to, were there room for every group
	hits   atomic.Uint64
	wide   atomic.Pointer[wideCounter] // takes over from hits on a key that is very hot

	active *active     // the list of keys to flush; nil for the rest, which always is
	listed atomic.Bool // this one is on it
	below  *entry      // the next on it
	due    int64       // expiry by which coming knows this one, zero if it does not
	dueAt  int         // and its place there

	mu      sync.Mutex
	retired *wideCounter
	dead    bool   // no longer in the table
	sum     []byte // SHA-256 of salt and key, nil until it is needed
	group   *group
	life    life

	readers uint32 // between miss and value
	running uint32 // provoked recomputes
	waiting uint32 // for the lock
	holding uint32 // the lock
	heldAt  int64  // since when somebody has been holding it
	slots   []slot // recomputes, provoked or not; freed ones are reused
	free    []int32
	pending []pending // inferred misses nobody has claimed, oldest first

	lastRun  time.Duration // of the latest recompute that ended
	habit    habit
	lastTake int64 // end of the latest window
	urgentAt int64
	queued   bool
	delta    *signal.Window    // the open window; nil if nothing happened yet
	closed   []signal.Interval // recomputes that ended in it
	owed     []signal.Interval // likewise, that an earlier window said were running
	cut      uint64            // highest rank that is still of use; see finish
}

// slot is one running recompute.
type slot struct {
	id    uint64 // zero if free
	start int64
	cause signal.Cause
	told  bool // a window has said that it runs, and a later one must say that it ended
}

// pending is a miss that may turn out to be the start of a recompute.
type pending struct {
	ctx   context.Context // identifies the caller; nil if it cannot
	at    int64
	cause signal.Cause
	run   Run // the recompute it is presumed to be; see entry.naive
}

// newEntry makes the entry of a key that is not tracked yet.
func (m *Monitor) newEntry(hash uint64, key string) *entry {
	e := &entry{hash: hash, size: len(key), active: &m.active}
	if len(key) > maxKeyText {
		e.sum = m.keySum(key)
		key = key[:maxKeyText]
	}
	e.key = strings.Clone(key)
	e.wanted = m.groupOf(e.key)
	e.group = m.groups.resolve(e.wanted)
	return e
}

// groupOf names the key's group. The function that does is the application's:
// a panic in it must not become the panic of the call that is measured.
func (m *Monitor) groupOf(key string) (name string) {
	defer func() {
		if recover() != nil {
			name = otherGroup
		}
	}()
	return keyname.Safe(m.opt.Group(key))
}

func (m *Monitor) keySum(key string) []byte {
	sum := keyname.Sum(m.opt.Salt, key)
	return sum[:]
}

// is reports whether e is the entry of key. A key too long to keep is told by
// its length and 64-bit hash.
func (e *entry) is(hash uint64, key string) bool {
	return e.hash == hash && e.size == len(key) && (e.size > maxKeyText || e.key == key)
}

// bytes estimates the memory an idle or lightly used entry takes.
func (e *entry) bytes() int64 {
	return int64(unsafe.Sizeof(*e)) + int64(unsafe.Sizeof(signal.Window{})) + int64(len(e.key)) + 2*int64(unsafe.Sizeof(pending{}))
}

// idleSince reports whether e could be forgotten, and when it was last active.
// A lone reader who missed in an earlier window does not keep it: under a flood
// of keys that are read once and never stored, such entries are all there are.
func (e *entry) idleSince() (int64, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lastTake, e.idle()
}

// idle is idleSince with e.mu held.
func (e *entry) idle() bool {
	return e.delta == nil && e.idleRuns() && e.waiting == 0 && e.holding == 0 &&
		e.readers <= 1 && int(e.readers) == len(e.pending) && e.hits.Load() == 0 && e.wide.Load() == nil
}

// busy reports whether the next flush must look at e even if nothing happens
// until then: to tell of those who wait and work, or to find out how to count
// hits. e.mu is held.
func (e *entry) busy() bool {
	return e.readers > 0 || !e.idleRuns() || e.waiting > 0 || e.holding > 0 || len(e.pending) > 0 ||
		e.wide.Load() != nil || e.retired != nil
}

// idleRuns reports whether no explicit recompute runs. e.mu is held.
func (e *entry) idleRuns() bool { return len(e.slots) == len(e.free) && e.running == 0 }

// kill marks e as forgotten, for good, unless it has become busy.
func (e *entry) kill() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dead = e.idle()
	if e.dead {
		e.active.add(e) // for its expiry to be forgotten
	}
	return e.dead
}

// isRest reports whether e stands for every key there was no room for: it has
// no key, no life and no concurrency of its own.
func (e *entry) isRest() bool { return e.hash == 0 }

// groupName returns the name of e's group. e.mu is held.
func (e *entry) groupName() string { return e.group.totals.Group }

// open returns the window that events at now count in. e.mu is held.
func (e *entry) open(now int64) *signal.Window {
	if e.delta == nil {
		if !e.isRest() {
			e.active.add(e)
		}
		e.delta = &signal.Window{Start: signal.Nanos(now), MissPeak: e.readers, InFlightPeak: e.running}
		e.delta.Locks.WaitPeak = e.waiting
	}
	return e.delta
}

// lockEntry returns the locked entry of key, tracking the key if there is room,
// else the locked entry that stands for the rest.
func (m *Monitor) lockEntry(key string) *entry {
	hash := m.hash(key)
	for range 3 {
		e := m.table.find(hash, key)
		if e == nil {
			e = m.table.insert(hash, key, func() *entry { return m.newEntry(hash, key) })
		}
		if e == nil {
			break
		}
		e.mu.Lock()
		if !e.dead {
			return e
		}
		e.mu.Unlock()
	}
	m.overflowed.Add(1)
	m.rest.mu.Lock()
	return m.rest
}

// id returns the key's fleet-wide id. e.mu is held.
func (m *Monitor) id(e *entry) signal.KeyID {
	if e.sum == nil {
		e.sum = m.keySum(e.key)
	}
	return keyname.ID([sha256.Size]byte(e.sum))
}
