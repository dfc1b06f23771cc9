package sim

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// downFor is how long a process that died stays away, unless the scenario says.
const downFor = 2 * time.Second

// plan schedules what the scenario's event does.
func (s *Sim) plan(e *scenario.Event) { s.agenda.push(int64(e.At), fault{e}) }

// fault is an event of the scenario.
type fault struct{ e *scenario.Event }

func (f fault) run(s *Sim) {
	e := f.e
	c, o := s.cache(e.Cache), s.origin(e.Origin)
	s.account.Fault(s.now, e)
	switch e.Do {
	case scenario.DoFlush:
		c.lose(func(*entry) bool { return true })
	case scenario.DoEvict:
		c.lose(func(*entry) bool { return s.choices.Float64() < e.Share })
	case scenario.DoNodeLoss:
		c.lose(func(k *entry) bool { return rig.InSlice(k.n, e.Share) })
	case scenario.DoInvalidate:
		if len(s.up) > 0 {
			s.invalidate(s.up[0], s.named(c, e))
		}
	case scenario.DoWarm:
		s.warm(c, e)
	case scenario.DoKillHolder:
		s.killHolder(s.named(c, e), e.Down)
	case scenario.DoSlow:
		o.slow *= e.Factor
		s.After(e.For, func() { o.slow /= e.Factor })
	case scenario.DoFail:
		o.fail = e.Share
		s.After(e.For, func() { o.fail = 0 })
	case scenario.DoShed:
		o.shedding++
		s.After(e.For, func() { o.shedding--; o.next() })
	case scenario.DoLoad:
		s.load(e, e.Factor)
		s.After(e.For, func() { s.load(e, 1/e.Factor) })
	case scenario.DoDropReports:
		s.dropping = e.Share
		s.After(e.For, func() { s.dropping = 0 })
	case scenario.DoDeploy:
		s.deploy(e)
	case scenario.DoRestart:
		for i := range e.Instances {
			s.replace(i, "", nil, e.Down)
		}
	case scenario.DoCounterReset:
		s.resetCounters()
	}
}

// named returns the key an event is about; the first of the cache by default.
func (s *Sim) named(c *cache, e *scenario.Event) *entry {
	n, _ := s.sc.KeyNumber(c.name, e.Key)
	return c.entry(n)
}

// lose drops the values that which picks. Nobody is told.
func (c *cache) lose(which func(*entry) bool) {
	for _, e := range c.entries {
		if e == nil || !e.value || !which(e) {
			continue
		}
		e.drop()
		if !e.lost {
			e.lost = true
			c.lost += c.rate(e.n)
		}
	}
	if c.lostMost = c.lost; c.lost == 0 {
		c.s.account.Restored(c.s.now, c.name)
	}
}

// invalidate deletes e at p.
func (s *Sim) invalidate(p *process, e *entry) {
	e.drop()
	e.gone = s.now
	if p.protect[e.c.index].Has(scenario.ProtectLease) && e.lock.holder != nil {
		// A delete makes the lease's token void, so that a value computed
		// from what was there before is not written.
		e.lock.holder = nil
		e.lock.token++
		e.lock.open = s.now
	}
	p.monitors[e.c.index].Invalidate(e.text)
}

// warm fills a cache: at once, as from a copy, or through the origin.
func (s *Sim) warm(c *cache, e *scenario.Event) {
	n := len(c.entries)
	if e.Keys > 0 {
		n = min(n, e.Keys)
	}
	for i := range n {
		if len(s.up) == 0 {
			return
		}
		p, k := s.up[i%len(s.up)], c.entry(i)
		switch {
		case k.absent():
		case e.Over == 0:
			k.put(p, s.now, c.effort.Typical, e.TTL)
			s.account.Warmed(time.Duration(k.written) - p.skew)
		default:
			s.After(e.Over*time.Duration(i)/time.Duration(n), func() {
				if !p.dead {
					s.background(p, k, signal.CauseWarmup)
				}
			})
		}
	}
}

// load changes how much is read.
func (s *Sim) load(e *scenario.Event, factor float64) {
	for _, w := range s.workloads {
		if e.Cache == "" || w.c.name == e.Cache {
			w.factor *= factor
		}
	}
}

// killHolder kills the process that holds e's lock, or the next that does.
func (s *Sim) killHolder(e *entry, down time.Duration) {
	if down == 0 {
		down = downFor
	}
	l := &e.lock
	if l.holder == nil || l.left {
		l.doomed, l.downFor = true, down
		return
	}
	s.kill(l.holder.p, down)
	s.account.orphaned(e)
}

// murder kills the holder of a lock, if it still holds it.
type murder struct {
	e     *entry
	token uint64
	down  time.Duration
}

func (m murder) run(s *Sim) {
	if l := &m.e.lock; l.token == m.token && l.holder != nil && !l.left {
		s.killHolder(m.e, m.down)
	}
}

// kill ends a process in the middle of what it does; another takes its place
// after down.
func (s *Sim) kill(p *process, down time.Duration) {
	if p.dead {
		return
	}
	serving := s.slots[p.instance] == p
	p.crash()
	for _, c := range s.caches {
		for _, e := range c.entries {
			if e != nil {
				s.bury(p, e)
			}
		}
	}
	if serving {
		s.revive(p, p.build, p.protect, down)
	}
}

// bury takes what a dead process did about e out of the accounts.
func (s *Sim) bury(p *process, e *entry) {
	for i := len(e.active) - 1; i >= 0; i-- {
		if a := e.active[i]; a.r.p == p {
			s.account.end(a, signal.OutcomeUnknown)
		}
	}
	for _, r := range e.lock.queue {
		if r.p == p && r.queued {
			r.queued = false
			e.lock.waits--
			s.account.unparked(e, e.lock.waits)
		}
	}
	flights := e.flights[:0]
	for _, f := range e.flights {
		if f.p != p {
			flights = append(flights, f)
		}
	}
	e.flights = flights
}

// deploy replaces the instances one by one.
func (s *Sim) deploy(e *scenario.Event) {
	n := len(s.slots)
	for i := range n {
		s.After(e.Over*time.Duration(i)/time.Duration(n), func() {
			var protect []scenario.Protections
			for k, c := range s.caches {
				p := c.cfg.Protect
				if s.slots[i] != nil {
					p = s.slots[i].protect[k]
				}
				if e.Protect != nil && (e.Cache == "" || e.Cache == c.name) {
					p = *e.Protect
				}
				protect = append(protect, p)
			}
			s.replace(i, e.Build, protect, 0)
		})
	}
}

// replace retires the process of instance i; another takes its place after down.
// What is not given stays as it was.
func (s *Sim) replace(i int, build string, protect []scenario.Protections, down time.Duration) {
	p := s.slots[i]
	if p == nil {
		return
	}
	if build == "" {
		build = p.build
	}
	if protect == nil {
		protect = p.protect
	}
	p.retire()
	s.revive(p, build, protect, down)
}

// revive starts a process in the place of p, on the same machine.
func (s *Sim) revive(p *process, build string, protect []scenario.Protections, down time.Duration) {
	s.After(down, func() {
		if s.slots[p.instance] == nil {
			s.err = s.startProcess(p.instance, build, protect, p.skew)
		}
	})
}

// resetCounters lets every process start anew between two requests: nothing is
// interrupted, but all that was counted is forgotten.
func (s *Sim) resetCounters() {
	for i, p := range s.slots {
		if p == nil {
			continue
		}
		p.muted = true
		if err := s.startProcess(i, p.build, p.protect, p.skew); err != nil {
			s.err = err
		}
	}
}
