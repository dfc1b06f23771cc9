package sim

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// origin runs recomputes, some at once, and queues the rest.
type origin struct {
	s    *Sim
	name string
	cfg  scenario.Origin

	slow     float64 // factor on recompute times
	fail     float64 // share that fails
	shedding int     // by events

	running int
	queue   []*attempt
	head    int           // of queue, for FIFO
	owed    time.Duration // expected work of all in queue
	since   int64         // when running last became positive
	busy    time.Duration // so far, up to since
}

func newOrigin(s *Sim, name string, cfg scenario.Origin) *origin {
	return &origin{s: s, name: name, cfg: cfg, slow: 1}
}

func (o *origin) sheds() bool { return o.shedding > 0 || o.cfg.Queue == scenario.QueueShed }

// waiting returns how many wait for a slot.
func (o *origin) waiting() int { return len(o.queue) - o.head }

// attempt is one call of the origin.
type attempt struct {
	r     *request
	at    int64 // when it was made
	began bool  // as a recompute; see begin
	over  bool  // its caller has an answer, or has given up
	where int   // in its key's list of those that run
}

// try makes the next attempt of r.
func (s *Sim) try(r *request) {
	r.tries++
	a := &attempt{r: r, at: s.now}
	o := r.e.c.origin
	s.account.attempt(r)
	if !o.cfg.Recheck {
		a.begin(s)
	}
	s.after(r.e.c.cfg.Client.Timeout, deadline{a})
	o.submit(a)
}

// begin is the start of the recompute as the application sees it: as soon as it
// misses, or, if it looks again once it has a slot, then.
func (a *attempt) begin(s *Sim) {
	r, m := a.r, a.r.monitor()
	if r.cause == signal.CauseEarly && r.tries == 1 {
		m.EarlyRefresh(r.e.text, r.lead, r.acted)
		s.account.early(r)
	}
	a.began = true
	r.run = m.Begin(r.e.text, instrument.Start{
		Cause:    r.cause,
		LookedUp: Epoch.Add(time.Duration(r.at) + r.p.skew),
		Attempt:  r.tries,
	})
	s.account.begin(a)
	r.p.hurry(r.e.c)
}

// submit takes an attempt in.
func (o *origin) submit(a *attempt) {
	switch {
	case o.cfg.Concurrency == 0 || o.running < o.cfg.Concurrency:
		o.start(a)
	case o.sheds() && o.waiting() >= o.cfg.QueueLimit:
		o.s.refuse(a)
	default:
		o.queue = append(o.queue, a)
		o.owed += a.r.e.c.mean()
		o.s.account.queue(o, a.r.e.c)
	}
}

// start gives a a slot.
func (o *origin) start(a *attempt) {
	s, r := o.s, a.r
	if o.cfg.Recheck {
		if a.over || r.p.dead {
			return // who waits for a slot in a process leaves with it
		}
		if r.e.fresh(s.now) {
			a.over = true
			r.monitor().Hit(r.e.text)
			s.finish(r, true)
			return
		}
		a.begin(s)
	}
	if o.running++; o.running == 1 {
		o.since = s.now
	}
	s.after(r.e.c.takes(), done{a})
}

// next fills the slots that are free.
func (o *origin) next() {
	for o.waiting() > 0 && o.running < o.cfg.Concurrency {
		a := o.pull()
		if a.over && o.sheds() {
			continue // nobody waits for it
		}
		o.start(a)
	}
}

// pull takes the next attempt off the queue.
func (o *origin) pull() *attempt {
	var a *attempt
	if last := len(o.queue) - 1; o.cfg.Queue == scenario.QueueLIFO {
		a, o.queue[last] = o.queue[last], nil
		o.queue = o.queue[:last]
	} else {
		a, o.queue[o.head] = o.queue[o.head], nil
		if o.head++; o.head > 1024 && o.head > len(o.queue)/2 {
			o.queue = append(o.queue[:0], o.queue[o.head:]...)
			o.head = 0
		}
	}
	o.owed -= a.r.e.c.mean()
	return a
}

// done is the end of the origin's work on an attempt, whoever still waits for it.
type done struct{ a *attempt }

func (d done) run(s *Sim) {
	o := d.a.r.e.c.origin
	if o.running--; o.running == 0 {
		o.busy += time.Duration(s.now - o.since)
	}
	failed := o.fail > 0 && s.services.Float64() < o.fail
	if !d.a.r.p.dead {
		s.complete(d.a, failed)
	}
	o.next()
}

// complete gives the origin's answer to whoever made the attempt.
func (s *Sim) complete(a *attempt, failed bool) {
	r := a.r
	if a.over {
		if !failed && r.e.c.cfg.Client.FillLate && !r.e.absent() {
			s.account.lateFill()
			r.e.put(r.p, a.at, time.Duration(s.now-a.at), 0)
			s.serve(r.e)
		}
		return
	}
	a.over = true
	switch {
	case failed:
		s.endAttempt(a, signal.OutcomeFailed)
		s.failed(r)
	case r.e.absent():
		s.account.end(a, signal.OutcomeOK)
		s.account.negative(r.e)
		r.run.Negative()
		s.finish(r, true)
	default:
		if r.mayStore() {
			r.e.put(r.p, a.at, time.Duration(s.now-a.at), 0)
		}
		s.endAttempt(a, signal.OutcomeOK)
		s.finish(r, true)
		if r.e.fresh(s.now) {
			s.serve(r.e)
		}
	}
}

func (s *Sim) endAttempt(a *attempt, o signal.Outcome) {
	if a.began {
		s.account.end(a, o)
		a.r.run.End(o)
	}
}

// deadline is the end of a client's patience with an attempt.
type deadline struct{ a *attempt }

func (d deadline) run(s *Sim) {
	a := d.a
	if a.over || a.r.p.dead {
		return
	}
	a.over = true
	s.endAttempt(a, signal.OutcomeTimedOut)
	s.failed(a.r)
}

// refuse turns an attempt away. The origin says not to come again, and clients
// do as they are told.
func (s *Sim) refuse(a *attempt) {
	a.over = true
	s.account.refused()
	s.endAttempt(a, signal.OutcomeFailed)
	s.finish(a.r, false)
}

// failed tries again, or gives up.
func (s *Sim) failed(r *request) {
	c := &r.e.c.cfg.Client
	if c.DeleteOnError {
		s.invalidate(r.p, r.e)
	}
	if r.tries >= c.Attempts {
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
