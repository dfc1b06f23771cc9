package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const lockLostID = "lock-lost"

var lockLostDoc = Doc{
	ID:    lockLostID,
	Title: "Lock expired in the middle of a recompute",
	Meaning: "The lock that lets one reader recompute a key expired while its holder was still at work, and somebody else took it. " +
		"Both recompute, both believe they are alone, and whoever writes last wins, which may be the one with the older data.",
	Signal: "Holds that ended with a lock that was no longer the holder's own, by its token; recomputes that each had taken the lock and overlapped all the same; " +
		"and, ahead of time, how long recomputes take against how long a lock lives.",
	Condition: "Opens a ticket on a key when a hold ends lost, or when an episode in which no more recomputes started than locks were taken has two recomputes that overlap by more than 100 ms beyond what clocks were put right by. " +
		"Opens a ticket on the cache, as a forecast, when the 99.9th percentile of at least 100 recomputes of the last half hour to hour reaches 0.8 of the declared life of a lock. " +
		"Clears when it has not been seen for 10 minutes, or two of the key's times to live if that is longer.",
	Why: "A lost hold is a fact told by a token and needs no threshold. Two instants from two clocks do: the fleet leaves offsets of up to 100 ms alone, so shorter overlaps prove nothing. " +
		"The forecast warns at 0.8 because the percentile comes from buckets of 19 % and is never too low: it speaks at 0.67 at the earliest and at 0.8 at the latest. " +
		"With 100 samples the percentile is the longest of them: for a lognormal recompute of median 0.3 s and 99th percentile 1.8 s, and a lock that lives for twice the true 99.9th, such an hour warns without need once in 40.",
	Traps: "A holder whose clock is wrong sees its lock expire early or late; tokens do not. A lock that is released by deleting it, whoever holds it, never shows as lost: only the overlap does. " +
		"Readers who give up waiting and recompute without the lock are no second holder; they make recomputes outnumber locks, and the episode is left alone. A process that dies with the lock is another trouble: orphaned-lock.",
	Advice: "Give the lock a life longer than the slowest recompute (above its 99.9th percentile), or renew it while the recompute runs. " +
		"Write the value and check the token in one atomic step (a script, or a compare-and-set on a version), so that a holder who has lost the lock cannot overwrite: reading the token first and writing after is a race of its own.",
}

// LockLostConfig holds the thresholds of the lock-lost detector. A zero field
// takes its default.
type LockLostConfig struct {
	// ForecastShare is the part of a lock's declared life that the 99.9th
	// percentile of recomputes must reach to be warned of, 0.1 to 1. Default 0.8.
	ForecastShare float64 `yaml:"forecast_share,omitempty"`
	// ForecastSamples is how many recomputes make that percentile known, 20
	// to 1,000,000. Default 100.
	ForecastSamples int `yaml:"forecast_samples,omitempty"`
	// ClearAfter is how long it must not be seen before a finding clears, 1s
	// to 24h; two times to live of the key count instead if they are longer.
	// Default 10m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
}

func (c LockLostConfig) withDefaults() LockLostConfig {
	c.ForecastShare = cmp.Or(c.ForecastShare, 0.8)
	c.ForecastSamples = cmp.Or(c.ForecastSamples, 100)
	c.ClearAfter = cmp.Or(c.ClearAfter, 10*time.Minute)
	return c
}

func (c LockLostConfig) validate() error {
	return cmp.Or(
		within("forecast_share", c.ForecastShare, 0.1, 1),
		within("forecast_samples", c.ForecastSamples, 20, 1_000_000),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
	)
}

// lockLost finds locks that expire under their holder.
type lockLost struct {
	c      LockLostConfig
	alarms *alarms
	times  *typical
	limits []Limit
}

// NewLockLost returns the lock-lost detector. It is a [Limited].
func NewLockLost(c LockLostConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	d := &lockLost{c: c, alarms: newAlarms(&lockLostDoc, c.ClearAfter, "no lock was lost"), times: newTypical()}
	d.alarms.total, d.alarms.unit = "total.lost", "{lock}"
	return d, nil
}

// Doc implements [Detector].
func (*lockLost) Doc() Doc { return lockLostDoc }

// Limits implements [Limited].
func (d *lockLost) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector]. Urgent ticks hold no locks.
func (d *lockLost) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	caches := cachesOf(t)
	d.times.learn(t, caches)
	for _, k := range sortedKeys(t) {
		if k.Window.Locks.Lost > 0 {
			d.lost(t.At, k, caches[k.Window.Cache])
		}
	}
	for _, e := range sortedEpisodes(t) {
		if e.Final && isNews(t.At, e) {
			d.overlapped(t.At, e, caches[e.Window.Cache])
		}
	}
	for i := range t.Caches {
		d.forecast(t.At, &t.Caches[i])
	}
	out := d.alarms.tell(t, caches)
	d.limits = d.alarms.limits(t, caches, d.limitsOf)
	return out
}

// lost raises what a token told.
func (d *lockLost) lost(at signal.Nanos, k *signal.KeyState, c *signal.CacheState) {
	w := k.Window
	var l evidenceList
	l.add("lost", float64(w.Locks.Lost), "{lock}", "expired, or somebody else's, when their holder was done")
	l.addPositive("hold.max", seconds(w.Locks.HoldMax), "s", "the longest of those that ended")
	d.background(&l, c)
	d.alarms.raise(at, symptom{
		subject: keySubject(w), key: w.Key, service: serviceOf(c, w), severity: Ticket,
		onset: w.Start, ttl: k.TTL, events: w.Locks.Lost, evidence: l,
		summary: fmt.Sprintf("%s: %s expired before the recompute under it was done.", placeOf(w.Key, w.Cache), count(w.Locks.Lost, "lock")),
	})
}

// overlapSlack is how much two recomputes must overlap to prove it: the fleet
// leaves clock offsets up to this alone.
const overlapSlack = 100 * time.Millisecond

// overlapped raises two holders that were at work at once.
func (d *lockLost) overlapped(at signal.Nanos, e *signal.Episode, c *signal.CacheState) {
	w := e.Window
	if w.Unknown.Has(signal.UnknownLocks) { // whose recompute is whose was inferred
		return
	}
	if w.Locks.Acquired < 2 || w.Recomputes.Provoked() > w.Locks.Acquired {
		return
	}
	both, since := longestOverlap(w.Intervals)
	if both <= overlapSlack+e.Offset.Abs() {
		return
	}
	if w.Locks.Lost > 0 {
		return // its token has told already
	}
	var l evidenceList
	l.add("overlap", seconds(both), "s", "two holders at work at once")
	l.add("acquired", float64(w.Locks.Acquired), "{lock}", "in this episode")
	l.addPositive("hold.max", seconds(w.Locks.HoldMax), "s", "the longest of those that ended")
	d.background(&l, c)
	d.alarms.raise(at, symptom{
		subject: subjectOf(e), key: w.Key, service: serviceOf(c, w), severity: Ticket,
		onset: since, ttl: e.TTL, events: 1, evidence: l,
		summary: fmt.Sprintf("%s: two holders of one lock recomputed at once for %.1f s, and nobody noticed.", placeOf(w.Key, w.Cache), both.Seconds()),
	})
}

// longestOverlap returns how long at most two recomputes that ended well ran at
// once, and since when.
func longestOverlap(ivs []signal.Interval) (most time.Duration, since signal.Nanos) {
	var last signal.Nanos    // end of the one that ends last so far
	for _, iv := range ivs { // in order of start
		if iv.Outcome != signal.OutcomeOK || iv.Running() || !iv.Cause.Provoked() {
			continue
		}
		if both := min(last, iv.End).Sub(iv.Start); both > most {
			most, since = both, iv.Start
		}
		last = max(last, iv.End)
	}
	return most, since
}

// forecast warns of recomputes that nearly outlive their lock.
func (d *lockLost) forecast(at signal.Nanos, c *signal.CacheState) {
	h := d.times.of(c.Cache)
	life := c.Claims.LockTTL
	if life <= 0 || h.Count() < uint64(d.c.ForecastSamples) || !reporting(c) {
		return
	}
	slow := h.Quantile(0.999)
	if seconds(slow) < d.c.ForecastShare*seconds(life) {
		return
	}
	var l evidenceList
	d.background(&l, c)
	l.add("recomputes", float64(h.Count()), "{recompute}", "in the last half hour to hour")
	d.alarms.raise(at, symptom{
		subject: subject{cache: c.Cache}, service: c.Service, severity: Ticket, onset: at, evidence: l,
		summary: fmt.Sprintf("Cache %s: one recompute in 1,000 takes %.1f s, and its lock lives for %.1f s.", c.Cache, slow.Seconds(), life.Seconds()),
	})
}

// background adds what a lock's life is held against.
func (d *lockLost) background(l *evidenceList, c *signal.CacheState) {
	if c == nil {
		return
	}
	l.addPositive("lock.ttl", seconds(c.Claims.LockTTL), "s", "as declared")
	if h := d.times.of(c.Cache); h.Count() >= paceSamples {
		l.add("recompute.p999", seconds(h.Quantile(0.999)), "s", "at most 19 % too much")
	}
}

func (d *lockLost) limitsOf(c *signal.CacheState) []Limit {
	if !c.Claims.Says(signal.ProtectLock) || c.Claims.LockTTL > 0 {
		return nil
	}
	return []Limit{{c.Cache, false, "How long its locks live is not declared: that recomputes come close to it cannot be foretold."}}
}
