package live

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// attempt is one call of the origin.
type attempt struct {
	q      *request
	at     int64      // when it was made
	answer chan reply // of the origin; has room for it

	over  atomic.Bool // its caller has an answer, or has given up
	mu    sync.Mutex  // so that it does not begin when it is over
	began bool        // as a recompute; see begin
	run   instrument.Run
}

// reply is what comes of an attempt.
type reply uint8

const (
	replyValue  reply = iota
	replyFailed       // the origin failed
	replyServed       // there was a value by the time it had a slot
)

// try calls the origin until it answers or the attempts are used up, and reports
// whether q has a value.
func (q *request) try() bool {
	client := &q.e.c.cfg.Client
	for {
		q.tries++
		good, retry := q.call()
		if good || !retry {
			return good
		}
		if client.DeleteOnError {
			q.p.invalidate(q.e)
		}
		last := q.tries >= client.Attempts
		q.p.r.tell(func(_ int64, a *rig.Account) { a.CallFailed(last) })
		if last || !pause(q.p.ctx, q.backoff()) {
			return false
		}
	}
}

// backoff draws the pause after a failed attempt.
func (q *request) backoff() (d time.Duration) {
	pause := float64(q.e.c.cfg.Client.Backoff) * float64(uint64(1)<<min(q.tries-1, 32))
	q.p.r.tell(func(int64, *rig.Account) {
		d = time.Duration(min(pause, float64(time.Hour)) * (0.5 + q.p.r.choices.Float64()))
	})
	return d
}

// call makes one attempt. good says that q has a value, retry that another
// attempt may help.
func (q *request) call() (good, retry bool) {
	c, p := q.e.c, q.p
	a := &attempt{q: q, at: p.r.attempted(q), answer: make(chan reply, 1)}
	if !c.origin.cfg.Recheck {
		a.begin()
	}
	deadline := time.NewTimer(c.cfg.Client.Timeout)
	defer deadline.Stop()
	if !c.origin.submit(a) {
		// The origin says not to come again, and clients do as they are told.
		p.r.tell(func(_ int64, acc *rig.Account) {
			acc.Refused()
			acc.CallFailed(true)
		})
		a.settle()
		a.end(signal.OutcomeFailed)
		return false, false
	}
	outcome := signal.OutcomeTimedOut
	select {
	case x := <-a.answer:
		return a.take(x)
	case <-deadline.C:
	case <-p.ctx.Done():
		outcome = signal.OutcomeCancelled
	}
	if !a.settle() { // the answer came at that very moment
		return a.take(<-a.answer)
	}
	a.end(outcome)
	return false, p.ctx.Err() == nil
}

// begin is the start of the recompute as the application sees it: as soon as it
// misses, or, if it looks again once it has a slot, then. It reports whether
// somebody still waits for it.
func (a *attempt) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over.Load() {
		return false
	}
	q, m := a.q, a.q.monitor()
	if q.cause == signal.CauseEarly && q.tries == 1 {
		m.EarlyRefresh(q.e.key, q.lead, q.acted)
	}
	a.run = m.Begin(q.e.key, instrument.Start{Cause: q.cause, LookedUp: q.at, Attempt: q.tries})
	a.began = true
	q.p.r.began(a)
	return true
}

// settle ends the wait for a, and reports whether it was not over before.
func (a *attempt) settle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.over.Swap(true)
}

// end is the end of the recompute, if it had begun. a is over.
func (a *attempt) end(o signal.Outcome) {
	if a.began {
		a.q.p.r.ended(a, o)
		a.run.End(o)
	}
}

// take makes of the origin's answer what a caller does.
func (a *attempt) take(x reply) (good, retry bool) {
	q, r := a.q, a.q.p.r
	switch {
	case x == replyServed:
		return q.lookAgain(), false
	case x == replyFailed:
		a.end(signal.OutcomeFailed)
		return false, true
	case q.e.absent():
		r.tell(func(now int64, acc *rig.Account) { acc.Negative(now, q.e.c.name) })
		r.ended(a, signal.OutcomeOK)
		a.run.Negative()
		return true, false
	}
	if q.mayStore() {
		a.put()
	}
	a.end(signal.OutcomeOK)
	return true, false
}

// answered takes the origin's answer, whoever still waits for it.
func (a *attempt) answered(x reply) {
	q := a.q
	if a.settle() {
		a.answer <- x
		return
	}
	if x == replyValue && q.e.c.cfg.Client.FillLate && !q.e.absent() && q.p.ctx.Err() == nil {
		q.p.r.tell(func(_ int64, acc *rig.Account) { acc.LateFill() })
		a.put()
	}
}

// put stores the value that a made.
func (a *attempt) put() {
	q, c, p := a.q, a.q.e.c, a.q.p
	life := p.r.stores(q.e, a.at, 0)
	v, keep := c.value(life, time.Duration(p.r.now()-a.at))
	rdb := p.hooked[c.index]
	if c.soft() {
		rdb = p.plain
	}
	if err := rdb.Set(a.run.Context(p.ctx), q.e.key, v.String(), keep).Err(); err != nil {
		p.r.fail(p.ctx, "store a value", err)
		return
	}
	if c.soft() {
		a.run.Store(instrument.Expiry{TTL: life})
	}
	if c.cfg.Versioned {
		p.monitors[c.index].Version(q.e.key, uint64(a.at)+1)
	}
	p.r.stored()
}

// invalidate deletes e at p, for all to see.
func (p *process) invalidate(e *entry) {
	c := e.c
	rdb := p.hooked[c.index]
	if c.soft() {
		rdb = p.plain
		p.monitors[c.index].Invalidate(e.key)
	}
	p.r.tell(func(now int64, _ *rig.Account) { e.gone = now })
	p.r.fail(p.ctx, "delete a value", rdb.Del(p.ctx, e.key).Err())
}
