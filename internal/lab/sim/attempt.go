package sim

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// deadline is the end of a client's patience with an attempt.
type deadline struct{ a *attempt }

func (d deadline) run(s *Sim) {
	a := d.a
	if a.over || a.r.p.dead {
		return
	}
	a.over = true
	if a.twin != nil {
		a.twin.over = true
	}
	o := a.r.e.c.origin
	if o.cfg.Cancel {
		o.withdraw(a)
		if a.twin != nil {
			o.withdraw(a.twin)
		}
	}
	s.endAttempt(a, signal.OutcomeTimedOut)
	s.failed(a.r)
	o.next()
}

// hedge is the time at which a call without an answer is sent once more. To the
// application that is one recompute still, and one attempt.
type hedge struct{ a *attempt }

func (h hedge) run(s *Sim) {
	a := h.a
	if a.over || a.r.p.dead {
		return
	}
	a.twin = &attempt{r: a.r, at: s.now, twin: a, hedge: true}
	s.account.Hedged()
	a.r.e.c.origin.submit(a.twin)
}

// first returns a, or what it is the hedge of.
func (a *attempt) first() *attempt {
	if a.hedge {
		return a.twin
	}
	return a
}

// settle ends the wait for a, and calls off its twin.
func (s *Sim) settle(a *attempt) {
	a.over = true
	if t := a.twin; t != nil {
		t.over = true
		a.r.e.c.origin.withdraw(t)
	}
}

// refuse turns an attempt away. The origin says not to come again, and clients
// do as they are told.
func (s *Sim) refuse(a *attempt) {
	a.over = true
	s.account.Refused()
	if a.hedge {
		return // the first still has its chance
	}
	s.account.CallFailed(true)
	s.endAttempt(a, signal.OutcomeFailed)
	s.finish(a.r, false)
}

// failed tries again, or gives up.
func (s *Sim) failed(r *request) {
	c := &r.e.c.cfg.Client
	if c.DeleteOnError {
		s.invalidate(r.p, r.e)
	}
	last := r.tries >= c.Attempts
	s.account.CallFailed(last)
	if last {
		if c.CacheErrors > 0 {
			r.e.putFailure(r.p)
		}
		s.finish(r, false)
		return
	}
	pause := float64(c.Backoff) * float64(uint64(1)<<min(r.tries-1, 32))
	s.after(time.Duration(min(pause, float64(time.Hour))*(0.5+s.choices.Float64())), again{r})
}

// again is the end of a pause between two attempts.
type again struct{ r *request }

func (a again) run(s *Sim) {
	if !a.r.p.dead {
		s.try(a.r)
	}
}
