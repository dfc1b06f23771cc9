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
	gone    int           // of queue, those that were withdrawn
	owed    time.Duration // expected work of all in queue
	since   int64         // when running last became positive
	busy    time.Duration // so far, up to since
	used    time.Duration // of slots, in the last tenth of the run, up to metered
	metered int64
}

func newOrigin(s *Sim, name string, cfg scenario.Origin) *origin {
	if s.o.Calm {
		cfg.Cancel = false // or nothing would come late
	}
	return &origin{s: s, name: name, cfg: cfg, slow: 1}
}

func (o *origin) sheds() bool { return o.shedding > 0 || o.cfg.Queue == scenario.QueueShed }

// waiting returns how many wait for a slot.
func (o *origin) waiting() int { return len(o.queue) - o.head - o.gone }

// attempt is one call of the origin.
type attempt struct {
	r     *request
	at    int64 // when it was made
	began bool  // as a recompute; see begin
	over  bool  // its caller has an answer, or has given up
	where int   // in its key's list of those that run
	stage stage
	twin  *attempt // the other of a call that was sent twice
	hedge bool     // of the two, it is the later
}

// stage is how far the origin is with an attempt.
type stage uint8

const (
	stageNone stage = iota // it is not there, or no longer
	stageQueued
	stageRuns
)

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
	if d := r.e.c.cfg.Client.Hedge; d > 0 {
		s.after(d, hedge{a})
	}
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
		a.stage = stageQueued
		o.owed += a.r.e.c.effort.Mean()
		o.s.account.queue(o, a.r.e.c)
	}
}

// start gives a a slot.
func (o *origin) start(a *attempt) {
	s, r := o.s, a.r
	a.stage = stageNone
	if o.cfg.Recheck {
		if a.over || r.p.dead {
			return // who waits for a slot in a process leaves with it
		}
		if r.e.fresh(s.now) {
			s.settle(a)
			r.monitor().Hit(r.e.text)
			s.finish(r, !r.e.failure)
			return
		}
		if first := a.first(); !first.began {
			first.begin(s)
		}
	}
	o.meter()
	a.stage = stageRuns
	if o.running++; o.running == 1 {
		o.since = s.now
	}
	s.after(r.e.c.effort.Draw(s.services, o.slow), done{a})
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

// pull takes the next attempt off the queue. There must be one that waits.
func (o *origin) pull() *attempt {
	for {
		a := o.unqueue()
		if a.stage == stageQueued {
			a.stage = stageNone
			o.owed -= a.r.e.c.effort.Mean()
			o.s.account.worked(o)
			return a
		}
		o.gone--
	}
}

// work returns how long o has work for.
func (o *origin) work() time.Duration { return o.owed / time.Duration(o.cfg.Concurrency) }

// unqueue takes the next off the queue, be it withdrawn.
func (o *origin) unqueue() *attempt {
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
	return a
}

// withdraw takes a, which nobody wants any more, from the origin. The slot it
// leaves is not filled yet.
func (o *origin) withdraw(a *attempt) {
	switch a.stage {
	case stageQueued:
		o.owed -= a.r.e.c.effort.Mean()
		o.s.account.worked(o)
		o.gone++
	case stageRuns:
		o.leave()
	}
	a.stage = stageNone
}

// leave gives back a slot.
func (o *origin) leave() {
	o.meter()
	if o.running--; o.running == 0 {
		o.busy += time.Duration(o.s.now - o.since)
	}
}

// meter counts the use of slots up to now.
func (o *origin) meter() {
	from, to := max(o.metered, o.s.tail.from), min(o.s.now, o.s.tail.to)
	if to > from {
		o.used += time.Duration(to-from) * time.Duration(o.running)
	}
	o.metered = o.s.now
}

// done is the end of the origin's work on an attempt, whoever still waits for it.
type done struct{ a *attempt }

func (d done) run(s *Sim) {
	o := d.a.r.e.c.origin
	if d.a.stage != stageRuns {
		return // it was withdrawn
	}
	d.a.stage = stageNone
	o.leave()
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
			s.account.LateFill()
			r.e.put(r.p, a.at, time.Duration(s.now-a.at), 0)
			s.serve(r.e)
		}
		return
	}
	if failed && a.twin != nil && a.twin.stage != stageNone {
		return // the other may still bring something
	}
	s.settle(a)
	first := a.first()
	switch {
	case failed:
		s.endAttempt(first, signal.OutcomeFailed)
		s.failed(r)
	case r.e.absent():
		s.account.end(first, signal.OutcomeOK)
		s.account.negative(r.e)
		r.run.Negative()
		s.finish(r, true)
	default:
		if r.mayStore() {
			r.e.put(r.p, a.at, time.Duration(s.now-a.at), 0)
		}
		s.endAttempt(first, signal.OutcomeOK)
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
