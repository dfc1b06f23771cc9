package keyspace

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// freshLock is how long after a lock was taken a time to live set on it is the
// one it is taken with, in a command of its own, and no renewal.
const freshLock = 50 * time.Millisecond

// maxTakes bounds how many holders of one lock are remembered that have not
// stored a value yet.
const maxTakes = 16

// lockState is what is known of the lock that guards a key.
type lockState struct {
	heldAt  signal.Nanos // since when it is held; zero if it is not
	renewed bool         // its holder has given it more time: it is alive
	served  bool         // the key was stored since it was taken
	// takes are when it was taken by those who have not stored a value yet,
	// oldest first: a holder that lost it may still.
	takes []signal.Nanos
}

// answer returns when the lock was taken under which the recompute ran that a
// reader who missed at missed has ended now, and how many such recomputes run;
// zero if it ran under none.
func (s *lockState) answer(missed signal.Nanos) (taken signal.Nanos, holders uint32) {
	for len(s.takes) > 0 && s.takes[0] < missed {
		s.takes = s.takes[1:] // by one who never stored anything
	}
	if len(s.takes) == 0 {
		return 0, 0
	}
	taken, holders = s.takes[0], uint32(len(s.takes))
	s.takes = s.takes[1:]
	return taken, holders
}

// lockEvent takes in what happened to a lock. It is told of the key it guards;
// if nobody knows which that is, of the lock itself.
func (l *Ledger) lockEvent(e Event, name, guarded string) {
	key := []byte(guarded)
	if guarded == "" {
		guarded, key = name, e.Key
	}
	taken := e.Kind == Store || e.Kind == Change
	if !taken && l.keys[guarded] == nil {
		return // of a lock that was taken before we looked, or of none
	}
	k := l.entry(e.At, guarded, key)
	if k == nil {
		return
	}
	switch s := &k.lock; {
	case taken:
		l.lockTaken(k, e.At)
	case e.Kind == Expire:
		s.renewed = s.renewed || s.heldAt != 0 && e.At.Sub(s.heldAt) > freshLock
	case e.Kind == Delete:
		l.lockFreed(k, e.At, false)
	case e.Kind == Expired || e.Kind == Evicted:
		l.lockFreed(k, e.At, !s.served)
	}
}

func (l *Ledger) lockTaken(k *entry, at signal.Nanos) {
	s := &k.lock
	if s.heldAt != 0 { // written again by who holds it
		s.renewed = true
		return
	}
	w := l.open(k, at)
	w.Locks.Attempts++
	w.Locks.Acquired++
	s.heldAt, s.renewed, s.served = at, false, false
	if len(s.takes) == maxTakes {
		s.takes = s.takes[1:]
	}
	s.takes = append(s.takes, at)
}

// lockFreed counts a hold that ended. One that the server ended before the key
// was stored is lost: its holder died, or works on without it.
func (l *Ledger) lockFreed(k *entry, at signal.Nanos, lost bool) {
	s := &k.lock
	if s.heldAt == 0 {
		return
	}
	held := at.Sub(s.heldAt)
	w := l.open(k, at)
	w.Locks.Holds++
	w.Locks.HoldSum += held
	w.Locks.HoldMax = max(w.Locks.HoldMax, held)
	if lost {
		w.Locks.Lost++
	} else if n := len(s.takes); n > 0 && s.takes[n-1] == s.heldAt {
		s.takes = s.takes[:n-1] // its holder is done, whether it stored or found that it need not
	}
	s.heldAt, s.renewed, s.served = 0, false, false
}

// tellLock says in a window how the lock stands. Who holds it
// cannot be seen, so a hold counts as one only if its holder has renewed it;
// that readers wait shows in that they go on missing the key.
func (k *entry) tellLock(w *signal.Window) {
	s, readers := &k.lock, k.crowd.take()
	if s.heldAt == 0 {
		return
	}
	if s.renewed {
		w.Locks.Held, w.Locks.HeldSince = 1, s.heldAt
	}
	if k.present || len(k.misses) == 0 || k.misses[len(k.misses)-1] <= s.heldAt {
		return
	}
	if w.Lookups.Misses > 0 {
		w.Locks.Waiting = max(1, readers)
		w.Locks.WaitPeak = w.Locks.Waiting
	}
}
