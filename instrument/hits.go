package instrument

import (
	"sync"
	"sync/atomic"
)

// stripes is over how many counters hits are spread that would otherwise meet
// on one.
const stripes = 64

// counter is alone on its cache line, so that cores that add to different ones
// do not slow each other down.
type counter struct {
	n atomic.Uint64
	_ [56]byte
}

// wideCounter counts the hits of one very hot key, or of all keys that are not
// tracked.
type wideCounter [stripes]counter

// veryHot is how many hits a key must have between two flushes to be given a
// wide counter, which takes 4 KiB; it loses it again below a tenth of that.
const veryHot = 20_000

func (w *wideCounter) inc() {
	t := tokens.Get().(*token)
	w[t.stripe].n.Add(1)
	tokens.Put(t)
}

// A token names a stripe. A pool keeps what was put into it by one processor for
// that processor, so each of them comes to add to a stripe of its own, whose
// line stays in its cache. Picking stripes at random would have each find the
// line in another's.
type token struct{ stripe uint32 }

var (
	issued atomic.Uint32
	tokens = sync.Pool{New: func() any { return &token{issued.Add(1) % stripes} }}
)

// take returns the count and starts anew.
func (w *wideCounter) take() uint64 {
	var n uint64
	for i := range w {
		if w[i].n.Load() != 0 {
			n += w[i].n.Swap(0)
		}
	}
	return n
}

func (e *entry) hit() {
	if w := e.wide.Load(); w != nil {
		w.inc()
		return
	}
	if e.hits.Add(1) == 1 {
		e.active.add(e)
	}
}

// takeHits returns the hits since the last call, and decides how the next ones
// are counted. A wide counter that is no longer wanted is read once more at the
// next flush, for hits that were on their way to it. e.mu is held.
func (e *entry) takeHits() uint64 {
	var n uint64
	if e.hits.Load() != 0 {
		n = e.hits.Swap(0)
	}
	if e.retired != nil {
		n += e.retired.take()
		e.retired = nil
	}
	w := e.wide.Load()
	if w != nil {
		n += w.take()
	}
	switch {
	case w == nil && n >= veryHot:
		e.wide.Store(new(wideCounter))
	case w != nil && n < veryHot/10:
		e.wide.Store(nil)
		e.retired = w
	}
	return n
}
