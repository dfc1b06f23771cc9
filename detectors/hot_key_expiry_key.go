package detectors

import (
	"cmp"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// hotKey is what is remembered of one key.
type hotKey struct {
	subject
	seen     signal.Nanos // the last tick with an episode
	ttl      time.Duration
	episodes []hotEpisode // the last few, in order of start
	// forgotten is the start of the latest episode that has left episodes:
	// what comes of it, or of one before it, must not count as new.
	forgotten signal.Nanos
	alarm     *hotAlarm // nil: no finding
}

// hotAlarm is an open finding.
type hotAlarm struct {
	severity        Severity
	priority        int
	cause           hotCause
	service         string // as it was at first: it names the incident
	key             signal.Key
	onset, detected signal.Nanos
	origin          signal.Origin
	recurred, outOf int // episodes of TicketPeak or more, when it was raised
	// quietSince is the end of the last episode that kept it open, or the
	// last tick at which nobody reported.
	quietSince signal.Nanos
	since      signal.Nanos // start of the first episode it is about
	worst      hotEpisode   // of those, the one of the highest peak
	total      tally        // of all those
}

// look takes in all episodes of the key at one tick, in order of start, and
// reports whether one of them raised a finding, or made it worse.
func (k *hotKey) look(at signal.Nanos, es []*signal.Episode, cache *signal.CacheState, c *HotKeyExpiryConfig) (raised bool) {
	k.seen = at
	k.forgetJoined(es)
	for _, e := range es {
		raised = k.take(at, e, cache, c) || raised
	}
	if a := k.alarm; a != nil {
		a.key = es[len(es)-1].Window.Key
		if cache != nil && (cache.Origin.Budget > 0 || a.origin.Budget == 0) {
			a.origin = cache.Origin
		}
		k.findWorst()
	}
	return raised
}

// take takes in one episode.
func (k *hotKey) take(at signal.Nanos, e *signal.Episode, cache *signal.CacheState, c *HotKeyExpiryConfig) (raised bool) {
	if e.TTL > 0 {
		k.ttl = e.TTL
	}
	h := k.find(e.Started, c.TicketOf)
	if h == nil {
		return false
	}
	news := mayRaise(at, h, e)
	k.uncount(h)
	h.update(e, cache)
	k.count(h)
	if news {
		raised = k.raise(at, h, e, c.judge(at, k, h, e, cache), c)
	}
	if a := k.alarm; a != nil && k.dogpile(h) >= c.keepsOpen(a.severity) {
		a.quietSince = max(a.quietSince, min(e.Window.End, at))
		if h.started >= a.since {
			a.onset = min(a.onset, h.onset)
		}
	}
	return raised
}

// find returns the episode that began at started, remembering it if it is new,
// or nil if it is older than all that are remembered.
func (k *hotKey) find(started signal.Nanos, most int) *hotEpisode {
	if started <= k.forgotten {
		return nil
	}
	i, found := slices.BinarySearchFunc(k.episodes, started, func(h hotEpisode, s signal.Nanos) int {
		return cmp.Compare(h.started, s)
	})
	if found {
		return &k.episodes[i]
	}
	if len(k.episodes) == most {
		if i == 0 {
			return nil
		}
		k.forgotten = k.episodes[0].started
		k.episodes = slices.Delete(k.episodes, 0, 1)
		i--
	}
	k.episodes = slices.Insert(k.episodes, i, hotEpisode{started: started})
	return &k.episodes[i]
}

// forgetJoined forgets episodes that have become part of another: they were not
// final, and are not among es, which are all of the key that are not.
func (k *hotKey) forgetJoined(es []*signal.Episode) {
	k.episodes = slices.DeleteFunc(k.episodes, func(h hotEpisode) bool {
		if h.final || slices.ContainsFunc(es, func(e *signal.Episode) bool { return e.Started == h.started }) {
			return false
		}
		k.uncount(&h)
		return true
	})
}

// count adds h to the finding's total, if it is about it.
func (k *hotKey) count(h *hotEpisode) {
	if a := k.alarm; a != nil && h.started >= a.since {
		a.total.add(h.tally)
	}
}

// uncount takes h out again, before it changes.
func (k *hotKey) uncount(h *hotEpisode) {
	if a := k.alarm; a != nil && h.started >= a.since {
		a.total.remove(h.tally)
	}
}

// recurrences counts the episodes remembered that reached peak.
func (k *hotKey) recurrences(peak int) int {
	n := 0
	for i := range k.episodes {
		if k.dogpile(&k.episodes[i]) >= peak {
			n++
		}
	}
	return n
}

// raise opens a finding, or makes the open one worse, if v asks for that, and
// reports whether it did. Nothing makes an open one less severe.
func (k *hotKey) raise(at signal.Nanos, h *hotEpisode, e *signal.Episode, v verdict, c *HotKeyExpiryConfig) bool {
	if a := k.alarm; a != nil {
		worse := v.worseThan(a.severity, a.priority)
		if worse {
			a.severity, a.priority, a.cause = v.severity, v.priority, v.cause
		}
		return worse
	}
	if v.severity == Info {
		return false
	}
	first := h
	if v.cause == causeRecurrence {
		first = &k.episodes[slices.IndexFunc(k.episodes, func(h hotEpisode) bool { return k.dogpile(&h) >= c.TicketPeak })]
	}
	k.alarm = &hotAlarm{
		severity: v.severity, priority: v.priority, cause: v.cause,
		service: e.Window.Service,
		onset:   first.onset, detected: at, quietSince: at, since: first.started,
		recurred: k.recurrences(c.TicketPeak), outOf: len(k.episodes),
	}
	for i := range k.episodes {
		k.count(&k.episodes[i])
	}
	return true
}

// findWorst finds the worst episode anew, for any of those remembered may have
// changed. One that is no longer remembered stays as it was.
func (k *hotKey) findWorst() {
	a := k.alarm
	if a.worst.started > k.forgotten {
		a.worst = hotEpisode{}
	}
	for i := range k.episodes {
		h := &k.episodes[i]
		if h.started >= a.since && (a.worst.started == 0 || k.dogpile(h) > k.dogpile(&a.worst)) {
			a.worst = *h
		}
	}
}

// over reports whether the finding has been quiet for long enough. Time at which
// nobody reported does not count.
func (k *hotKey) over(at signal.Nanos, reporting bool, c *HotKeyExpiryConfig) bool {
	a := k.alarm
	if !reporting {
		a.quietSince = max(a.quietSince, at)
		return false
	}
	return at.Sub(a.quietSince) >= c.hold(k.ttl)
}
