package live

import (
	"crypto/rand"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// release deletes a lock if it still has the token it was taken with.
var release = redis.NewScript(`
if redis.call("get", KEYS[1]) == ARGV[1] then
	return redis.call("del", KEYS[1])
end
return 0`)

// hold is a lock, or a lease, that a request took.
type hold struct {
	q     *request
	token string
	lease bool
	held  instrument.Hold // of a lease; the hook follows locks
	timer *time.Timer     // the end of its time
}

// holds is what the rig knows of the lock of one key. It is guarded by Rig.mu.
type holds struct {
	holder *hold // who has it, or had it when its time was not over
	waits  int   // readers who wait for it
	doomed bool  // the next holder dies
	down   time.Duration
}

// guard takes q through what holds back all but one in the fleet, and reports
// whether it has a value.
func (q *request) guard() bool {
	if q.protect()&(scenario.ProtectLock|scenario.ProtectLease) == 0 {
		return q.try()
	}
	if q.take() {
		return q.locked()
	}
	cfg := &q.e.c.cfg
	wait := cfg.Lock.Wait
	if q.protect().Has(scenario.ProtectLease) {
		wait = scenario.WaitStale
	}
	switch {
	case q.background || wait == scenario.WaitNotFound:
		return false
	case wait == scenario.WaitStale && q.old():
		q.monitor().Stale(q.e.key)
		q.p.r.staleInstead()
		return true
	default:
		return q.park()
	}
}

// take tries to take the lock of q's key.
func (q *request) take() bool {
	p, e := q.p, q.e
	h := &hold{q: q, token: rand.Text(), lease: q.protect().Has(scenario.ProtectLease)}
	rdb, ttl := p.hooked[e.c.index], e.c.cfg.Lock.TTL
	if h.lease { // it is not given back, which a hook would take for a loss
		rdb, ttl = p.plain, e.c.cfg.Lease.Every
	}
	err := rdb.SetArgs(p.ctx, e.lock, h.token, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		p.r.fail(p.ctx, "take a lock", err)
		return false
	}
	if h.lease {
		q.monitor().LockAttempt(e.key, err == nil)
	}
	if err != nil {
		return false
	}
	if h.lease {
		h.held = q.monitor().LockHold(e.key)
	}
	q.hold = h
	h.taken(ttl)
	return true
}

// taken notes that h has the lock for ttl.
func (h *hold) taken(ttl time.Duration) {
	q, e, r := h.q, h.q.e, h.q.p.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if before := e.holds.holder; before != nil { // the server is the first to know
		before.expiredLocked()
	}
	e.holds.holder = h
	h.timer = time.AfterFunc(ttl, h.expire)
	if e.holds.doomed {
		e.holds.doomed = false
		down := e.holds.down
		r.work.Go(func() {
			if pause(q.p.ctx, e.c.effort.Typical/2) && r.holds(h) {
				r.killHolder(e, down)
			}
		})
	}
}

// holds reports whether h has its lock, as far as is known.
func (r *Rig) holds(h *hold) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return h.q.e.holds.holder == h
}

// expire is the end of the lock's time, if its holder still has it.
func (h *hold) expire() {
	r := h.q.p.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.q.e.holds.holder == h && r.ctx.Err() == nil {
		h.expiredLocked()
	}
}

// expiredLocked notes that the lock's time is over and its holder still has it.
// Rig.mu is held.
func (h *hold) expiredLocked() {
	e, r := h.q.e, h.q.p.r
	e.holds.holder = nil
	r.account.LockExpired(r.now(), e.c.name, e.text, h.q.p.ctx.Err() != nil, e.holds.waits)
}

// locked does q's work under the lock it has, and gives it back.
func (q *request) locked() bool {
	defer q.release()
	if !q.background { // somebody may have been faster since q missed
		if v, found, err := get(q.p.ctx, q.p.plain, q.e); err == nil && found && v.expiry > q.p.r.now() {
			return q.lookAgain()
		}
	}
	return q.try()
}

// release gives the lock back, unless q's process is dead.
func (q *request) release() {
	h, e, p := q.hold, q.e, q.p
	q.hold = nil
	if p.ctx.Err() != nil {
		return
	}
	h.timer.Stop()
	p.r.mu.Lock()
	if e.holds.holder == h {
		e.holds.holder = nil
	}
	p.r.mu.Unlock()
	own := true
	if h.lease {
		own = q.owns(h)
		h.held.Release(!own)
	} else {
		n, err := release.Run(p.ctx, p.hooked[e.c.index], []string{e.lock}, h.token).Int()
		p.r.fail(p.ctx, "release a lock", err)
		own = n > 0
	}
	if !own && p.ctx.Err() == nil {
		p.r.tell(func(now int64, a *rig.Account) { a.LockLost(now, e.c.name, e.text) })
	}
}

// owns reports whether the server says that the lock is h's.
func (q *request) owns(h *hold) bool {
	token, err := q.p.plain.Get(q.p.ctx, q.e.lock).Result()
	if errors.Is(err, redis.Nil) {
		return false
	}
	q.p.r.fail(q.p.ctx, "look at a lock", err)
	return err != nil || token == h.token
}

// mayStore reports whether q may write its value: not if it has lost a lock that
// somebody checks. The check and the write are two commands, so that the hook
// sees the write; a lock that is lost in between is lost a moment too late.
func (q *request) mayStore() bool {
	return q.hold == nil || !q.hold.lease && !q.e.c.cfg.Lock.Fenced || q.owns(q.hold)
}

// old reports whether there is a value that may be served, at least as stale.
func (q *request) old() bool {
	_, found, err := get(q.p.ctx, q.p.plain, q.e)
	q.p.r.fail(q.p.ctx, "look for an old value", err)
	return found
}

// lookAgain is the second look of a reader who has reason to hope.
func (q *request) lookAgain() bool {
	p, e := q.p, q.e
	if e.c.soft() {
		q.monitor().Hit(e.key)
		p.r.again()
		return true
	}
	_, found, err := get(p.ctx, p.hooked[e.c.index], e)
	p.r.fail(p.ctx, "look again", err)
	switch {
	case err != nil:
	case found:
		p.r.again()
	default: // it has expired in the meantime
		p.r.missedAgain()
	}
	return found
}

// missedAgain notes that a read that had missed found nothing at its second look.
func (r *Rig) missedAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.Misses++
}
