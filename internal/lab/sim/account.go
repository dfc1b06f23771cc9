package sim

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// account is what the run itself knows of what it does. Nothing in it comes from
// a monitor.
type account struct {
	s *Sim

	hits, misses, stale uint64
	perSecond           []second // by the second a read came in

	first, attempts, earlyStarts uint64
	refusals, late, absences     uint64
	lost, staleWrites            uint64
	leads, longestLead           time.Duration

	parkedPeak, parkedAtRelease, queuePeak int
	longestWait, longestRefill             time.Duration

	bursts bursts
	onsets []Onset
	seen   map[onsetName]bool
}

// second counts the reads of one second.
type second struct{ reads, good uint32 }

func (a *account) init(s *Sim) {
	a.s = s
	a.perSecond = make([]second, s.sc.Duration/time.Second+1)
	a.seen = map[onsetName]bool{}
}

func (a *account) at(t int64) *second { return &a.perSecond[t/int64(time.Second)] }

func (a *account) hit(now int64) {
	a.hits++
	x := a.at(now)
	x.reads++
	x.good++
}

func (a *account) staleServed(now int64) {
	a.stale++
	x := a.at(now)
	x.reads++
	x.good++
}

// staleInstead: a read that was counted as a miss got the old value after all.
func (a *account) staleInstead() { a.stale++ }

func (a *account) miss(now int64) {
	a.misses++
	a.at(now).reads++
}

// unserved: a read found no process to take it.
func (a *account) unserved() { a.at(a.s.now).reads++ }

// answer ends a read that had missed at the given instant.
func (a *account) answer(at int64, good bool) {
	a.longestWait = max(a.longestWait, time.Duration(a.s.now-at))
	if good {
		a.at(at).good++
	}
}

func (a *account) attempt(r *request) {
	if r.tries == 1 {
		a.first++
	} else {
		a.onset("retry-storm", r.e.c, nil)
	}
	a.attempts++
}

func (a *account) early(r *request) {
	a.earlyStarts++
	a.leads += r.lead
	a.longestLead = max(a.longestLead, r.lead)
	a.onset("early-refresh-excess", r.e.c, r.e)
}

func (a *account) lateFill() { a.late++ }

func (a *account) refused() { a.refusals++ }

func (a *account) negative(e *entry) {
	a.absences++
	a.onset("penetration", e.c, nil)
}

func (a *account) refilled(took int64) { a.longestRefill = max(a.longestRefill, time.Duration(took)) }

// backlog is how much work an origin may owe before that is trouble of its own.
const backlog = 2 * time.Second

func (a *account) queue(o *origin, c *cache) {
	a.queuePeak = max(a.queuePeak, o.waiting())
	if o.owed/time.Duration(o.cfg.Concurrency) > backlog {
		for _, d := range []string{"synchronized-expiry", "budget-exceeded", "overload"} {
			a.onset(d, c, nil)
		}
	}
}

func (a *account) parked(e *entry, n int) {
	a.parkedPeak = max(a.parkedPeak, n)
	a.onset("lock-convoy", e.c, e)
}

// lockExpired: a lock's time was over before its holder was done, who may be
// dead.
func (a *account) lockExpired(e *entry, dead bool, parked int) {
	a.parkedAtRelease = max(a.parkedAtRelease, parked)
	if !dead {
		a.onset("lock-lost", e.c, e)
	}
}

func (a *account) lockLost() { a.lost++ }

func (a *account) orphaned(e *entry) { a.onset("orphaned-lock", e.c, e) }

// store looks at a value before it is written; born is when its recompute began.
func (a *account) store(e *entry, born int64) {
	a.onset("underdosed-jitter", e.c, nil)
	if e.gone > born || e.known && born < e.born {
		a.staleWrites++
		a.onset("stale-overwrite", e.c, e)
	}
	if e.known && time.Duration(a.s.now-born) >= 3*e.c.typical {
		a.onset("delta-poisoning", e.c, e)
	}
}

func (a *account) fault(e *scenario.Event) {
	switch e.Do {
	case scenario.DoFlush, scenario.DoEvict, scenario.DoNodeLoss:
		a.onset("mass-invalidation", a.s.cache(e.Cache), nil)
	}
}

// begin notes that a recompute began.
func (a *account) begin(t *attempt) {
	e, provoked := t.r.e, t.r.cause.Provoked()
	t.where = len(e.active)
	e.active = append(e.active, t)
	if t.r.cause == signal.CauseWarmup {
		return
	}
	if a.bursts.begin(e, provoked) {
		for _, d := range []string{"hot-key-expiry", "process-local-coalescing"} {
			a.every(d, e)
		}
	}
	if !provoked {
		return
	}
	if e.known && t.r.protect().Has(scenario.ProtectXFetch) {
		a.onset("early-refresh-ineffective", e.c, e)
	}
	if doubled(t) {
		a.onset("coalescing-bypass", e.c, e)
	}
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
	if t.r.cause != signal.CauseWarmup {
		a.bursts.end(e, time.Duration(a.s.now-t.at), o == signal.OutcomeOK, t.r.cause.Provoked())
	}
}
