package otlp

import (
	"sync"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// item is a queued record: one of its fields is set.
type item struct {
	window *signal.Window
	vitals *signal.Vitals
}

// maxBatchIntervals bounds the recomputes one batch tells of, so that a batch of
// merged windows stays small enough for a receiver's limit on a request.
const maxBatchIntervals = 1 << 16

// queue is a ring of fixed size. When it is full the oldest record makes room:
// during an incident the newest say most. It is safe for concurrent use, and
// holds its lock only to copy pointers.
type queue struct {
	mu     sync.Mutex
	ring   []item // grows to size by doubling, so that a quiet process pays little
	size   int
	head   int // index of the oldest
	n      int
	closed bool
}

const initialRing = 64

func newQueue(size int) *queue {
	return &queue{ring: make([]item, min(size, initialRing)), size: size}
}

// push adds it and returns how many records wait now, and how many were lost to
// it: the oldest if the queue is full, it if the queue is closed.
func (q *queue) push(it item) (n int, lost uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return q.n, 1
	}
	if q.n == len(q.ring) {
		if q.n == q.size {
			q.popLocked()
			lost = 1
		} else {
			q.growLocked()
		}
	}
	q.ring[(q.head+q.n)%len(q.ring)] = it
	q.n++
	return q.n, lost
}

// take moves up to limit of the oldest records to dst.
func (q *queue) take(dst []item, limit int) []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	intervals := 0
	for i := 0; i < limit && q.n > 0; i++ {
		if w := q.ring[q.head].window; w != nil {
			intervals += len(w.Intervals)
		}
		if i > 0 && intervals > maxBatchIntervals {
			break
		}
		dst = append(dst, q.popLocked())
	}
	return dst
}

// close makes push refuse from now on. What is queued stays.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// clear empties the queue and returns how many records that cost.
func (q *queue) clear() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.n
	clear(q.ring)
	q.head, q.n = 0, 0
	return n
}

// len returns how many records wait.
func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}

func (q *queue) popLocked() item {
	it := q.ring[q.head]
	q.ring[q.head] = item{}
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return it
}

func (q *queue) growLocked() {
	ring := make([]item, min(2*len(q.ring), q.size))
	k := copy(ring, q.ring[q.head:])
	copy(ring[k:], q.ring[:q.head])
	q.ring, q.head = ring, 0
}
