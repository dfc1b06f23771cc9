package keyspace

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// inferred is what a server's events do not tell of recomputes.
const inferred = signal.UnknownStarts | signal.UnknownCoalesced | signal.UnknownEarly | signal.UnknownRetries | signal.UnknownLocks

// settleAfter is how long after a store a miss that came before it may still
// turn out to be a recompute of its own; twice the longest recompute of the
// burst, if that is longer.
const settleAfter = time.Second

// maxClosed bounds the recomputes kept of one window before it is sampled down.
const maxClosed = 4 * signal.MaxIntervals

// entry is what is known of one key.
type entry struct {
	key   string // or what stands for it: see nameOf
	long  bool   // it stands for a longer one
	id    signal.KeyID
	group string
	text  string
	seen  signal.Nanos // when something last happened

	// present: a value is there, stored at storedAt. due is when it expires,
	// zero if that is not known. cause is why it is not there, if it is not.
	present  bool
	storedAt signal.Nanos
	due      signal.Nanos
	cause    signal.Cause

	// misses are readers that found nothing, oldest first, since the value
	// went. matched of them have stored one since; longest is the longest
	// recompute among those.
	misses  []signal.Nanos
	matched uint32
	longest time.Duration
	crowd   crowd

	lock  lockState
	asked bool // it is among Ledger.asked

	w      *signal.Window // nil if nothing happened since the last flush
	closed []signal.Interval
}

// open returns the window that what happens at at counts in. A window that has
// become too long is put aside.
func (l *Ledger) open(k *entry, at signal.Nanos) *signal.Window {
	k.seen = max(k.seen, at)
	if k.w != nil && at.Sub(k.w.Start) >= signal.MaxSpan {
		l.done = append(l.done, l.take(k, k.w.Start.Add(signal.MaxSpan)))
	}
	if k.w == nil {
		k.w = &signal.Window{Start: at, End: at, MissPeak: uint32(len(k.misses)), Unknown: inferred}
		l.active = append(l.active, k)
	}
	k.w.End = max(k.w.End, at)
	return k.w
}

// miss counts a reader that found nothing.
func (l *Ledger) miss(k *entry, at signal.Nanos) {
	if k.present {
		k.gone(l.vanished(k, at))
	}
	w := l.open(k, at)
	w.Lookups.Misses++
	k.crowd.add(at)
	if len(k.misses) < l.o.MaxMisses {
		k.misses = append(k.misses, at)
		l.waiting[k] = struct{}{}
	}
	w.MissPeak = max(w.MissPeak, uint32(len(k.misses)))
}

// vanished says why a value is gone that nobody was told of.
func (l *Ledger) vanished(k *entry, at signal.Nanos) signal.Cause {
	const slack = signal.MaxSpan // the time to live was counted from when we heard of it
	switch {
	case k.due != 0 && at >= k.due.Add(-slack):
		return signal.CauseExpired
	case k.due != 0 || l.o.Removals:
		return signal.CauseEvicted
	}
	return signal.CauseUnknown
}

// gone notes that the value went, and why. Readers that missed it before it was
// stored have got it, or have given up: whoever stores next missed later.
func (k *entry) gone(why signal.Cause) {
	if k.present || k.matched > 0 {
		k.misses, k.matched, k.longest = nil, 0, 0
	}
	k.present, k.due, k.cause = false, 0, why
}

// store counts a value written, and the recompute it ends, if there is a miss
// that it may answer.
func (l *Ledger) store(k *entry, e Event) {
	w := l.open(k, e.At)
	k.settle(e.At)
	if len(k.misses) > 0 {
		l.recomputed(k, w, e.At)
	}
	w.Stores.Count++
	l.counts.Work.Stores++
	k.present, k.storedAt, k.due = true, e.At, 0
	k.lock.served = k.lock.heldAt != 0 || k.lock.served
	if e.TTL != 0 {
		l.setLife(k, e)
	}
}

// settle gives up on misses that a store has answered which was not theirs.
func (k *entry) settle(now signal.Nanos) {
	if k.matched > 0 && now.Sub(k.storedAt) > max(settleAfter, 2*k.longest) {
		k.misses = nil
	}
}

// recomputed counts the recompute between the oldest open miss and a store at
// now. All misses of a burst come before its first store, or they would have
// been hits; so those recomputes all run at the instant before it. Under a lock
// a recompute begins when the lock was taken, and they run one after the other.
func (l *Ledger) recomputed(k *entry, w *signal.Window, now signal.Nanos) {
	start, running := k.misses[0], k.matched+1
	k.misses = k.misses[1:]
	if taken, holders := k.lock.answer(start); taken != 0 {
		start, running = taken, holders
	}
	k.matched++
	iv := signal.Interval{ID: l.nextID(), Start: min(start, now), End: now, Cause: k.cause, Outcome: signal.OutcomeOK}
	took := iv.End.Sub(iv.Start)
	k.longest = max(k.longest, took)
	l.count(w, iv)
	w.InFlightPeak = max(w.InFlightPeak, running)
	if k.matched > 1 {
		w.Duplicates++
		l.counts.Work.Duplicates++
		if k.storedAt != 0 && iv.Start >= k.storedAt {
			w.WhileFresh++
			l.counts.Work.WhileFresh++
		}
	}
	k.keep(w, iv)
	if !k.asked && !k.long {
		k.asked = true
		l.asked = append(l.asked, k)
	}
}

// count counts a recompute that ended.
func (l *Ledger) count(w *signal.Window, iv signal.Interval) {
	took := iv.End.Sub(iv.Start)
	w.Recomputes.Started[iv.Cause]++
	w.Recomputes.Ended[iv.Cause][iv.Outcome]++
	w.Busy += took
	w.BusyMax = max(w.BusyMax, took)
	t := &l.counts.Work
	t.Recomputes.Started[iv.Cause]++
	t.Recomputes.Ended[iv.Cause][iv.Outcome]++
	t.Busy += took
	t.Durations.Observe(took)
}

// keep keeps a recompute, or a sample of them if there are many.
func (k *entry) keep(w *signal.Window, iv signal.Interval) {
	k.closed = append(k.closed, iv)
	if len(k.closed) > maxClosed {
		k.closed = signal.SampleIntervals(k.closed, signal.MaxIntervals)
		w.Sampled = true
	}
}

// setLife notes when the value expires.
func (l *Ledger) setLife(k *entry, e Event) {
	if !k.present || e.TTL == 0 {
		return
	}
	s := &l.open(k, e.At).Stores
	if e.TTL < 0 {
		s.NoExpiry++
		return
	}
	k.due = e.At.Add(e.TTL)
	if e.Kind == Left {
		e.TTL = k.due.Sub(k.storedAt)
	}
	if s.ExpiryMin == 0 || k.due < s.ExpiryMin {
		s.ExpiryMin = k.due
	}
	s.ExpiryMax = max(s.ExpiryMax, k.due)
	if s.TTLMin == 0 || e.TTL < s.TTLMin {
		s.TTLMin = e.TTL
	}
	s.TTLMax = max(s.TTLMax, e.TTL)
}

func (l *Ledger) nextID() uint64 {
	l.ids++
	return l.ids
}

// crowd estimates how many readers wait for a key by how often it is missed: the
// misses of a tenth of a second, which is about how often a reader looks again
// who waits for somebody else's value.
type crowd struct {
	began signal.Nanos
	n     uint32 // since then
	most  uint32 // of any tenth since the estimate was last taken
}

const pollEvery = 100 * time.Millisecond

func (c *crowd) add(at signal.Nanos) {
	if at.Sub(c.began) >= pollEvery {
		c.began, c.n = at, 0
	}
	c.n++
	c.most = max(c.most, c.n)
}

// take returns the estimate, and begins another.
func (c *crowd) take() uint32 {
	n := c.most
	c.n, c.most = 0, 0
	return n
}
