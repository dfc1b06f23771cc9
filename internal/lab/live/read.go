package live

import (
	"sync/atomic"
	"time"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// request is what a process does about a value that is missing or due: a reader
// who found nothing, or work in the background.
type request struct {
	p          *process
	e          *entry
	at         time.Time // of the lookup
	background bool      // nobody waits for it
	cause      signal.Cause
	lead       time.Duration // for CauseEarly: to the expiry
	acted      time.Duration // for CauseEarly: the recompute time it acted on
	tries      int
	hold       *hold // the lock it has; nil: none
}

func (q *request) monitor() *instrument.Monitor { return q.p.monitors[q.e.c.index] }

func (q *request) protect() scenario.Protections { return q.e.c.cfg.Protect }

// read is one read of e at p, and what it sets off.
func (p *process) read(e *entry) {
	c := e.c
	rdb := p.hooked[c.index]
	if c.soft() {
		rdb = p.plain
	}
	at, asked := time.Now(), p.r.now()
	v, found, err := get(p.ctx, rdb, e)
	if err != nil {
		p.r.fail(p.ctx, "read", err)
		return
	}
	m, left := p.monitors[c.index], time.Duration(v.expiry-p.r.now())
	switch {
	case found && (left > 0 || !c.soft()):
		if c.soft() {
			m.Hit(e.key)
		}
		p.r.hit()
		p.maybeEarly(e, v, left)
	case found && c.cfg.Protect.Has(scenario.ProtectSWR):
		m.Stale(e.key)
		p.r.staleHit()
		p.background(&request{e: e, cause: signal.CauseUnknown})
	default:
		var wait instrument.Wait // the hook's business, unless there is none
		if c.soft() {
			wait = m.Miss(e.key)
		}
		since := p.r.miss(e, asked)
		good := (&request{p: p, e: e, at: at}).admit()
		wait.Done()
		if p.ctx.Err() == nil {
			p.r.tell(func(now int64, a *rig.Account) { a.Answer(now, since, good) })
		}
	}
}

// background does work that nobody waits for.
func (p *process) background(q *request) {
	q.p, q.at, q.background = p, time.Now(), true
	q.admit()
}

// maybeEarly refreshes ahead of expiry if it is due, or luck has it.
func (p *process) maybeEarly(e *entry, v envelope, left time.Duration) {
	cfg := &e.c.cfg
	q := &request{e: e, cause: signal.CauseEarly, lead: max(0, left)}
	due := false
	if cfg.Protect.Has(scenario.ProtectXFetch) {
		q.acted = v.delta
		if cfg.XFetch.Clamp > 0 {
			q.acted = min(q.acted, cfg.XFetch.Clamp)
		}
		p.r.tell(func(int64, *rig.Account) { due = rig.Volunteers(left, q.acted, cfg.XFetch.Beta, p.r.choices) })
	}
	if !due && cfg.Protect.Has(scenario.ProtectRefreshAhead) {
		q.acted = 0
		due = float64(left) <= cfg.RefreshAhead.Ratio*float64(v.expiry-v.storedAt)
	}
	if due {
		p.background(q)
	}
}

// admit takes q through what holds back all but one in a process, and reports
// whether it has a value.
func (q *request) admit() bool {
	// A refresh in the background that is not a matter of luck is made by one
	// at a time, as libraries do.
	single := q.protect().Has(scenario.ProtectSingleFlight) ||
		q.background && (q.cause != signal.CauseEarly || q.acted == 0)
	if !single {
		return q.guard()
	}
	var led atomic.Bool
	done := q.p.flights.DoChan(q.e.text, func() (any, error) {
		led.Store(true)
		return q.guard(), nil
	})
	patience := time.NewTimer(q.e.c.cfg.Client.Timeout)
	defer patience.Stop()
	for {
		select {
		case res := <-done:
			q.landed(&led)
			return res.Val.(bool)
		case <-patience.C: // who leads has a patience of its own
			if !led.Load() {
				q.p.r.work.Go(func() {
					<-done
					q.landed(&led)
				})
				return false
			}
		}
	}
}

// landed is the end of a flight. The library tells only then who led it.
func (q *request) landed(led *atomic.Bool) {
	if led.Load() || q.background {
		return
	}
	q.monitor().Follow(q.e.key).Done()
	q.p.r.mu.Lock()
	defer q.p.r.mu.Unlock()
	q.p.r.tally.Follows++
}
