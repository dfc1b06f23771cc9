package instrument

import "sync/atomic"

// active is the list of the keys that a flush has to look at: those on which
// something was counted since the last one, and those on which somebody works or
// waits. All others, and there may be a hundred thousand, cost a flush nothing.
//
// It is a stack on which anybody puts a key without a lock, and which only a
// flush empties, all of it at once; so no key can come back to the top between a
// reader's look and its exchange.
type active struct{ top atomic.Pointer[entry] }

// add puts e on the list, unless it is there.
func (a *active) add(e *entry) {
	if e.listed.Load() || !e.listed.CompareAndSwap(false, true) {
		return
	}
	for {
		e.below = a.top.Load()
		if a.top.CompareAndSwap(e.below, e) {
			return
		}
	}
}

// each empties the list and calls f for every key that was on it. A key is off
// the list before f looks at it, so that what happens to it from then on puts it
// on again.
func (a *active) each(f func(*entry)) {
	e := a.top.Swap(nil)
	for e != nil {
		below := e.below
		e.below = nil
		e.listed.Store(false)
		f(e)
		e = below
	}
}
