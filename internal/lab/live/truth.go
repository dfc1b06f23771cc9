package live

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Tally counts what the processes did that their monitors must have seen, up to
// the last of it. It is what the monitors are held against; the figures end with
// the run.
type Tally struct {
	Hits     uint64 // lookups that found a value, second looks included
	Misses   uint64
	Stale    uint64
	Requests uint64 // first attempts
	Attempts uint64
	Early    uint64 // of the first attempts, those ahead of expiry
	Follows  uint64 // waits for another recompute in the same process
	Stores   uint64
}

// Tally returns it, once Run has.
func (r *Rig) Tally() Tally { return r.tally }

// Figures returns what the run came to, once Run has; see [rig.Account.Figures].
func (r *Rig) Figures() map[string]float64 { return r.figures }

// Onsets returns when each kind of trouble began, once Run has; see
// [rig.Account.Onsets].
func (r *Rig) Onsets() []rig.Onset { return r.onsets }

// rest returns what can be told of the run before it begins.
func (r *Rig) rest() rig.Rest {
	x := rig.Rest{End: int64(r.sc.Duration)}
	for _, c := range r.caches {
		x.Patience = max(x.Patience, time.Duration(c.cfg.Client.Attempts)*(c.cfg.Client.Timeout+c.cfg.Client.Backoff))
	}
	return x
}

// sum returns the figures. r.mu is held.
func (r *Rig) sum() map[string]float64 {
	x, now := r.rest(), r.now()
	from, to := x.LastTenth()
	for _, o := range r.origins {
		o.meter()
		x.Busy += o.busy
		if o.running > 0 {
			x.Busy += time.Duration(now - o.since)
		}
		if slots := time.Duration(to-from) * time.Duration(o.cfg.Concurrency); slots > 0 {
			x.Utilisation = max(x.Utilisation, float64(o.used)/float64(slots))
		}
	}
	for _, c := range r.caches {
		if c.missing > 0 {
			x.Missing = max(x.Missing, time.Duration(now-c.since))
		}
	}
	return r.account.Figures(x)
}

// tell puts something into the account.
func (r *Rig) tell(f func(now int64, a *rig.Account)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.now(), r.account)
}

// hit notes a read that found a value.
func (r *Rig) hit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.Hits++
	r.account.Hit(r.now())
}

// again notes that a read that had missed found a value at its second look.
func (r *Rig) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.Hits++
}

// staleHit notes a read that got the old value at once.
func (r *Rig) staleHit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.Stale++
	r.account.Stale(r.now())
}

// staleInstead notes that a read that had missed got the old value after all.
func (r *Rig) staleInstead() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.Stale++
	r.account.StaleInstead()
}

// miss notes a read that found nothing, and returns when. It had asked at that
// instant: a value stored since then is not missing, though it came too late.
func (r *Rig) miss(e *entry, asked int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.tally.Misses++
	r.account.Miss(now)
	if !e.missed && e.known && e.storedAt <= asked && !e.absent() {
		e.missed = true
		if e.c.missing++; e.c.missing == 1 {
			e.c.since = now
		}
	}
	return now
}

// attempted notes a call of the origin.
func (r *Rig) attempted(q *request) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.account.Attempt(now, q.e.c.name, q.tries)
	return now
}

// began notes that a recompute began, as its monitor is told.
func (r *Rig) began(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, e, now := a.q, a.q.e, r.now()
	r.tally.Attempts++
	if q.tries == 1 {
		r.tally.Requests++
	}
	if q.tries == 1 && q.cause == signal.CauseEarly {
		r.tally.Early++
		r.account.Early(now, e.c.name, e.text, q.lead)
	}
	doubled := false
	for o := range e.active {
		doubled = doubled || o.q.p == q.p && o.q.cause.Provoked()
	}
	e.active[a] = struct{}{}
	if q.cause != signal.CauseWarmup {
		provoked := q.cause.Provoked()
		r.account.Begin(now, e.c.name, e.text, &e.story, rig.Start{
			Provoked: provoked, Known: e.known, XFetch: e.c.cfg.Protect.Has(scenario.ProtectXFetch), Doubled: provoked && doubled,
		})
	}
}

// ended notes that a recompute that had begun ended.
func (r *Rig) ended(a *attempt, o signal.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q, e := a.q, a.q.e
	delete(e.active, a)
	if q.cause == signal.CauseWarmup {
		return
	}
	now := r.now()
	if r.account.End(now, e.c.name, e.text, &e.story, time.Duration(now-a.at), o == signal.OutcomeOK, q.cause.Provoked()) {
		r.account.Expose(e.c.rate(e.n) * e.c.effort.Mean().Seconds())
	}
}

// stored notes that a value was written, as its monitor is told.
func (r *Rig) stored() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.Stores++
}

// stores notes a value about to be written, and returns how long it is to live.
func (r *Rig) stores(e *entry, born int64, ttl time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	r.account.Store(now, e.c.name, e.text, rig.Value{Born: born, Known: e.known, Previous: e.born, Gone: e.gone, Typical: e.c.effort.Typical})
	e.known, e.born, e.storedAt = true, born, now
	if e.lost {
		e.lost = false
		if e.c.lost -= e.c.rate(e.n); e.c.lost <= rig.RestoredAt*e.c.lostMost {
			r.account.Restored(now, e.c.name)
		}
	}
	if e.missed {
		e.missed = false
		if e.c.missing--; e.c.missing == 0 {
			r.account.Refilled(time.Duration(now - e.c.since))
		}
	}
	return rig.Life(&e.c.cfg, ttl, r.choices)
}
