package detectors

import (
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const metastableLoopID = "metastable-loop"

var metastableLoopDoc = Doc{
	ID:    metastableLoopID,
	Title: "Metastable loop",
	Meaning: "Something pushed the origin over, it is over, and the origin has not come back: what it does under overload keeps it overloaded. " +
		"Retries multiply the load, or nobody waits long enough for a recompute to fill the cache, so the next reader misses too. It does not end by itself.",
	Signal: "Per origin, over all caches that spend it: reads of users per second, hit ratio, recomputes that run against what the origin can run at once, attempts for each first attempt, " +
		"and the share of reads that got an answer; all against what is usual for the hour. " +
		"And what from outside may explain trouble, for ten minutes at most: instances that were just started, servers that evict, an origin that fails or slows down while it is not full; and more load, for as long as it lasts.",
	Condition: "Pages (priority 1) when for 60 s after the last thing that could explain it, or three client timeouts, or twice the time a loop-free system would need to drain, all of this has held: " +
		"at most 0.9 of the usual goodput over 10 s and over 60 s; 1.5 attempts for each first one, or at most 0.7 of the usual hit ratio, and 0.1 below it, while at most half of the recomputes make a value " +
		"and there are some (one a second, or half of what the origin can run at once); " +
		"no more load than before by 10 %; and at most 0.9 of the origin would be used by this load with a warm cache and no retries. " +
		"It waits while the hit ratio rises and most recomputes succeed. Clears when for 5 minutes goodput is 0.95 of usual, attempts are at most 1.1, and the hit ratio is 0.95 of usual or the other two have held for half an hour. " +
		"If the origin's budget is not declared, the same load must have been carried well within the last day.",
	Why: "The definition is that of Bronson et al. (HotOS 2021) and Huang et al. (OSDI 2022): a trigger, a sustaining effect, and a bad state that outlives the trigger. What the load would cost a warm cache parts it from plain overload, " +
		"which also ends by itself once load falls. In a look-aside cache measured in front of PostgreSQL (16 connections, 100 ms a query, 153 queries a second at most), at 165 reads a second and four attempts a flush took " +
		"goodput from 1.00 to 0.03 for as long as it was watched, with seven attempts a second turned into 651; at one attempt it was back in 9 s. At 480 a second, one attempt was enough where results that come too late do not fill the cache, and 130 a second for 20 s ended it. " +
		"What all loops had in common was that hardly a recompute filled anything, while attempts stood far above first ones or misses far above the usual. What recovered did so within 11 s, and without retries the origin drained within seconds of the load falling; hence the 60 s.",
	Traps: "An origin that has become slow and stays full looks the same: its recompute time can be told only while it is not full. Retries that are not reported as such count as load, and more load is a cause from outside. " +
		"Readers that poll the cache while they wait for a lock lower the goodput, and so do reads that never lead to a recompute; both are usual, and measured against that. " +
		"If a lock is never given back nobody is served either, but the origin rests (orphaned-lock). Hedged requests amplify without harm, and do not fire.",
	Advice: "Cut the load below what the origin can bear, now: shed readers with a quick refusal that clients do not retry, and turn retries off; serve stale values if you can. Let recomputes that finish late fill the cache. " +
		"Warm the keys that are read most, then let readers back step by step, never more than the admission target in the evidence, which rises as attempts fall and the cache fills.",
	MayPage: true,
}

// metastableLoop finds origins that do not come back.
type metastableLoop struct {
	watch[loopState]
	c       MetastableLoopConfig
	alarms  *alarms
	reasons []Limit
}

// loopState is what the detector thinks of one origin.
type loopState struct {
	subject  subject      // of the open finding
	troubled lasting      // harm, and what sustains it
	settled  lasting      // goodput and attempts are as usual
	onset    signal.Nanos // of the open finding
}

// NewMetastableLoop returns the metastable-loop detector. It is a [Limited] and a
// [Stateful].
func NewMetastableLoop(c MetastableLoopConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &metastableLoop{c: c, alarms: newAlarms(&metastableLoopDoc, c.ClearAfter, "readers got their answers, without retries, as usual")}, nil
}

// Doc implements [Detector].
func (*metastableLoop) Doc() Doc { return metastableLoopDoc }

// Limits implements [Limited].
func (d *metastableLoop) Limits() []Limit { return slices.Clone(d.reasons) }

// Observe implements [Detector]. A loop is a matter of minutes; urgent ticks say
// nothing of it.
func (d *metastableLoop) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	caches := cachesOf(t)
	for o := range d.look(t, d.isOpen) {
		if o.live {
			d.judge(t.At, o)
		}
	}
	out := d.alarms.tell(t, caches)
	d.reasons = d.alarms.limits(t, caches, func(c *signal.CacheState) []Limit { return d.limits(c, false) })
	return out
}

func (d *metastableLoop) isOpen(o *watched[loopState]) bool {
	return d.alarms.open[o.own.subject] != nil
}

func (d *metastableLoop) judge(at signal.Nanos, o *watched[loopState]) {
	s := &o.own
	troubled := d.troubled(&o.origin)
	held := s.troubled.look(at, troubled)
	settled := s.settled.look(at, d.settled(&o.origin))
	switch {
	case d.isOpen(o) && troubled:
		d.raise(at, o)
	case d.isOpen(o):
		warm := o.known && o.last60.hitRatio() >= 0.95*o.usual.hits
		if settled == 0 || !warm && settled < 30*time.Minute {
			d.alarms.keep(at, s.subject)
		}
	case held > 0 && d.proven(at, o):
		cache, _ := o.neediest()
		s.subject, s.onset = subject{cache: cache}, s.began(&o.trigger)
		d.raise(at, o)
	}
}

// leastDrop is how far the hit ratio must fall at least to mean that the cache
// is cold: one that hardly ever hits has nothing to lose.
const leastDrop = 0.1

// troubled reports harm and what sustains it, both in the last 10 s.
func (d *metastableLoop) troubled(o *origin) bool {
	f := &o.last10
	if !o.known || !o.goodBelow(f, d.c.Goodput) {
		return false
	}
	cold := f.hitRatio() <= min(d.c.HitRatio*o.usual.hits, o.usual.hits-leastDrop) && f.fillSuccess() <= d.c.FillSuccess
	return cold && o.labours(f) || f.amplification() >= d.c.Amplification
}

// labours reports whether the origin works, or is asked in vain. Where it rests
// while readers get nothing they wait for something else, such as a lock whose
// holder is gone, and nothing that they do keeps the cache cold.
func (o *origin) labours(f *flow) bool {
	return f.ended >= enoughReads/2 || f.concurrency() >= max(1, float64(o.budget)/2)
}

// settled reports that readers are served, and without retries.
func (d *metastableLoop) settled(o *origin) bool {
	return o.last60.amplification() <= 1.1 && !o.goodBelow(&o.last60, 0.95)
}

// proven reports whether trouble that holds is a loop: nothing from outside is
// left to explain it, it has outlived what a system without one would need, and
// it is not getting better.
func (d *metastableLoop) proven(at signal.Nanos, o *watched[loopState]) bool {
	since := max(o.own.troubled.since, o.trigger.until)
	if o.trigger.open || at.Sub(since) < d.hold(&o.origin) || !o.goodBelow(&o.last60, d.c.Goodput) || o.refills() {
		return false
	}
	if o.budget > 0 {
		return o.counterfactual(&o.last60) <= fullAt
	}
	_, ok := o.carriedWell(at)
	return ok
}

// hold returns how long trouble must outlive its cause.
func (d *metastableLoop) hold(o *origin) time.Duration {
	drain := min(2*o.drain(), seconds(maxLoopHold))
	return min(max(d.c.Hold, 3*min(o.claims.Timeout, maxLoopHold), time.Duration(drain*float64(time.Second))), maxLoopHold)
}

// began returns when the trouble began to be its own cause: when the trigger was
// over, if there was one shortly before.
func (s *loopState) began(g *trigger) signal.Nanos {
	if g.kind != noTrigger && s.troubled.since.Sub(g.until) < time.Minute {
		return g.until
	}
	return s.troubled.since
}

// drain returns how many seconds the origin would need for what was waiting when
// the trigger ended, with a warm cache and no retries; 0 if that was long ago.
func (o *origin) drain() float64 {
	spare := o.ceiling() * (1 - o.counterfactual(&o.last60))
	if spare <= 0 || o.at.Sub(o.trigger.until) > triggerMost {
		return 0
	}
	return o.trigger.backlog / spare
}

// refills reports whether the cache is on its way back.
func (o *origin) refills() bool {
	return o.last10.fillSuccess() > 0.5 && o.last10.hitRatio() >= o.last60.hitRatio()+0.02
}

// carriedWell returns a time of the last day when the load was like now and
// readers got their answers: the same load, two outcomes.
func (o *origin) carriedWell(at signal.Nanos) (minute, bool) {
	m, ok := o.base.carried(at, o.last60.load())
	return m, ok && m.Good >= 0.95*o.usual.good
}
