package sim

import (
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
	at         int64 // of the lookup
	background bool  // nobody waits for it
	cause      signal.Cause
	lead       time.Duration // for CauseEarly: to the expiry, on the process's clock
	acted      time.Duration // for CauseEarly: the recompute time it acted on

	tries int
	over  bool
	leads *flight // that it has to end

	wait   instrument.Wait // of the reader
	follow instrument.Wait // for somebody else's recompute
	parked instrument.Wait // for the lock
	queued bool            // waits for the lock
	hold   instrument.Hold
	token  uint64 // of the lock it took; 0: none
	run    instrument.Run
}

func (r *request) monitor() *instrument.Monitor { return r.p.monitors[r.e.c.index] }

func (r *request) protect() scenario.Protections { return r.p.protect[r.e.c.index] }

// read is one read of e at p.
func (s *Sim) read(p *process, e *entry) {
	m, protect := p.monitors[e.c.index], p.protect[e.c.index]
	switch {
	case e.fresh(s.now) && e.failure:
		m.Hit(e.text) // the cache cannot tell
		s.account.FailureServed(s.now)
	case e.fresh(s.now):
		m.Hit(e.text)
		s.account.Hit(s.now)
		if protect&(scenario.ProtectXFetch|scenario.ProtectRefreshAhead) != 0 {
			s.maybeEarly(p, e, protect)
		}
	case protect.Has(scenario.ProtectSWR) && e.usable(s.now):
		m.Stale(e.text)
		s.account.Stale(s.now)
		s.background(p, e, signal.CauseUnknown)
	default:
		s.account.Miss(s.now)
		e.miss()
		r := &request{p: p, e: e, at: s.now, wait: m.Miss(e.text)}
		p.busy++
		s.admit(r)
	}
}

// background starts work that nobody waits for.
func (s *Sim) background(p *process, e *entry, c signal.Cause) {
	p.busy++
	s.admit(&request{p: p, e: e, at: s.now, background: true, cause: c})
}

// maybeEarly refreshes ahead of expiry if it is due, or luck has it.
func (s *Sim) maybeEarly(p *process, e *entry, protect scenario.Protections) {
	cfg := &e.c.cfg
	lead := e.written - (s.now + int64(p.skew))
	r := request{p: p, e: e, at: s.now, background: true, cause: signal.CauseEarly, lead: time.Duration(max(0, lead))}
	due := false
	if protect.Has(scenario.ProtectXFetch) {
		r.acted = time.Duration(e.delta)
		if cfg.XFetch.Clamp > 0 {
			r.acted = min(r.acted, cfg.XFetch.Clamp)
		}
		due = rig.Volunteers(time.Duration(lead), r.acted, cfg.XFetch.Beta, s.choices)
	}
	if !due && protect.Has(scenario.ProtectRefreshAhead) {
		r.acted = 0
		due = float64(e.expiry-s.now) <= cfg.RefreshAhead.Ratio*float64(e.expiry-e.storedAt) && e.flight(p) == nil
	}
	if due {
		p.busy++
		s.admit(&r)
	}
}

// flight is one process's recompute of one key, which others in it wait for.
type flight struct {
	p         *process
	followers []*request
}

// flight returns p's flight of e, or nil.
func (e *entry) flight(p *process) *flight {
	for _, f := range e.flights {
		if f.p == p {
			return f
		}
	}
	return nil
}

// admit takes r through what holds back all but one in a process.
func (s *Sim) admit(r *request) {
	// A refresh in the background that is not a matter of luck is made by one
	// at a time, as libraries do.
	single := r.protect().Has(scenario.ProtectSingleFlight) ||
		r.background && (r.cause != signal.CauseEarly || r.acted == 0)
	if single {
		f := r.e.flight(r.p)
		most := r.e.c.cfg.SingleFlight.Waiters
		switch {
		case f == nil:
			r.leads = &flight{p: r.p}
			r.e.flights = append(r.e.flights, r.leads)
		case r.background:
			s.abandon(r)
			return
		case most > 0 && len(f.followers) >= most: // no room: it sees for itself
		default:
			r.follow = r.monitor().Follow(r.e.text)
			f.followers = append(f.followers, r)
			s.after(r.e.c.cfg.Client.Timeout, patience{r})
			return
		}
	}
	s.guard(r)
}

// patience is the end of what a request waits for somebody else.
type patience struct{ r *request }

func (t patience) run(s *Sim) {
	if r := t.r; !r.over && !r.p.dead && r.tries == 0 && r.token == 0 {
		s.finish(r, false)
	}
}

// abandon ends a refresh that is not needed.
func (s *Sim) abandon(r *request) {
	r.over = true
	r.p.busy--
	s.land(r, false)
}

// finish ends r: its reader, and all who followed it, have a value, or give up.
func (s *Sim) finish(r *request, good bool) {
	if r.over {
		return
	}
	r.over = true
	s.unpark(r)
	s.release(r, good)
	r.follow.Done()
	r.p.busy--
	if !r.background {
		r.wait.Done()
		s.account.Answer(s.now, r.at, good)
	}
	s.land(r, good)
}

// land ends the flight that r leads, if it does.
func (s *Sim) land(r *request, good bool) {
	f := r.leads
	if f == nil {
		return
	}
	r.leads = nil
	for i, other := range r.e.flights {
		if other == f {
			r.e.flights = append(r.e.flights[:i], r.e.flights[i+1:]...)
			break
		}
	}
	for _, follower := range f.followers {
		s.finish(follower, good)
	}
}
