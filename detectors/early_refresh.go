package detectors

import (
	"math"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// maxCycles is how many cycles of one key are remembered: enough for a
	// verdict, few enough to follow a change within hours.
	maxCycles = 64
	// cycleGap is how long nothing may happen to a key before the next
	// refresh or expiry belongs to another life of its value; two recompute
	// times if that is longer.
	cycleGap = 2 * time.Second
	// maxRateSeconds is how many seconds of instances the rate of reads is the
	// mean of.
	maxRateSeconds = 1000
	// earlyKeep is how long a key is remembered on which nothing happens.
	earlyKeep = 2 * time.Hour
)

// refreshes is what is remembered of the lives of one key's values: whether
// each was refreshed early or expired, and by how many recomputes.
type refreshes struct {
	key     signal.Key
	service string
	ttl     time.Duration
	cycles  []cycle      // oldest first
	keyed   signal.Nanos // the last tick with a state of the key

	// The rate of reads can only be told in the seconds in which an instance
	// reports the key, which are those in which something happens to it.
	since            signal.Nanos // first seen
	reads            float64      // all that were reported
	besides, seconds float64      // of those, all but the ones that made it report, and instance-seconds
	ends, busy       float64      // recomputes that ended, and the seconds they took
}

// cycle is one life of a value.
type cycle struct {
	began, last   signal.Nanos
	starts, leads float64
	lead          float64 // seconds, summed over leads
	ends, busy    float64 // recomputes that ended, and the seconds they took
	expired       bool    // some reader found it gone
}

// took returns how long a recompute took in this life, in seconds; 0 if none has
// ended.
func (c *cycle) took() float64 { return c.busy / max(1, c.ends) }

// early takes in what happened to a key since the last regular tick.
func (r *refreshes) early(at signal.Nanos, k *signal.KeyState) {
	w := k.Window
	r.meet(at, w, k.TTL)
	r.measure(w)
	r.keyed = at
	began, last := min(w.Start, at), min(max(w.End, w.Start), at)
	starts := max(w.Recomputes.Started[signal.CauseEarly], w.Early.Count)
	if starts > 0 {
		c := r.cycle(began, last)
		c.starts += float64(starts)
		c.leads += float64(w.Early.Count)
		c.lead += max(0, w.Early.LeadSum.Seconds())
	}
	if ends := endsOf(w); ends > 0 {
		if c := r.during(began, last); c != nil {
			c.ends += ends
			c.busy += max(0, w.Busy.Seconds())
		}
	}
}

// endsOf returns how many recomputes ended in w.
func endsOf(w *signal.Window) (n float64) {
	for o := range signal.NumOutcomes {
		n += float64(w.Recomputes.Ends(o))
	}
	return n
}

// expired takes in an episode that is over.
func (r *refreshes) expired(at signal.Nanos, e *signal.Episode) {
	w := e.Window
	r.meet(at, w, e.TTL)
	if r.keyed == 0 || at.Sub(r.keyed) > lateAfter {
		r.measure(w) // else key states have told of it, second by second
	}
	if w.Recomputes.Started[signal.CauseExpired] > 0 {
		r.cycle(min(e.Started, at), min(max(w.End, e.Started), at)).expired = true
	}
}

// meet notes who the key is.
func (r *refreshes) meet(at signal.Nanos, w *signal.Window, ttl time.Duration) {
	r.key, r.service = w.Key, w.Service
	if ttl > 0 {
		r.ttl = ttl
	}
	if r.since == 0 {
		r.since = min(w.Start, at)
	}
}

// measure counts reads and recompute times.
func (r *refreshes) measure(w *signal.Window) {
	n := float64(w.Lookups.Total())
	instances := float64(len(sharesOf(w)))
	r.reads += n
	r.besides += max(0, n-max(1, float64(w.Recomputes.Starts())))
	r.seconds += instances
	if r.seconds > maxRateSeconds {
		r.besides, r.seconds = r.besides/2, r.seconds/2 // to follow a change of traffic
	}
	r.ends += endsOf(w)
	r.busy += max(0, w.Busy.Seconds())
	if r.ends > maxCycles {
		r.ends, r.busy = r.ends/2, r.busy/2
	}
}

// gap is how long nothing may happen to the key within one life.
func (r *refreshes) gap() time.Duration { return max(cycleGap, 2*r.recompute()) }

// cycle returns the life that what happened from began to last belongs to.
func (r *refreshes) cycle(began, last signal.Nanos) *cycle {
	if c := r.during(began, last); c != nil {
		c.began, c.last = min(c.began, began), max(c.last, last)
		return c
	}
	if len(r.cycles) >= maxCycles {
		r.cycles = slices.Delete(r.cycles, 0, 1)
	}
	i, _ := slices.BinarySearchFunc(r.cycles, began, func(c cycle, at signal.Nanos) int { return int(min(1, max(-1, c.began-at))) })
	r.cycles = slices.Insert(r.cycles, i, cycle{began: began, last: last})
	return &r.cycles[i]
}

// during returns the life that is known to which what happened from began to
// last belongs; nil if there is none.
func (r *refreshes) during(began, last signal.Nanos) *cycle {
	gap := r.gap()
	for i := len(r.cycles) - 1; i >= 0; i-- {
		c := &r.cycles[i]
		if began.Sub(c.last) > gap {
			break
		}
		// A value that is refreshed all the time still has lives: none is
		// longer than it was to be.
		if c.began.Sub(last) <= gap && (r.ttl <= 0 || last.Sub(c.began) <= max(r.ttl, gap)) {
			return c
		}
	}
	return nil
}

// recompute returns the mean time of a recompute; 0 if none has ended.
func (r *refreshes) recompute() time.Duration {
	if r.ends < 1 {
		return 0
	}
	return durationOf(r.busy / r.ends)
}

// rate estimates the reads per second of the key in a fleet of that many
// instances. Reads are spread evenly over instances, or the estimate is as far
// off as they are not.
func (r *refreshes) rate(at signal.Nanos, instances int) float64 {
	whole := 0.0
	if span := at.Sub(r.since).Seconds(); span > 1 {
		whole = r.reads / span
	}
	if r.seconds == 0 {
		return whole
	}
	return max(whole, r.besides/r.seconds*float64(instances))
}

// outcome counts the key's cycles that are over, and those of them that ended
// in an expiry some reader met.
func (r *refreshes) outcome() (cycles, expired int) {
	for i := range r.cycles {
		cycles++
		if r.cycles[i].expired {
			expired++
		}
	}
	return cycles, expired
}

// betaOf returns the factor XFetch multiplies its lead with: 1 unless declared,
// as in the paper.
func betaOf(c *signal.CacheState) float64 {
	if b := c.Claims.Beta; b > 0 && !math.IsInf(b, 1) {
		return b
	}
	return 1
}

// volunteering reports whether XFetch is said to be at work on a cache.
func volunteering(c *signal.CacheState) bool {
	return reporting(c) && c.Claims.Says(signal.ProtectXFetch)
}

// refreshBook keeps the refreshes of keys.
type refreshBook struct {
	notes *notebook[refreshes]
	// of tells of which caches, and seldom whether keys that were never
	// refreshed early are of interest, too.
	of     func(*signal.CacheState) bool
	seldom bool
}

func newRefreshBook(most int, of func(*signal.CacheState) bool, seldom bool) refreshBook {
	return refreshBook{newNotebook[refreshes](most, earlyKeep), of, seldom}
}

// learn takes in a regular tick and returns the subjects of keys it told of, in
// order.
func (b refreshBook) learn(t *signal.Tick, caches map[string]*signal.CacheState) []subject {
	var touched []subject
	for _, k := range sortedKeys(t) {
		s := keySubject(k.Window)
		// Of a key that was never refreshed early, episodes tell enough.
		known := b.notes.find(s) != nil
		if !b.of(caches[s.cache]) || !known && k.Window.Early.Count+k.Window.Recomputes.Started[signal.CauseEarly] == 0 {
			continue
		}
		b.notes.open(t.At, s).early(t.At, k)
		touched = append(touched, s)
	}
	for _, e := range sortedEpisodes(t) {
		s := subjectOf(e)
		if e.Final && isNews(t.At, e) && b.of(caches[s.cache]) && (b.seldom || b.notes.find(s) != nil) {
			b.notes.open(t.At, s).expired(t.At, e)
			touched = append(touched, s)
		}
	}
	b.notes.sweep(t.At)
	slices.SortFunc(touched, compareSubjects)
	return slices.Compact(touched)
}
