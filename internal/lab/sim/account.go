package sim

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// account is what the run itself knows of what it does. Its methods put what the
// simulator does into the words of the account.
type account struct {
	*rig.Account
	s *Sim
}

func (a *account) init(s *Sim) { a.s, a.Account = s, rig.NewAccount(s.sc.Duration) }

func (a *account) attempt(r *request) { a.Attempt(a.s.now, r.e.c.name, r.tries) }

func (a *account) early(r *request) { a.Early(a.s.now, r.e.c.name, r.e.text, r.lead) }

func (a *account) negative(e *entry) { a.Negative(a.s.now, e.c.name) }

func (a *account) queue(o *origin, c *cache) {
	a.Queued(a.s.now, c.name, o.waiting(), o.work())
}

func (a *account) parked(e *entry, n int) { a.Parked(a.s.now, e.c.name, e.text, n) }

func (a *account) lockExpired(e *entry, dead bool, parked int) {
	a.LockExpired(a.s.now, e.c.name, e.text, dead, parked)
}

func (a *account) unparked(e *entry, n int) { a.Unparked(a.s.now, e.c.name, e.text, n) }

func (a *account) orphaned(e *entry) { a.Orphaned(a.s.now, e.c.name, e.text) }

// worked tells of all caches of an origin that has got on.
func (a *account) worked(o *origin) {
	for _, c := range a.s.caches {
		if c.origin == o {
			a.Worked(a.s.now, c.name, o.work())
		}
	}
}

// store looks at a value before it is written; born is when its recompute began.
func (a *account) store(e *entry, born int64) {
	a.Store(a.s.now, e.c.name, e.text, rig.Value{Born: born, Known: e.known, Previous: e.born, Gone: e.gone, Typical: e.c.effort.Typical})
}

// begin notes that a recompute began.
func (a *account) begin(t *attempt) {
	e := t.r.e
	t.where = len(e.active)
	e.active = append(e.active, t)
	if t.r.cause == signal.CauseWarmup {
		return
	}
	provoked := t.r.cause.Provoked()
	a.Begin(a.s.now, e.c.name, e.text, &e.story, rig.Start{
		Provoked: provoked, Known: e.known, XFetch: t.r.protect().Has(scenario.ProtectXFetch), Doubled: provoked && doubled(t),
	})
}

// doubled reports whether t's process runs another provoked recompute of its key.
func doubled(t *attempt) bool {
	for _, o := range t.r.e.active {
		if o != t && o.r.p == t.r.p && o.r.cause.Provoked() {
			return true
		}
	}
	return false
}

// end notes that a recompute that had begun ended.
func (a *account) end(t *attempt, o signal.Outcome) {
	if !t.began {
		return
	}
	t.began = false
	e := t.r.e
	last := len(e.active) - 1
	e.active[t.where] = e.active[last]
	e.active[t.where].where = t.where
	e.active[last] = nil
	e.active = e.active[:last]
	if t.r.cause == signal.CauseWarmup {
		return
	}
	if a.End(a.s.now, e.c.name, e.text, &e.story, time.Duration(a.s.now-t.at), o == signal.OutcomeOK, t.r.cause.Provoked()) {
		a.Expose(e.c.rate(e.n) * e.c.effort.Mean().Seconds())
	}
}
