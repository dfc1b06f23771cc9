package rig

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// Account is what a rig knows of what it does. Make one with [NewAccount].
// Instants are nanoseconds since the start of the run. It is not safe for
// concurrent use.
type Account struct {
	hits, misses, stale uint64
	perSecond           []second // by the second a read came in

	first, attempts, earlyStarts uint64
	refusals, late, absences     uint64
	lost, staleWrites            uint64
	leads, longestLead           time.Duration

	parkedPeak, parkedAtRelease, queuePeak int
	longestWait, longestRefill             time.Duration

	calls   calls
	due     due
	bursts  bursts
	onsets  []Onset
	latest  map[onsetName]int  // the last of each name in onsets
	lasting map[onsetName]bool // what somebody will say to be over
}

// second counts the reads, and the attempts on origins, of one second.
type second struct{ reads, good, first, attempts uint32 }

// NewAccount returns the account of a run that takes so long. What comes in
// later counts for its last second.
func NewAccount(duration time.Duration) *Account {
	return &Account{perSecond: make([]second, duration/time.Second+1), latest: map[onsetName]int{}, lasting: map[onsetName]bool{}}
}

func (a *Account) at(t int64) *second {
	return &a.perSecond[min(t/int64(time.Second), int64(len(a.perSecond)-1))]
}

// Hit notes that a read found a value.
func (a *Account) Hit(now int64) {
	a.hits++
	x := a.at(now)
	x.reads++
	x.good++
}

// Stale notes that a read got the old value at once.
func (a *Account) Stale(now int64) {
	a.stale++
	x := a.at(now)
	x.reads++
	x.good++
}

// StaleInstead notes that a read that was counted as a miss got the old value after all.
func (a *Account) StaleInstead() { a.stale++ }

// Miss notes that a read found nothing. [Account.Answer] is its end.
func (a *Account) Miss(now int64) {
	a.misses++
	a.at(now).reads++
}

// Unserved notes that a read found no process to take it.
func (a *Account) Unserved(now int64) { a.at(now).reads++ }

// Answer ends a read that had missed at the given instant, with a value if good.
func (a *Account) Answer(now, at int64, good bool) {
	a.longestWait = max(a.longestWait, time.Duration(now-at))
	if good {
		a.at(at).good++
	}
}

// Attempt is the n-th call of the origin for one request, from 1.
func (a *Account) Attempt(now int64, cache string, n int) {
	x := a.at(now)
	x.attempts++
	if n == 1 {
		a.first++
		x.first++
	} else {
		a.Onset(now, "retry-storm", cache, "")
	}
	a.attempts++
}

// Early notes that a reader began a refresh so long before the expiry.
func (a *Account) Early(now int64, cache, key string, lead time.Duration) {
	a.earlyStarts++
	a.leads += lead
	a.longestLead = max(a.longestLead, lead)
	a.Onset(now, "early-refresh-excess", cache, key)
}

// LateFill notes that a value came past its caller's deadline, and is stored.
func (a *Account) LateFill() { a.late++ }

// Refused notes that an origin turned an attempt away.
func (a *Account) Refused() { a.refusals++ }

// Negative notes that the origin has no such thing.
func (a *Account) Negative(now int64, cache string) {
	a.absences++
	a.Onset(now, "penetration", cache, "")
}

// Refilled notes that some key that readers had found gone was back after so long.
func (a *Account) Refilled(took time.Duration) { a.longestRefill = max(a.longestRefill, took) }

// backlog is how much work an origin may owe before that is trouble of its own.
const backlog = 2 * time.Second

// Queued notes that so many wait for an origin, which has work for so long.
func (a *Account) Queued(now int64, cache string, waiting int, work time.Duration) {
	a.queuePeak = max(a.queuePeak, waiting)
	if work > backlog {
		for _, d := range backlogKinds {
			a.lasts(now, d, cache, "")
		}
	}
}

// backlogKinds are what it is called if an origin does not keep up.
var backlogKinds = [...]string{"synchronized-expiry", "budget-exceeded", "overload"}

// Worked notes that the origin of a cache has got on with what waits for it, and has work
// for so long.
func (a *Account) Worked(now int64, cache string, work time.Duration) {
	if work <= backlog && len(a.lasting) > 0 {
		for _, d := range backlogKinds {
			a.over(now, d, cache, "")
		}
	}
}

// Parked notes that n readers wait for a lock.
func (a *Account) Parked(now int64, cache, key string, n int) {
	a.parkedPeak = max(a.parkedPeak, n)
	a.lasts(now, "lock-convoy", cache, key)
}

// Unparked notes that n readers still wait for a lock.
func (a *Account) Unparked(now int64, cache, key string, n int) {
	if n == 0 {
		a.over(now, "lock-convoy", cache, key)
	}
}

// LockExpired notes that a lock's time was over before its holder was done, who may be
// dead, with so many readers waiting.
func (a *Account) LockExpired(now int64, cache, key string, dead bool, parked int) {
	a.parkedAtRelease = max(a.parkedAtRelease, parked)
	if !dead {
		a.Onset(now, "lock-lost", cache, key)
	}
	a.over(now, "orphaned-lock", cache, key)
}

// Orphaned notes that the holder of a lock died. [Account.LockExpired] is its end.
func (a *Account) Orphaned(now int64, cache, key string) {
	a.lasts(now, "orphaned-lock", cache, key)
}

// LockLost notes that who had taken a lock was done, and found it gone, or somebody
// else's.
func (a *Account) LockLost(now int64, cache, key string) {
	a.lost++
	a.WentOn(now, "lock-lost", cache, key)
}

// Value is what is known of a value that is about to be written, and of the key
// it is for.
type Value struct {
	Born     int64         // when its recompute began
	Known    bool          // the key has had a value
	Previous int64         // when the recompute of that one began
	Gone     int64         // when the key was last invalidated
	Typical  time.Duration // what a recompute usually takes
}

// Store notes that a value is written.
func (a *Account) Store(now int64, cache, key string, v Value) {
	a.stays(now, "underdosed-jitter", cache)
	if v.Gone > v.Born || v.Known && v.Born < v.Previous {
		a.staleWrites++
		a.lasts(now, "stale-overwrite", cache, key)
	} else {
		a.over(now, "stale-overwrite", cache, key)
	}
	if v.Known && time.Duration(now-v.Born) >= 3*v.Typical {
		a.lasts(now, "delta-poisoning", cache, key)
	} else {
		a.over(now, "delta-poisoning", cache, key)
	}
}

// Fault notes that an event of the scenario happens.
func (a *Account) Fault(now int64, e *scenario.Event) {
	switch e.Do {
	case scenario.DoFlush, scenario.DoEvict, scenario.DoNodeLoss:
		a.lasts(now, "mass-invalidation", e.Cache, "")
	}
}

// RestoredAt is the share of the reads of what was lost that still find nothing,
// at which a loss is over: what is hardly read must not make it last.
const RestoredAt = 0.05

// Restored notes that a cache has back what it had lost.
func (a *Account) Restored(now int64, cache string) { a.over(now, "mass-invalidation", cache, "") }

// Start is what is known of a recompute that begins.
type Start struct {
	Provoked bool // by a reader who found nothing
	Known    bool // the key has had a value
	XFetch   bool // it is protected by early refresh
	Doubled  bool // its process runs another that was provoked
}

// Begin notes that a recompute other than warm-up began.
func (a *Account) Begin(now int64, cache, key string, s *Story, x Start) {
	first := a.bursts.begin(s, x.Provoked, x.Known)
	if !x.Provoked {
		return
	}
	if s.provoked == 2 {
		a.doubles(now, cache, key, &s.burst, first)
	}
	if x.Known && x.XFetch {
		s.burst.late = true
		a.Onset(now, "early-refresh-ineffective", cache, key)
	}
	if x.Doubled {
		s.burst.bypass = true
		a.Onset(now, "coalescing-bypass", cache, key)
	}
}

// End notes that a recompute that had begun ended after so long, and reports
// whether none of its key runs any more. Then [Account.Expose] is due.
func (a *Account) End(now int64, cache, key string, s *Story, took time.Duration, ok, provoked bool) (over bool) {
	over = a.bursts.end(s, took, ok, provoked)
	if provoked && s.provoked == 1 {
		a.double(now, &s.burst, false)
	}
	if over && s.burst.late {
		a.WentOn(now, "early-refresh-ineffective", cache, key)
	}
	if over && s.burst.bypass {
		a.WentOn(now, "coalescing-bypass", cache, key)
	}
	return over
}

// Expose adds what a naive cache would have come to in a burst that is over:
// rate times recompute time.
func (a *Account) Expose(starts float64) { a.bursts.exposure += starts }
