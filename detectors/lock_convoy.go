package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const lockConvoyID = "lock-convoy"

var lockConvoyDoc = Doc{
	ID:    lockConvoyID,
	Title: "Readers queue behind a lock",
	Meaning: "A lock lets one reader recompute a key, and a noticeable part of all who read it spend about a whole recompute, or many, waiting for it. " +
		"The origin is well protected; the readers pay for that, and what they hold while they wait (connections, threads) is missing elsewhere.",
	Signal: "Waits for the lock that guards a key: how many ended, the longest of each second, how many waited at one instant in one process; against the reads of the key and how long its recomputes take.",
	Condition: "Opens a ticket on a key when, over the last 60 s, at least 20 waits ended, they are at least 5 % of its reads, and their 99th percentile is at least 0.8 of the time of a recompute " +
		"(the mean of the key's own that ended in the 60 s, else the median of the cache's). Pages if more than 50 waited at once in one process. " +
		"Clears when it has not been so for 5 minutes, or two of the key's times to live if that is longer.",
	Why: "The number of waiters says nothing: r d = 120 of them is what a lock is for. What tells is how many readers it is that wait. With recomputes of d seconds every T seconds it is d / T of them: " +
		"0.7 % at 0.4 s and 60 s, 5 % at 3 s and 60 s. (Waited time against the time requests take would be past any threshold in the healthy case already: hits take next to none.) " +
		"Reads are counted in the seconds in which the key had waiters, less the second look of each that waited, and taken to be as many in the others; a key whose true share is 2.5 % and that has 20 waits a minute shows 5 % once in 19,000 minutes. " +
		"The percentile is an upper bound, made of the longest wait of each second; the median of a recompute divides waiting for one recompute from waiting for a queue of them. " +
		"The page is for what waiting takes with it: 50 is half of the 100 connections that PostgreSQL accepts by default; set it to half of what one instance can have in its hands.",
	Traps: "An origin that has become slow makes every wait long, and the lock is only where it shows: compare recompute.mean with what it was. " +
		"Callers that poll instead of waiting are not seen as waiting. Readers who wait for single-flight in their own process do not wait for the lock.",
	Advice: "Serve the old value to everybody but the holder, or refresh ahead of the expiry (XFetch): then nobody waits. " +
		"If waits are many times as long as a recompute, those who get the lock recompute again, one after another: let them look in the cache first. Otherwise make the recompute faster, or the value live longer.",
	MayPage: true,
}

// LockConvoyConfig holds the thresholds of the lock-convoy detector. A zero
// field takes its default.
type LockConvoyConfig struct {
	// MinWaits is how many waits must have ended in the last 60 s, 5 to
	// 1,000,000. Default 20.
	MinWaits int `yaml:"min_waits,omitempty"`
	// Share is the part of the key's reads that must have waited, 0.001 to 1.
	// Default 0.05.
	Share float64 `yaml:"share,omitempty"`
	// Recomputes is how many times as long as a recompute the 99th percentile
	// of waits must be, 0.1 to 100. Default 0.8.
	Recomputes float64 `yaml:"recomputes,omitempty"`
	// PageWaiting is how many must wait at once in one process to page, 1 to
	// 1,000,000. Default 50.
	PageWaiting int `yaml:"page_waiting,omitempty"`
	// ClearAfter is how long it must not be so before a finding clears, 1s to
	// 24h; two times to live of the key count instead if they are longer.
	// Default 5m.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
	// MaxKeys bounds how many keys with waiters are remembered, 100 to
	// 1,000,000; each takes up to 6 kB. Default 2,000.
	MaxKeys int `yaml:"max_keys,omitempty"`
}

func (c LockConvoyConfig) withDefaults() LockConvoyConfig {
	c.MinWaits = cmp.Or(c.MinWaits, 20)
	c.Share = cmp.Or(c.Share, 0.05)
	c.Recomputes = cmp.Or(c.Recomputes, 0.8)
	c.PageWaiting = cmp.Or(c.PageWaiting, 50)
	c.ClearAfter = cmp.Or(c.ClearAfter, 5*time.Minute)
	c.MaxKeys = cmp.Or(c.MaxKeys, 2000)
	return c
}

func (c LockConvoyConfig) validate() error {
	return cmp.Or(
		within("min_waits", c.MinWaits, 5, 1_000_000),
		within("share", c.Share, 0.001, 1),
		within("recomputes", c.Recomputes, 0.1, 100),
		within("page_waiting", c.PageWaiting, 1, maxPeak),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
		within("max_keys", c.MaxKeys, 100, 1_000_000),
	)
}

// convoySpan is how far back waits count.
const convoySpan = time.Minute

// lockConvoy finds keys whose readers queue behind a lock.
type lockConvoy struct {
	c      LockConvoyConfig
	alarms *alarms
	times  *typical
	notes  *notebook[queue]
	unread map[string]bool // caches with waiters of which no recompute time is known, at the last tick
	limits []Limit
}

// NewLockConvoy returns the lock-convoy detector. It is a [Limited].
func NewLockConvoy(c LockConvoyConfig) (Detector, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &lockConvoy{
		c: c, alarms: newAlarms(&lockConvoyDoc, c.ClearAfter, "readers did not queue behind a lock"),
		times: newTypical(), notes: newNotebook[queue](c.MaxKeys, convoySpan), unread: map[string]bool{},
	}, nil
}

// Doc implements [Detector].
func (*lockConvoy) Doc() Doc { return lockConvoyDoc }

// Limits implements [Limited].
func (d *lockConvoy) Limits() []Limit { return slices.Clone(d.limits) }

// Observe implements [Detector]. Urgent ticks hold no locks.
func (d *lockConvoy) Observe(t *signal.Tick) []Finding {
	if t.Urgent {
		return nil
	}
	caches := cachesOf(t)
	d.times.learn(t, caches)
	clear(d.unread)
	for _, k := range sortedKeys(t) {
		if l := &k.Window.Locks; l.Waits == 0 && l.Waiting == 0 {
			continue
		}
		q := d.notes.open(t.At, keySubject(k.Window))
		q.add(t.At, k.Window)
		d.judge(t.At, q, k, caches[k.Window.Cache])
	}
	d.notes.sweep(t.At)
	out := d.alarms.tell(t, caches)
	d.limits = d.alarms.limits(t, caches, d.limitsOf)
	return out
}

func (d *lockConvoy) judge(at signal.Nanos, q *queue, k *signal.KeyState, c *signal.CacheState) {
	w, s := k.Window, q.sum()
	if s.waits < float64(d.c.MinWaits) || s.share() < d.c.Share {
		return
	}
	h := d.times.of(w.Cache)
	recompute, note := s.recompute(), "of the key, on average"
	if recompute == 0 && h.Count() >= paceSamples {
		recompute, note = h.Quantile(0.5), "the median of the cache's"
	}
	if recompute == 0 {
		d.unread[w.Cache] = true
		return
	}
	if seconds(s.p99) < d.c.Recomputes*seconds(recompute) {
		return
	}
	y := symptom{
		subject: keySubject(w), key: w.Key, service: serviceOf(c, w), severity: Ticket, onset: q.ticks[0].start, ttl: k.TTL,
		summary: fmt.Sprintf("%s: %.0f %% of its readers waited for a lock in the last minute, up to %.1f s; a recompute takes %.1f s.",
			placeOf(w.Key, w.Cache), 100*s.share(), s.longest.Seconds(), recompute.Seconds()),
	}
	if int(s.peak) > d.c.PageWaiting {
		y.severity, y.priority = Page, 2
	}
	var l evidenceList
	l.add("share", s.share(), "1", fmt.Sprintf("of reads waited, in 60 s; a ticket from %v", d.c.Share))
	l.add("wait.p99", seconds(s.p99), "s", "at most")
	l.add("recompute", seconds(recompute), "s", note)
	if h.Count() >= paceSamples {
		l.add("recompute.p50", seconds(h.Quantile(0.5)), "s", "of the cache, in the last half hour to hour")
	}
	l.add("waiting.peak", float64(s.peak), "{reader}", fmt.Sprintf("at one instant in one process; pages above %d", d.c.PageWaiting))
	l.add("waits", s.waits, "{wait}", "that ended, in 60 s")
	l.add("wait.total", s.waited, "s", "of readers' time, in 60 s")
	y.evidence = l
	d.alarms.raise(at, y)
}

func (d *lockConvoy) limitsOf(c *signal.CacheState) []Limit {
	if !d.unread[c.Cache] {
		return nil
	}
	return []Limit{{c.Cache, true, fmt.Sprintf(
		"Not enough data: readers wait for a lock, and fewer than %d recomputes have been reported that could say whether for long.", paceSamples)}}
}

// queue is what is remembered of the waits for one key's lock.
type queue struct{ ticks []queueTick }

// queueTick is one tick with waiters. Counts are floats, so that no sum of what
// a source may claim overflows.
type queueTick struct {
	at, start    signal.Nanos
	waits, reads float64
	waited       float64 // seconds, by those
	longest      time.Duration
	peak         uint32
	ends, busy   float64 // recomputes that ended, and the seconds they took
}

func (q *queue) add(at signal.Nanos, w *signal.Window) {
	q.ticks = slices.DeleteFunc(q.ticks, func(t queueTick) bool { return t.at > at || at.Sub(t.at) >= convoySpan })
	if len(q.ticks) >= maxSamples {
		q.ticks = slices.Delete(q.ticks, 0, 1)
	}
	var ends float64
	for o := range signal.NumOutcomes {
		ends += float64(w.Recomputes.Ends(o))
	}
	l := &w.Locks
	q.ticks = append(q.ticks, queueTick{
		at: at, start: min(w.Start, at), waits: float64(l.Waits), reads: float64(w.Lookups.Total()),
		waited: max(0, l.WaitSum.Seconds()), longest: max(0, l.WaitMax),
		peak: max(l.WaitPeak, l.Waiting), ends: ends, busy: max(0, w.Busy.Seconds()),
	})
}

// queueSum is what a queue was like over its span.
type queueSum struct {
	queueTick
	p99   time.Duration // at most
	ticks int
}

func (q *queue) sum() queueSum {
	s := queueSum{ticks: len(q.ticks)}
	for _, t := range q.ticks {
		s.waits += t.waits
		s.reads += t.reads
		s.waited += t.waited
		s.longest = max(s.longest, t.longest)
		s.peak = max(s.peak, t.peak)
		s.ends += t.ends
		s.busy += t.busy
	}
	// Who has waited looks again: that is no other reader.
	s.reads = max(s.reads-s.waits, s.waits)
	s.p99 = q.p99(s.waits)
	return s
}

// p99 returns what all but one wait in a hundred do not exceed: it leaves out the
// seconds with the longest, as far as they hold no more than that one.
func (q *queue) p99(waits float64) time.Duration {
	byLongest := slices.Clone(q.ticks)
	slices.SortFunc(byLongest, func(a, b queueTick) int { return cmp.Compare(b.longest, a.longest) })
	var out float64
	for _, t := range byLongest {
		if out += t.waits; t.waits > 0 && out > waits/100 {
			return t.longest
		}
	}
	return 0
}

// share returns what part of the key's reads waited. Seconds without waiters are
// taken to have had as many reads as those with some.
func (s *queueSum) share() float64 {
	if s.reads == 0 {
		return 0
	}
	return s.waits / s.reads * min(1, float64(s.ticks)/convoySpan.Seconds())
}

// recompute returns the mean of the key's recomputes that ended; 0 if none did.
func (s *queueSum) recompute() time.Duration {
	if s.ends == 0 {
		return 0
	}
	return durationOf(s.busy / s.ends)
}
