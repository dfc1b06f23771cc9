package goredis

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stampede-exporter/stampede-exporter/instrument"
)

// attempted counts a try to take a lock that the server answered.
func (h *Hook) attempted(c *call, guards string, acquired bool, x expiry) {
	if c.err != nil && !isNil(c.err) {
		return
	}
	h.m.LockAttempt(guards, acquired)
	token, ok := text(c.args[2])
	now := h.opt.Now()
	h.locks.sweep(now)
	if acquired && ok && !x.past {
		h.locks.take(h.id(c.key), held{
			hold:  h.m.LockHold(guards),
			token: h.id(token),
			life:  x.left(now),
		}, now)
	}
}

// script takes EVAL and EVALSHA: script, number of keys, keys, arguments.
func (h *Hook) script(c *call) {
	if h.locks.none() || len(c.args) < 5 {
		return
	}
	n, ok := integer(c.args[2])
	if !ok || n < 1 || n > int64(len(c.args)-4) {
		return
	}
	key, ok := text(c.args[3])
	if !ok {
		return
	}
	reply, known := number(c.cmd, c.err)
	if c.err != nil && !known {
		return // NOSCRIPT, or no answer at all: nothing happened, or nobody knows
	}
	gone := known && reply <= 0
	args := c.args[3+n:]
	for _, arg := range args {
		token, ok := text(arg)
		if !ok {
			continue
		}
		if len(args) > 1 && !gone {
			h.locks.prolong(h.id(key), h.id(token), h.opt.Now())
		} else {
			h.locks.release(h.id(key), h.id(token), gone)
		}
	}
}

// sweep gives up holds that nobody ended. It reads the clock only if there may
// be one.
func (h *Hook) sweep() {
	if h.locks.due.Load() != never {
		h.locks.sweep(h.opt.Now())
	}
}

// held is one lock somebody in this process holds.
type held struct {
	hold  instrument.Hold
	token uint64
	life  time.Duration // as it was taken; zero if it does not expire
	ends  time.Time     // zero if it does not expire
}

// late returns when the holder has not been heard of for too long: it gets as
// long again as the lock lives, and a second at least.
func (l held) late() time.Time { return l.ends.Add(max(l.life, time.Second)) }

// extend gives the lock a new life from now.
func (l *held) extend(life time.Duration, now time.Time) {
	l.life, l.ends = life, time.Time{}
	if life > 0 && life < forever {
		l.ends = now.Add(life)
	}
}

// locks are the held locks by key. A key has more than one holder when a lock
// expired under the first.
type locks struct {
	max      int
	declared bool         // that a key is a lock is not a guess
	due      atomic.Int64 // no hold is late before; Unix nanoseconds

	mu     sync.Mutex
	byKey  map[uint64][]held
	length atomic.Int64 // holds in byKey
}

const (
	never   = math.MaxInt64
	forever = 10 * 365 * 24 * time.Hour // sums of longer lives would overflow
)

func newLocks(limit int, declared bool) *locks {
	l := &locks{max: limit, declared: declared, byKey: make(map[uint64][]held)}
	l.due.Store(never)
	return l
}

func (l *locks) none() bool { return l.length.Load() == 0 }

// take notes that a lock was taken.
func (l *locks) take(key uint64, h held, now time.Time) {
	h.extend(h.life, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.length.Load() >= int64(l.max) {
		l.giveUpOneLocked()
	}
	l.byKey[key] = append(l.byKey[key], h)
	l.length.Add(1)
	l.expectLocked(h)
}

// giveUpOneLocked makes room. Which one does not matter: a map's order is
// random, and locks that are released soon are seldom the one.
func (l *locks) giveUpOneLocked() {
	for key := range l.byKey {
		l.endLocked(key, 0, false)
		return
	}
}

// release ends the hold of key with token. gone says that the server found the
// lock expired or somebody else's.
func (l *locks) release(key, token uint64, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, h := range l.byKey[key] {
		if h.token == token {
			l.endLocked(key, i, gone)
			return
		}
	}
}

// drop ends the oldest hold of key, by a deletion that compares no token.
func (l *locks) drop(key uint64, gone bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if hs := l.byKey[key]; len(hs) > 0 {
		expired := !hs[0].ends.IsZero() && now.After(hs[0].ends)
		l.endLocked(key, 0, gone || expired)
	}
}

// renew gives whoever holds key a new life.
func (l *locks) renew(key uint64, x expiry, now time.Time) {
	switch {
	case x.over(now):
		l.drop(key, false, now)
		return
	case x.Keep || x == unknownExpiry:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	hs := l.byKey[key]
	for i := range hs {
		hs[i].extend(x.left(now), now)
		l.expectLocked(hs[i])
	}
}

// prolong gives the hold of key with token its life again, which is what
// renewing scripts do: how their arguments say so is their own affair.
func (l *locks) prolong(key, token uint64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hs := l.byKey[key]
	for i := range hs {
		if hs[i].token == token {
			hs[i].extend(hs[i].life, now)
			l.expectLocked(hs[i])
		}
	}
}

// sweep gives up holds that are late at now.
func (l *locks) sweep(now time.Time) {
	if now.UnixNano() < l.due.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due.Store(never)
	for key := range l.byKey {
		for i := len(l.byKey[key]) - 1; i >= 0; i-- {
			switch h := l.byKey[key][i]; {
			case h.ends.IsZero():
			case now.After(h.late()):
				l.endLocked(key, i, l.declared)
			default:
				l.expectLocked(h)
			}
		}
	}
}

// expectLocked makes sure that h is looked at when it is late.
func (l *locks) expectLocked(h held) {
	if !h.ends.IsZero() {
		l.due.Store(min(l.due.Load(), h.late().UnixNano()))
	}
}

// endLocked ends the i-th hold of key.
func (l *locks) endLocked(key uint64, i int, lost bool) {
	hs := l.byKey[key]
	hs[i].hold.Release(lost)
	if len(hs) == 1 {
		delete(l.byKey, key)
	} else {
		l.byKey[key] = slices.Delete(hs, i, i+1)
	}
	l.length.Add(-1)
}
