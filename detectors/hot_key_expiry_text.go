package detectors

import (
	"fmt"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// finding says what is known at a tick.
func (k *hotKey) finding(at signal.Nanos, c *HotKeyExpiryConfig) Finding {
	a := k.alarm
	return Finding{
		Detector: hotKeyExpiryID,
		Service:  a.service,
		Cache:    k.cache,
		Key:      a.key,
		Origin:   a.origin.Name,
		Severity: a.severity,
		Priority: a.priority,
		Onset:    min(a.onset, at),
		Detected: a.detected,
		Summary:  k.summary(c),
		Advice:   hotKeyExpiryDoc.Advice,
		Evidence: k.evidence(c),
	}
}

// evidence lists what is known, and nothing that is not. Figures without a
// prefix are those of the worst episode, so that they belong together; "total."
// is of the whole finding, and "latest." of its latest episode.
func (k *hotKey) evidence(c *HotKeyExpiryConfig) []Evidence {
	a, w := k.alarm, &k.alarm.worst
	var l evidenceList
	l.add("peak", float64(w.peak), "{recompute}", a.peakNote(c))
	l.addPositive("budget", float64(a.origin.Budget), "{recompute}", a.budgetNote())
	if w.peakHigh != w.peak {
		l.add("peak.high", float64(w.peakHigh), "{recompute}", "if every process had its worst moment at once")
	}
	l.add("duplicates", float64(w.duplicates), "{recompute}", w.boundNote("served nobody"))
	l.add("instances", float64(w.instances), "{instance}", "that recomputed it")
	l.add("wasted", seconds(w.wasted), "s", w.boundNote("of the origin's time"))
	l.add("starts", float64(w.starts), "{recompute}", "")
	l.addPositive("recompute.mean", seconds(w.recompute), "s", "of those that ended")
	l.addPositive("ttl", seconds(w.ttl), "s", "the shortest lately")
	l.addPositive("while_fresh", float64(w.whileFresh), "{recompute}", "started although a fresh value was there")
	l.addPositive("readers", float64(w.readersHigh), "{reader}", w.readersNote())
	l.addPositive("clock.offset", seconds(w.offset.Abs()), "s", "largest correction of an instance's clock")
	if a.total.episodes > 1 {
		l.add("latest.peak", float64(k.episodes[len(k.episodes)-1].peak), "{recompute}", "in the latest episode")
	}
	l.add("total.episodes", float64(a.total.episodes), "{episode}", "since the onset")
	l.add("total.starts", float64(a.total.starts), "{recompute}", "")
	l.add("total.duplicates", float64(a.total.duplicates), "{recompute}", "")
	l.add("total.wasted", seconds(a.total.wasted), "s", "")
	return l
}

// evidenceList is evidence under construction.
type evidenceList []Evidence

func (l *evidenceList) add(name string, value float64, unit, note string) {
	*l = append(*l, Evidence{name, value, unit, note})
}

// addPositive adds a value of which zero means that it is not known, or that
// there is nothing to say.
func (l *evidenceList) addPositive(name string, value float64, unit, note string) {
	if value > 0 {
		l.add(name, value, unit, note)
	}
}

func (a *hotAlarm) peakNote(c *HotKeyExpiryConfig) string {
	note := fmt.Sprintf("at one instant in the fleet; pages at %d", c.pageAt(a.origin.Budget))
	if a.worst.peakHigh != a.worst.peak {
		note += "; a lower bound"
	}
	return note
}

func (a *hotAlarm) budgetNote() string {
	if a.origin.Name == "" {
		return "as declared"
	}
	return "as declared for " + a.origin.Name
}

func (h *hotEpisode) boundNote(note string) string {
	if h.sampled {
		note += "; a lower bound"
	}
	return note
}

func (h *hotEpisode) readersNote() string {
	if h.readersLow == h.readersHigh {
		return "waiting at one instant"
	}
	return "waiting, if every process had its worst moment at once"
}

// summary says in a sentence what is wrong.
func (k *hotKey) summary(c *HotKeyExpiryConfig) string {
	a, w := k.alarm, &k.alarm.worst
	if a.cause == causeRecurrence {
		return fmt.Sprintf("%s: %d of its last %s had %d or more recomputes of one key at once, the worst %d; %s in all.",
			k.where(), a.recurred, count(a.outOf, "episode"), c.TicketPeak, w.peak, count(a.total.duplicates, "duplicate"))
	}
	against := ""
	if a.origin.Budget > 0 {
		against = fmt.Sprintf(" against a budget of %d", a.origin.Budget)
	}
	s := fmt.Sprintf("%s: %s of one key at once%s, across %s; %d were duplicates.",
		k.where(), count(w.peak, "recompute"), against, count(w.instances, "instance"), w.duplicates)
	if against == "" {
		s += " No budget is declared."
	}
	if a.cause == causeColdStart {
		s += " The fleet had just started."
	}
	return s
}

// clearedSummary says in a sentence that it is over.
func (k *hotKey) clearedSummary(c *HotKeyExpiryConfig) string {
	a := k.alarm
	return fmt.Sprintf("%s: no key had %d or more recomputes at once for %v. At its worst there were %d; %s wasted %.1f s of the origin's time.",
		k.where(), c.keepsOpen(a.severity), c.hold(k.ttl).Round(time.Second), a.worst.peak, count(a.total.episodes, "episode"), seconds(a.total.wasted))
}

// where names the key by its group, never by itself.
func (k *hotKey) where() string {
	group := k.alarm.key.Group
	if group == "" {
		group = "A key"
	}
	return fmt.Sprintf("%s in cache %s", group, k.cache)
}

// count writes a number and what it counts.
func count[T int | uint64](n T, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
