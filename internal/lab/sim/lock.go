package sim

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// lock guards the recomputes of one key in the whole fleet; a lease is a lock
// that is handed out at a bounded rate. It lives on the cache's server, so it is
// on the true clock.
type lock struct {
	holder *request // nil if nobody holds it
	token  uint64   // of the latest that was handed out, or made void
	open   int64    // when the next may be handed out
	queue  []*request
	waits  int  // of queue, those that still wait
	left   bool // holder is done and has not given it back

	doomed  bool          // the next holder dies
	downFor time.Duration // and its process stays away for so long
}

// guard takes r through what holds back all but one in the fleet.
func (s *Sim) guard(r *request) {
	if r.protect()&(scenario.ProtectLock|scenario.ProtectLease) == 0 || s.take(r) {
		s.try(r)
		return
	}
	cfg, m := &r.e.c.cfg, r.monitor()
	wait := cfg.Lock.Wait
	if r.protect().Has(scenario.ProtectLease) {
		wait = scenario.WaitStale
	}
	switch {
	case r.background:
		s.abandon(r)
	case wait == scenario.WaitStale && r.e.usable(s.now):
		m.Stale(r.e.text)
		s.account.StaleInstead()
		s.finish(r, true)
	case wait == scenario.WaitNotFound:
		s.finish(r, false)
	default:
		l := &r.e.lock
		r.parked, r.queued = m.LockWait(r.e.text), true
		l.queue = append(l.queue, r)
		l.waits++
		s.account.parked(r.e, l.waits)
		s.after(cfg.Client.Timeout, patience{r})
	}
}

// take tries to take the lock of r's key.
func (s *Sim) take(r *request) bool {
	l, m := &r.e.lock, r.monitor()
	free := l.holder == nil && s.now >= l.open
	m.LockAttempt(r.e.text, free)
	if !free {
		return false
	}
	l.token++
	l.holder, l.left, r.token = r, false, l.token
	r.hold = m.LockHold(r.e.text)
	ttl := r.e.c.cfg.Lock.TTL
	if r.protect().Has(scenario.ProtectLease) {
		ttl = r.e.c.cfg.Lease.Every
	}
	l.open = s.now + int64(ttl)
	s.after(ttl, lockExpiry{r.e, l.token})
	if l.doomed {
		l.doomed = false
		s.after(r.e.c.effort.Typical/2, murder{r.e, l.token, l.downFor})
	}
	return true
}

// lockExpiry is the end of a lock's time to live.
type lockExpiry struct {
	e     *entry
	token uint64
}

func (x lockExpiry) run(s *Sim) {
	l := &x.e.lock
	if l.token != x.token {
		return // released, or void, and maybe somebody else's by now
	}
	if l.holder != nil {
		s.account.lockExpired(x.e, l.left || l.holder.p.dead, l.waits)
		l.holder = nil
		l.token++ // whoever comes back with the old one has lost it
	}
	s.wake(x.e)
}

// lost reports whether the lock that r took is no longer its own.
func (r *request) lost() bool { return r.token != 0 && r.e.lock.token != r.token }

// leaves reports whether a holder of c's locks that is done, for better or
// worse, does not give its lock back.
func (c *cache) leaves(good bool) bool {
	rule := c.cfg.Lock.Release
	return rule == scenario.ReleaseNever || rule == scenario.ReleaseOnSuccess && !good
}

// release gives back the lock that r took, if it did. One that is left behind
// its process believes to have given back.
func (s *Sim) release(r *request, good bool) {
	if r.token == 0 {
		return
	}
	l, lost := &r.e.lock, r.lost()
	r.hold.Release(lost)
	r.token = 0
	if lost {
		s.account.LockLost(s.now, r.e.c.name, r.e.text)
		return
	}
	if r.protect().Has(scenario.ProtectLock) && r.e.c.leaves(good) {
		l.left = true
		s.account.LockLeft(s.now, r.e.c.name, r.e.text)
		return
	}
	l.holder = nil
	if r.protect().Has(scenario.ProtectLock) {
		l.token++
		l.open = s.now
		s.wake(r.e)
	}
}

// wake lets the first who waits for e's lock try again.
func (s *Sim) wake(e *entry) {
	l := &e.lock
	for len(l.queue) > 0 && !(e.c.cfg.Lock.Recheck && e.fresh(s.now)) {
		r := l.queue[0]
		l.queue = l.queue[1:]
		if r.over || r.p.dead || !r.queued {
			continue
		}
		if !s.take(r) {
			l.queue = append([]*request{r}, l.queue...)
			return
		}
		s.unpark(r)
		s.try(r)
		return
	}
}

// unpark ends r's wait for the lock.
func (s *Sim) unpark(r *request) {
	if r.queued {
		r.queued = false
		r.e.lock.waits--
		s.account.unparked(r.e, r.e.lock.waits)
		r.parked.Done()
	}
}

// serve answers all who wait for e's lock, and look, with what is there now.
func (s *Sim) serve(e *entry) {
	if !e.c.cfg.Lock.Recheck {
		return
	}
	l := &e.lock
	queue := l.queue
	l.queue = nil
	for _, r := range queue {
		if r.over || r.p.dead || !r.queued {
			continue
		}
		r.monitor().Hit(e.text) // it looks again
		s.finish(r, !e.failure)
	}
}

// mayStore reports whether r may write its value: not if it has lost a lock that
// somebody checks.
func (r *request) mayStore() bool {
	return !r.lost() || !r.protect().Has(scenario.ProtectLease) && !r.e.c.cfg.Lock.Fenced
}
