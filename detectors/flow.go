package detectors

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// flow is what went through the caches of one origin in a stretch of time. Sums
// are floats, so that no count a source may claim overflows them.
type flow struct {
	span time.Duration

	lookups, served, misses float64 // served: hits, and old values served on purpose
	coalesced               float64

	started, provoked float64 // recomputes that began: all, and those readers set off
	lost              float64 // provoked because a value vanished before its expiry
	ended, filled     float64 // provoked ones that ended, and that made a value or found that there is none
	failed            float64 // provoked ones that ended with the origin's error

	requests, attempts float64 // on the origin, as far as they are reported
	timed, took        float64 // recomputes that ended well, and the seconds they took
	busy, running      float64 // seconds spent by those that ended; running ones times seconds
	evicted            float64 // by the servers' count
}

// flowOf returns what s says of the span before a tick.
func flowOf(s *spending, span time.Duration) flow {
	f := flow{span: span}
	for _, c := range s.caches {
		f.addCache(c)
	}
	f.running = float64(s.running()) * span.Seconds()
	return f
}

func (f *flow) addCache(c *signal.CacheState) {
	if !c.Unknown.Has(signal.UnknownHits) { // or it would seem to be a cache that never answers
		f.lookups += float64(c.Lookups.Hits) + float64(c.Lookups.Misses) + float64(c.Lookups.Stale) + float64(c.Lookups.Errors)
		f.served += float64(c.Lookups.Hits) + float64(c.Lookups.Stale)
		f.misses += float64(c.Lookups.Misses)
	}
	f.evicted += float64(c.Evicted)

	w := &c.Work
	f.coalesced += float64(w.Coalesced)
	f.requests += float64(w.Retries.Requests)
	f.attempts += float64(w.Retries.Attempts)
	f.busy += max(0, w.Busy.Seconds())
	n, took := about(w)
	f.timed += n
	f.took += took
	for i := range signal.NumCauses {
		f.addCause(i, &w.Recomputes)
	}
}

func (f *flow) addCause(c signal.Cause, r *signal.Recomputes) {
	n := float64(r.Started[c])
	f.started += n
	if c.Provoked() {
		f.provoked += n
	}
	if c == signal.CauseEvicted || c == signal.CauseInvalidated {
		f.lost += n
	}
	// That there is no such thing is known only at the end, and answers a reader.
	if !c.Provoked() && c != signal.CauseNegative {
		return
	}
	for o, n := range r.Ended[c] {
		f.ended += float64(n)
		switch signal.Outcome(o) {
		case signal.OutcomeOK:
			f.filled += float64(n)
		case signal.OutcomeFailed:
			f.failed += float64(n)
		}
	}
}

// add adds what came after, or before.
func (f *flow) add(o *flow) {
	f.span += o.span
	f.lookups += o.lookups
	f.served += o.served
	f.misses += o.misses
	f.coalesced += o.coalesced
	f.started += o.started
	f.provoked += o.provoked
	f.lost += o.lost
	f.ended += o.ended
	f.filled += o.filled
	f.failed += o.failed
	f.requests += o.requests
	f.attempts += o.attempts
	f.timed += o.timed
	f.took += o.took
	f.busy += o.busy
	f.running += o.running
	f.evicted += o.evicted
}

// ratio returns a/b between 0 and 1; ifNone if there is nothing to divide by.
func ratio(a, b, ifNone float64) float64 {
	if b <= 0 {
		return ifNone
	}
	return min(max(a/b, 0), 1)
}

// perSecond returns how many of n there were in a second.
func (f *flow) perSecond(n float64) float64 {
	if f.span <= 0 {
		return 0
	}
	return n / f.span.Seconds()
}

// firsts returns the reads of users, without those of their retries. Whether a
// retry looks into the cache again depends on the client: if it does, there are
// more misses than first attempts can explain.
func (f *flow) firsts() float64 {
	again := min(max(0, f.misses-f.coalesced-f.requests), max(0, f.attempts-f.requests))
	return max(0, f.lookups-again, f.requests)
}

// load returns the reads of users per second.
func (f *flow) load() float64 { return f.perSecond(f.firsts()) }

// hitRatio returns the share of users' reads that the cache answered.
func (f *flow) hitRatio() float64 { return ratio(f.served, f.firsts(), 0) }

// fillSuccess returns the share of recomputes that readers waited for and got
// something from. If there are misses and nothing ends, nothing is filled.
func (f *flow) fillSuccess() float64 {
	if f.ended == 0 && f.misses > f.coalesced {
		return 0
	}
	return ratio(f.filled, f.ended, 1)
}

// goodput returns the share of users' reads that got an answer: from the cache,
// from a recompute of their own, or from one they waited for, of which as many
// fail as of the recomputes.
func (f *flow) goodput() float64 {
	return ratio(f.served+f.filled+f.coalesced*f.fillSuccess(), f.firsts(), 1)
}

// originGoodput returns the share of first attempts on the origin that came to
// a good end.
func (f *flow) originGoodput() float64 {
	if f.requests > 0 {
		return ratio(f.filled, f.requests, 1)
	}
	return ratio(f.filled, f.provoked, 1)
}

// amplification returns the attempts on the origin for each first one; 1 if
// they are not reported.
func (f *flow) amplification() float64 {
	if f.requests <= 0 {
		return 1
	}
	return max(1, f.attempts/f.requests)
}

// wanted returns the recomputes per second that are asked of the origin,
// retries left out.
func (f *flow) wanted() float64 {
	if f.requests > 0 {
		return f.perSecond(f.requests)
	}
	return f.perSecond(max(0, f.misses-f.coalesced) + max(0, f.started-f.provoked))
}

// concurrency returns the recomputes that ran, or queued, on average.
func (f *flow) concurrency() float64 { return max(f.perSecond(f.running), f.perSecond(f.busy)) }

// use returns concurrency over what the origin can run at once; 0 if that is
// not known.
func (f *flow) use(budget int) float64 {
	if budget <= 0 {
		return 0
	}
	return f.concurrency() / float64(budget)
}

// delta returns the mean seconds of a recompute that ended well; 0 if none did.
func (f *flow) delta() float64 {
	if f.timed <= 0 {
		return 0
	}
	return f.took / f.timed
}
