package rig

import "time"

// calls is what became of calls of origins.
type calls struct {
	failed         uint64 // refused, in error or too late
	requestsFailed uint64 // that have no attempt left
	failures       uint64 // stored in place of values, and served
	hedges         uint64
	locksLeft      uint64
}

// CallFailed notes that a call of an origin was refused, ended in error, or came too late;
// last if its request makes no other.
func (a *Account) CallFailed(last bool) {
	a.calls.failed++
	if last {
		a.calls.requestsFailed++
	}
}

// FailureServed notes that a read found a failure in the place of a value.
func (a *Account) FailureServed(now int64) {
	a.hits++
	a.calls.failures++
	a.at(now).reads++
}

// Hedged notes that a call without an answer was sent once more.
func (a *Account) Hedged() { a.calls.hedges++ }

// LockLeft notes that a holder that was done did not give back its lock.
func (a *Account) LockLeft(now int64, cache, key string) {
	a.calls.locksLeft++
	a.lasts(now, "orphaned-lock", cache, key)
}

// due is the span of time in which values written at once are due.
type due struct {
	n           float64
	first, last time.Duration
}

// Warmed notes that a value was written together with others, and is due then.
func (a *Account) Warmed(expiry time.Duration) {
	d := &a.due
	if d.n++; d.n == 1 {
		d.first, d.last = expiry, expiry
	}
	d.first, d.last = min(d.first, expiry), max(d.last, expiry)
}

// figures adds what c came to.
func (c *calls) figures(f map[string]float64) {
	f["attempts_failed"], f["requests_failed"] = float64(c.failed), float64(c.requestsFailed)
	f["failures_served"], f["hedges"], f["locks_left"] = float64(c.failures), float64(c.hedges), float64(c.locksLeft)
}

// amplification adds how many attempts were made in between, for each first one
// and for each read.
func (a *Account) amplification(f map[string]float64, from, to int64) {
	reads, first, all := 0.0, 0.0, 0.0
	for i := from / int64(time.Second); i < min(to/int64(time.Second), int64(len(a.perSecond))); i++ {
		x := &a.perSecond[i]
		reads += float64(x.reads)
		first += float64(x.first)
		all += float64(x.attempts)
	}
	ratio(f, "attempts_per_request_end", all, first)
	ratio(f, "attempts_per_read_end", all, reads)
}
