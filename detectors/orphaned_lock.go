package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const orphanedLockID = "orphaned-lock"

var orphanedLockDoc = Doc{
	ID:    orphanedLockID,
	Title: "Readers wait for a lock whose holder is gone",
	Meaning: "Whoever held the lock on a key died, or forgot to release it, and every reader of the key waits for a recompute that nobody runs. " +
		"It ends when the lock expires: in seconds, or in hours, depending on the life it was given.",
	Signal: "Readers that wait for the lock of a key, while no instance reports a recompute of it that runs, began or ended, nor a hold that ended.",
	Condition: "Pages on a key when readers have waited at two regular ticks in a row without a sign of work, and the lock is older than the 99.9th percentile of the cache's recomputes, by a second unless all but one of at least 5 instances are heard to wait " +
		"(of at least 20 in the last half hour to hour; before that, three times the longest there was, and half the declared life of a lock at most; before the first, that half). " +
		"The lock's age counts from when its holder said it took it, else from when readers began to wait. It is a ticket if an instance still says it holds the lock, or if nobody said who took it and it has never been seen who does; " +
		"and if only a probe of the cache server tells of the lock, until it is three times as old. " +
		"Nothing is found if holders of the cache's locks often do not report. Of priority 1 if at least 100 readers wait. Clears 5 minutes after the last sign of it.",
	Why: "A holder that is alive reports every second; one missing report is a packet that came late, two are not. Of healthy recomputes one in 1,000 outlives the percentile, and it is mistaken for an orphan only if its reports are lost at that moment too: " +
		"at 1 % of lost reports that is once in 10 million recomputes for two in a row. From 20 samples the percentile is the longest of them, which the next exceeds once in 21 times: once in 200,000 recomputes. " +
		"A report that readers wait can be a second old; if nobody but the holder is missing from those who wait, no report was lost and the second is not needed. At 300 reads a second and recomputes of at most 1.8 s that pages at 500 to 890 parked readers; the 5 s the lock lives would park 1,500. " +
		"Whether holders report is learnt from waits that ended: with one unseen in more than ten, an unseen holder proves nothing.",
	Traps: "A holder that is not instrumented, or in another language, looks just like one that is gone: hence what is learnt of the cache. A holder that runs its recompute without reporting it as one. " +
		"Where recomputes are only inferred from misses and stores, one that runs cannot be seen; then a hold that is reported counts as work.",
	Advice: "Delete the lock's key (not the value's), once you are sure that its holder is gone: the next reader takes it and the rest are served. Then look for the instance that died, at the time the lock was taken. " +
		"To keep it from coming back: a shorter life for the lock, renewed while the holder works; and the old value, or an error, for who waits longer than a recompute takes.",
	MayPage: true,
}

// OrphanedLockConfig holds the thresholds of the orphaned-lock detector. A zero
// field takes its default.
type OrphanedLockConfig struct {
	// IdleTicks is how many regular ticks in a row, a second apart, must show
	// waiting readers and no work, 2 to 60. Default 2.
	IdleTicks int `yaml:"idle_ticks,omitempty"`
	// WorseReaders is how many waiting readers make a page one of priority 1,
	// 1 to 1,000,000. Default 100.
	WorseReaders int `yaml:"worse_readers,omitempty"`
	// ClearAfter is how long it must not be so before a finding clears, 1s to
	// 24h. Default 5m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
	// MaxKeys bounds how many keys with waiting readers are remembered, 100
	// to 1,000,000; each takes about 200 bytes. Default 10,000.
	MaxKeys int `yaml:"max_keys,omitempty"`
}

func (c OrphanedLockConfig) withDefaults() OrphanedLockConfig {
	c.IdleTicks = cmp.Or(c.IdleTicks, 2)
	c.WorseReaders = cmp.Or(c.WorseReaders, 100)
	c.ClearAfter = cmp.Or(c.ClearAfter, 5*time.Minute)
	c.MaxKeys = cmp.Or(c.MaxKeys, 10_000)
	return c
}

func (c OrphanedLockConfig) validate() error {
	return cmp.Or(
		within("idle_ticks", c.IdleTicks, 2, 60),
		within("worse_readers", c.WorseReaders, 1, maxPeak),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
		within("max_keys", c.MaxKeys, 100, 1_000_000),
	)
}

// orphanedLock finds locks that nobody will release.
type orphanedLock struct {
	c      OrphanedLockConfig
	alarms *alarms
	times  *typical
	notes  *notebook[vigil]
	trust  map[string]*holders // by cache
	blind  map[string]bool     // caches with readers that wait, and no way to tell for how long is long
	limits []Limit
}

// NewOrphanedLock returns the orphaned-lock detector. It is a [Limited].
func NewOrphanedLock(c OrphanedLockConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &orphanedLock{
		c: c, alarms: newAlarms(&orphanedLockDoc, c.ClearAfter, "no reader waited for a lock that nobody works under"),
		times: newTypical(), notes: newNotebook[vigil](c.MaxKeys, time.Minute),
		trust: map[string]*holders{}, blind: map[string]bool{},
	}, nil
}

// Doc implements [Detector].
func (*orphanedLock) Doc() Doc { return orphanedLockDoc }

// Limits implements [Limited].
func (d *orphanedLock) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector]. Urgent ticks hold no locks.
func (d *orphanedLock) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	caches := cachesOf(t)
	d.times.learn(t, caches)
	for cache := range d.trust {
		if caches[cache] == nil {
			delete(d.trust, cache)
		}
	}
	clear(d.blind)
	for _, k := range sortedKeys(t) {
		w := k.Window
		if !waits(w) && d.notes.find(keySubject(w)) == nil {
			continue
		}
		v := d.notes.open(t.At, keySubject(w))
		v.look(t.At, w)
		if waitsNow(w) {
			d.judge(t.At, v, k, caches[w.Cache])
		}
	}
	d.endVigils(t.At, caches)
	out := d.alarms.tell(t, caches)
	d.limits = d.alarms.limits(t, caches, d.limitsOf)
	return out
}

// waits reports whether readers wait in w, or did.
func waits(w *signal.Window) bool { return waitsNow(w) || w.Locks.Waits > 0 }

const (
	// reportEvery is how old a report that readers wait may be: each instance
	// says so once a second.
	reportEvery = time.Second
	// attendance is the least fleet of which it says something that all but
	// one are heard.
	attendance = 5
	// unseenHolder is how many times the longest recompute a lock must be old
	// to page, if only the server tells of it: a holder that works would look
	// the same, and one in 1,000 takes longer than that longest.
	unseenHolder = 3
)

// lag returns how long ago the readers of w may have stopped waiting without
// our knowing: not at all if all instances but one wait and are heard. Then that
// one is the holder's, and none of the others has been served.
func lag(w *signal.Window, c *signal.CacheState) time.Duration {
	if c.Instances >= attendance && len(sharesOf(w)) >= c.Instances-1 {
		return 0
	}
	return reportEvery
}

// waitsNow reports whether readers wait at the end of w: for the lock; or by
// trying again and again to take it, while nobody finds a value.
func waitsNow(w *signal.Window) bool {
	l := &w.Locks
	tries := l.Attempts > l.Acquired && w.MissPeak > 0
	return l.Waiting > 0 || tries && l.Waits == 0 && w.Lookups.Hits == 0 && w.Stores.Count == 0
}

func (d *orphanedLock) judge(at signal.Nanos, v *vigil, k *signal.KeyState, c *signal.CacheState) {
	if v.idle < d.c.IdleTicks || !reporting(c) {
		return
	}
	w := k.Window
	h := d.times.of(w.Cache)
	limit, why := longest(&h, c.Claims.LockTTL)
	if limit == 0 {
		d.blind[w.Cache] = true
		return
	}
	age := at.Sub(v.taken)
	if age <= limit+lag(w, c) {
		return
	}
	y := symptom{
		subject: keySubject(w), key: w.Key, service: serviceOf(c, w), severity: Page, priority: 2, onset: v.taken,
	}
	_, readers := w.MissPeakBounds()
	readers = max(readers, int(w.Locks.Waiting))
	switch {
	case w.Locks.Held > 0:
		y.severity, y.priority = Ticket, 0
		y.summary = fmt.Sprintf("%s: readers wait for a lock that is held for %.1f s, and its holder recomputes nothing.", placeOf(w.Key, w.Cache), age.Seconds())
	case w.Unknown.Has(signal.UnknownLocks) && age <= unseenHolder*(limit+reportEvery):
		// Whoever holds it could not be seen at work if it were.
		y.severity, y.priority = Ticket, 0
		y.summary = fmt.Sprintf("%s: up to %s for a lock taken %.1f s ago, and nobody has stored a value.", placeOf(w.Key, w.Cache), waitFor(readers), age.Seconds())
	case !v.known && d.trust[w.Cache].doubtful():
		return
	case !v.known && d.trust[w.Cache].unheard():
		y.severity, y.priority = Ticket, 0
		fallthrough
	default:
		y.summary = fmt.Sprintf("%s: up to %s for a lock taken %.1f s ago, and nobody recomputes.", placeOf(w.Key, w.Cache), waitFor(readers), age.Seconds())
		if y.severity == Page && readers >= d.c.WorseReaders {
			y.priority = 1
		}
	}
	y.evidence = v.evidence(age, limit, why, readers, w, c)
	d.alarms.raise(at, y)
}

func waitFor(readers int) string {
	if readers == 1 {
		return "1 reader waits"
	}
	return fmt.Sprintf("%d readers wait", readers)
}

// longest returns how long a healthy recompute may take at most, by what is
// known, and where that is from; 0 if nothing is.
func longest(h *signal.Durations, life time.Duration) (time.Duration, string) {
	half, bound := max(0, life)/2, time.Duration(0)
	switch n := h.Count(); {
	case n >= paceSamples:
		return middle(h.Quantile(0.999)), "the 99.9th percentile of recomputes"
	case n > 0:
		bound = 3 * middle(h.Quantile(1))
	}
	if bound == 0 || half > 0 && half < bound {
		return half, "half of what a lock lives for"
	}
	return bound, "three times the longest recompute so far"
}

// endVigils ends those at which nobody waits any more, and learns from them.
func (d *orphanedLock) endVigils(at signal.Nanos, caches map[string]*signal.CacheState) {
	for _, p := range d.notes.sorted() {
		v := &p.note
		if at.Sub(v.waited).Abs() <= vigilGap {
			continue
		}
		d.notes.forget(p.subject)
		if reporting(caches[p.cache]) {
			h := d.trust[p.cache]
			if h == nil {
				h = &holders{}
				d.trust[p.cache] = h
			}
			h.learn(v.known)
		}
	}
}

func (d *orphanedLock) limitsOf(c *signal.CacheState) []Limit {
	switch {
	case d.blind[c.Cache]:
		return []Limit{{c.Cache, true, "Not enough data: readers wait for a lock, no recompute has been reported that says how long one takes, and how long a lock lives is not declared."}}
	case d.trust[c.Cache].doubtful():
		return []Limit{{c.Cache, false, "Some holders of its locks do not report: a lock whose holder nobody saw is not taken for orphaned."}}
	}
	return nil
}
