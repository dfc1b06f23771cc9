package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const staleOverwriteID = "stale-overwrite"

var staleOverwriteDoc = Doc{
	ID:    staleOverwriteID,
	Title: "Stale value written over an invalidation, or over a newer one",
	Meaning: "A recompute read its data, then the data changed, the key was invalidated or written anew, and then the recompute stored what it had read. " +
		"The cache now holds the old value as if it were new, until it expires or somebody writes again.",
	Signal: "Within one process: stores whose recompute began before an invalidation that came before the store. " +
		"Across the fleet: recomputes that began before an invalidation seen by any instance and ended well after it, in a window with a store for each of them; " +
		"and, where applications tell the versions of what they store, values of a lower version than one that was stored before and is still there.",
	Condition: "Opens a ticket on a key at the first such store, and pages if its key group is one that was configured as critical. " +
		"Across instances the invalidation must be more than 100 ms from both ends of the recompute, and the two stores as far from each other, beyond what clocks were put right by. " +
		"Clears when it has not been seen for 10 minutes, or two of the key's times to live if that is longer.",
	Why: "In one process the order of events is known, so one is proof. Across processes it is told by clocks, of which the fleet leaves offsets of up to 100 ms alone. " +
		"A window counts stores and recomputes but does not pair them: if a of n recomputes that ended well are suspect and s values were stored, at least a - (n - s) stores were stale, and that is what is counted. " +
		"A version says by itself which value is newer; the same version once more is the same value, and no harm. " +
		"It is not rare by nature: with one invalidation a minute, and recomputes of 0.4 s that follow each other, 0.7 % of invalidations would be lost. " +
		"How bad one is depends on the data, which telemetry cannot know: hence a ticket unless told otherwise.",
	Traps: "The value may be the same, or the data may not have changed in a way that matters. A store that a version or a lease refused must not be reported as one. " +
		"A value that is out of date because its source was (a replica that lags) looks fine from here. Two recomputes that write in the wrong order without an invalidation are not seen unless versions are told. Versions that do not grow with the data (a random one, a clock of each instance) tell nonsense; those that begin anew after a deletion do not.",
	Advice: "Keep a version with the value and store with one atomic compare-and-set on it; or take a lease on the miss that an invalidation makes void, so that the late store is refused. " +
		"Until then, give the key a short time to live, or delete it again some seconds after each change. For the value that is wrong now: delete it once more.",
	MayPage: true,
}

// StaleOverwriteConfig holds the settings of the stale-overwrite detector. A
// zero field takes its default.
type StaleOverwriteConfig struct {
	// CriticalGroups are key groups, such as "price:*", of which one stale
	// value is worth waking somebody for. At most 1,000. Default: none.
	CriticalGroups []string `yaml:"critical_groups,omitempty"`
	// ClearAfter is how long it must not be seen before a finding clears, 1s
	// to 24h; two times to live of the key count instead if they are longer.
	// Default 10m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
	// MaxKeys bounds how many keys are remembered to have been invalidated
	// lately, 100 to 1,000,000; each takes about 300 bytes. Default 10,000.
	MaxKeys int `yaml:"max_keys,omitempty"`
}

const maxCriticalGroups = 1000

func (c StaleOverwriteConfig) withDefaults() StaleOverwriteConfig {
	c.ClearAfter = cmp.Or(c.ClearAfter, 10*time.Minute)
	c.MaxKeys = cmp.Or(c.MaxKeys, 10_000)
	return c
}

func (c StaleOverwriteConfig) validate() error {
	if n := len(c.CriticalGroups); n > maxCriticalGroups {
		return fmt.Errorf("critical_groups has %d entries: want at most %d", n, maxCriticalGroups)
	}
	return cmp.Or(
		within("clear_after", c.ClearAfter, time.Second, maxHold),
		within("max_keys", c.MaxKeys, 100, 1_000_000),
	)
}

// staleOverwrite finds values that were out of date when they were written.
type staleOverwrite struct {
	c        StaleOverwriteConfig
	critical map[string]bool
	alarms   *alarms
	notes    *notebook[invalidations]
	limits   []Limit
}

// invalidatedFor is how long an invalidation is remembered: longer than any
// recompute that anybody still waits for.
const invalidatedFor = 2 * time.Minute

// NewStaleOverwrite returns the stale-overwrite detector. It is a [Limited].
func NewStaleOverwrite(c StaleOverwriteConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	d := &staleOverwrite{
		c: c, critical: map[string]bool{}, alarms: newAlarms(&staleOverwriteDoc, c.ClearAfter, "no stale value was written"),
		notes: newNotebook[invalidations](c.MaxKeys, invalidatedFor),
	}
	d.alarms.total, d.alarms.unit = "total.stale", "{value}"
	for _, g := range c.CriticalGroups {
		d.critical[g] = true
	}
	return d, nil
}

// Doc implements [Detector].
func (*staleOverwrite) Doc() Doc { return staleOverwriteDoc }

// Limits implements [Limited].
func (d *staleOverwrite) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector].
func (d *staleOverwrite) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil // what it would show is not over, and comes again
	}
	caches := cachesOf(t)
	for _, k := range sortedKeys(t) {
		d.look(t.At, k.Window, told{k.Window.Stores.Stale, k.Overtaken}, k.TTL, 0, caches)
	}
	for _, e := range sortedEpisodes(t) {
		if e.Final && isNews(t.At, e) {
			d.look(t.At, e.Window, told{}, e.TTL, e.Offset.Abs(), caches)
		}
	}
	d.notes.sweep(t.At)
	out := d.alarms.tell(t, caches)
	d.limits = d.alarms.limits(t, caches, func(*signal.CacheState) []Limit { return nil })
	return out
}

// told is what has been counted of stale values before a detector sees them: by
// each process of its own, and by versions.
type told struct{ own, overtaken uint64 }

// look takes in one window, whose instants may be off by offset. by is what has
// not been counted before: an episode repeats what keys said.
func (d *staleOverwrite) look(at signal.Nanos, w *signal.Window, by told, ttl, offset time.Duration, caches map[string]*signal.CacheState) {
	s := keySubject(w)
	if w.InvalidatedAt != 0 {
		d.notes.open(at, s).add(w.InvalidatedAt)
	}
	seen := uint64(0)
	if note := d.notes.find(s); note != nil {
		seen = note.judge(w, overlapSlack+offset)
	}
	// What is told in one way is among what is told in another, or the other
	// way round: they are not added up.
	if max(seen, by.own, by.overtaken) > 0 {
		d.alarms.raise(at, d.symptom(w, ttl, seen, by, caches[w.Cache]))
	}
}

func (d *staleOverwrite) symptom(w *signal.Window, ttl time.Duration, seen uint64, by told, c *signal.CacheState) symptom {
	n, what := max(seen, by.own), "stored although the key had been invalidated since the recompute began"
	if by.overtaken > n {
		n, what = by.overtaken, "stored over one of a newer version"
	}
	y := symptom{
		subject: keySubject(w), key: w.Key, service: serviceOf(c, w), severity: Ticket,
		onset: w.InvalidatedAt, ttl: ttl, events: n,
		summary: fmt.Sprintf("%s: %s %s.", placeOf(w.Key, w.Cache), count(n, "value"), what),
	}
	if d.critical[w.Key.Group] {
		y.severity, y.priority = Page, 2
	}
	var l evidenceList
	l.add("stale", float64(n), "{value}", "written from data that had changed since it was read")
	l.addPositive("stale.across", float64(seen), "{value}", "told by the clocks of several instances")
	l.addPositive("stale.within", float64(by.own), "{value}", "by one process's own account")
	l.addPositive("stale.versions", float64(by.overtaken), "{value}", "of a lower version than one that was there")
	l.addPositive("recompute.max", seconds(w.BusyMax), "s", "the longest: an invalidation is lost if it falls into one")
	l.addPositive("ttl", seconds(ttl), "s", "how long a stale value may live")
	y.evidence = l
	return y
}

// maxInvalidations is how many invalidations of one key are remembered; a
// recompute that spans an older one most likely spans one of these too.
const maxInvalidations = 8

// invalidations is what is remembered of a key that was invalidated.
type invalidations struct {
	at     [maxInvalidations]signal.Nanos // the latest, in no order
	n      int
	judged [32]uint64 // recomputes that were found stale, by ID, so that each counts once
	j      int
}

// add notes an invalidation, once.
func (v *invalidations) add(at signal.Nanos) {
	if slices.Contains(v.at[:], at) {
		return
	}
	v.at[v.n%len(v.at)] = at
	v.n++
}

// judge returns how many values at least were stored in w by recomputes that
// span an invalidation, and were not counted before.
func (v *invalidations) judge(w *signal.Window, slack time.Duration) uint64 {
	var suspect uint64
	for _, iv := range w.Intervals {
		if iv.Outcome == signal.OutcomeOK && !iv.Running() && v.spanned(iv, slack) && !slices.Contains(v.judged[:min(v.j, len(v.judged))], iv.ID) {
			v.judged[v.j%len(v.judged)] = iv.ID
			v.j++
			suspect++
		}
	}
	unstored := w.Recomputes.Ends(signal.OutcomeOK) - min(w.Recomputes.Ends(signal.OutcomeOK), w.Stores.Count)
	return suspect - min(suspect, unstored)
}

func (v *invalidations) spanned(iv signal.Interval, slack time.Duration) bool {
	for _, at := range v.at {
		if at != 0 && at.Sub(iv.Start) > slack && iv.End.Sub(at) > slack {
			return true
		}
	}
	return false
}
