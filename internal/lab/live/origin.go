package live

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// origin runs recomputes, some at once, and queues the rest. Rig.mu guards it.
type origin struct {
	r        *Rig
	name     string
	cfg      scenario.Origin
	services *rand.Rand

	slow     float64 // factor on recompute times
	fail     float64 // share that fails
	shedding int     // by events

	running int
	queue   []*attempt
	owed    time.Duration // expected work of all in queue
	since   int64         // when running last became positive
	busy    time.Duration // so far, up to since
	used    time.Duration // of slots, in the last tenth of the run, up to metered
	metered int64
}

func newOrigin(r *Rig, name string, cfg scenario.Origin) *origin {
	return &origin{r: r, name: name, cfg: cfg, slow: 1, services: rand.New(rand.NewPCG(r.o.Seed, 2))}
}

func (o *origin) sheds() bool { return o.shedding > 0 || o.cfg.Queue == scenario.QueueShed }

// submit takes an attempt in, or reports that it will not.
func (o *origin) submit(a *attempt) bool {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	switch {
	case o.cfg.Concurrency == 0 || o.running < o.cfg.Concurrency:
		o.meter()
		if o.running++; o.running == 1 {
			o.since = o.r.now()
		}
		o.r.work.Go(func() { o.serve(a) })
	case o.sheds() && len(o.queue) >= o.cfg.QueueLimit:
		return false
	default:
		o.queue = append(o.queue, a)
		o.owed += a.q.e.c.effort.Mean()
		o.r.account.Queued(o.r.now(), a.q.e.c.name, len(o.queue), o.ahead())
	}
	return true
}

// ahead returns how long the work that waits will take.
func (o *origin) ahead() time.Duration { return o.owed / time.Duration(o.cfg.Concurrency) }

// worked tells of all caches of an origin that has got on. Rig.mu is held.
func (o *origin) worked() {
	for _, c := range o.r.caches {
		if c.origin == o {
			o.r.account.Worked(o.r.now(), c.name, o.ahead())
		}
	}
}

// serve is one slot: it works on a, and then on what waits, until nothing does.
// An origin does not know that a caller has given up, and finishes.
func (o *origin) serve(a *attempt) {
	for a != nil {
		if o.start(a) {
			takes := o.takes(a)
			if pause(o.r.ctx, takes) {
				a.answered(o.reply())
			}
		}
		a = o.next()
	}
}

// start begins the work on a, if there is any to do. Where the slots are the
// application's own, who gets one looks in the cache again.
func (o *origin) start(a *attempt) bool {
	if !o.cfg.Recheck {
		return true
	}
	q := a.q
	v, found, err := get(q.p.ctx, q.p.plain, q.e)
	o.r.fail(q.p.ctx, "look for a value", err)
	if err == nil && found && v.expiry > o.r.now() {
		a.answered(replyServed)
		return false
	}
	return a.begin()
}

// takes draws how long the work on a takes.
func (o *origin) takes(a *attempt) time.Duration {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	return a.q.e.c.effort.Draw(o.services, o.slow)
}

// reply draws whether work that is done has failed.
func (o *origin) reply() reply {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	if o.fail > 0 && o.services.Float64() < o.fail {
		return replyFailed
	}
	return replyValue
}

// next takes the next attempt off the queue; if there is none, the slot is free.
func (o *origin) next() *attempt {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	for len(o.queue) > 0 {
		i := 0
		if o.cfg.Queue == scenario.QueueLIFO {
			i = len(o.queue) - 1
		}
		a := o.queue[i]
		o.queue = slices.Delete(o.queue, i, i+1)
		o.owed -= a.q.e.c.effort.Mean()
		o.worked()
		if !o.sheds() || !a.over.Load() {
			return a
		}
	}
	o.meter()
	if o.running--; o.running == 0 {
		o.busy += time.Duration(o.r.now() - o.since)
	}
	return nil
}

// meter adds up how many slots have been in use, in the last tenth of the run.
// Rig.mu is held.
func (o *origin) meter() {
	from, to := o.r.rest().LastTenth()
	now := o.r.now()
	if span := min(now, to) - max(o.metered, from); span > 0 {
		o.used += time.Duration(o.running) * time.Duration(span)
	}
	o.metered = now
}
