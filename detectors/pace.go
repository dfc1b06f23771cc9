package detectors

import (
	"math"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// paceSamples is how many recomputes make a recompute time known.
	paceSamples = 20
	// paceKeep is how old the recomputes that count may be, unless there are
	// none that are younger; half of it is how old they are at least.
	paceKeep = 10 * time.Minute
	// paceBusy is how long an origin must have been saturated before its
	// throughput tells its recompute time, and how much of that is remembered.
	paceBusy     = 3 * time.Second
	paceBusyKeep = time.Minute
	// freeBelow is the share of its time an origin may be busy for and still
	// count as free: below it few recomputes find all its workers taken.
	freeBelow = 0.8
	// mostlyGood is the share of recomputes that must end well for their
	// number to be what the origin does: one that is given up may take the
	// origin's time all the same, or none of it.
	mostlyGood = 0.9
)

// pace learns how long an origin takes for one recompute when nobody else is in
// the way. What readers measure in a stampede is mostly the queue, and would
// make the origin look as slow as the stampede has made it. So two things are
// kept: the durations of times when the origin was free, and what it got done
// per second while it was saturated, which is c recomputes per recompute time.
type pace struct {
	free   [2]timings // the latest, and those before
	turned signal.Nanos

	served float64 // recomputes that ended well while saturated
	busy   float64 // for so many seconds
	full   bool    // at the last tick

	seen signal.Nanos
}

// learn takes in a tick that comes took after the last.
func (p *pace) learn(at signal.Nanos, took time.Duration, s *spending) {
	p.seen = at
	full := s.saturated()
	was := p.full
	p.full = full
	if took <= 0 || s.budget == 0 {
		return
	}
	work := s.work()
	switch {
	case full && was:
		ok, all := float64(work.Recomputes.Ends(signal.OutcomeOK)), 0.0
		for o := range signal.NumOutcomes {
			all += float64(work.Recomputes.Ends(o))
		}
		if ok < mostlyGood*all {
			return
		}
		p.served += ok
		p.busy += took.Seconds()
		for p.busy > paceBusyKeep.Seconds() {
			p.served, p.busy = p.served/2, p.busy/2
		}
	case !full && !was && work.Busy.Seconds() <= freeBelow*float64(s.budget)*took.Seconds():
		p.turn(at)
		p.free[0].observe(&work)
	}
}

// turn lets go of what is old, but never of all there is.
func (p *pace) turn(at signal.Nanos) {
	if at.Sub(p.turned).Abs() < paceKeep/2 || p.free[0].Count() < paceSamples {
		return
	}
	p.free[1], p.free[0], p.turned = p.free[0], timings{}, at
}

// speed is what an origin can do.
type speed struct {
	mean     time.Duration // of one recompute; 0 if not known
	p50, p99 time.Duration // 0 if not known
	// byThroughput: the mean was told from what the origin got done while it
	// was saturated.
	byThroughput bool
	// declared: nobody has measured it, and the operator or the application
	// says so.
	declared bool
}

// known reports whether the mean is.
func (s speed) known() bool { return s.mean > 0 }

// cost returns how long an origin of that budget is taken up by n recomputes.
func (s speed) cost(n float64, budget int) time.Duration {
	return time.Duration(min(n*float64(s.mean)/float64(max(1, budget)), math.MaxInt64/2))
}

// perSecond returns how many recomputes an origin of that budget does.
func (s speed) perSecond(budget int) float64 { return float64(budget) / s.mean.Seconds() }

// speed returns what is known of an origin of that budget, or else what is
// declared: how long a recompute takes, if that is not zero.
func (p *pace) speed(budget int, takes time.Duration) speed {
	h := p.free[0]
	h.join(&p.free[1])
	switch {
	case budget <= 0:
		return speed{}
	case h.Count() >= paceSamples:
		return speed{mean: h.mean(), p50: middle(h.Quantile(0.5)), p99: middle(h.Quantile(0.99))}
	case p.served >= paceSamples && p.busy >= paceBusy.Seconds():
		return speed{mean: time.Duration(float64(budget) * p.busy / p.served * float64(time.Second)), byThroughput: true}
	case takes > 0:
		return speed{mean: takes, declared: true}
	}
	return speed{}
}

// middle returns the middle of the bucket whose upper bound is given, so that
// what was in it is at most 9 % off either way.
func middle(bound time.Duration) time.Duration {
	return time.Duration(float64(bound) * math.Exp2(-1.0/8))
}

// meanOf returns the mean of a histogram that is not empty.
func meanOf(h *signal.Durations) time.Duration {
	var sum, n float64
	for i, c := range h {
		sum += float64(c) * float64(middle(signal.DurationBound(min(i, signal.DurationBuckets-2))))
		n += float64(c)
	}
	return time.Duration(sum / n)
}

// tell adds what is known to a list of evidence.
func (s speed) tell(l *evidenceList) {
	note := "a recompute while the origin is free, on average"
	switch {
	case s.declared:
		note = "a recompute, as declared"
	case s.byThroughput:
		note = "a recompute, by what the saturated origin gets done"
	}
	l.add("recompute.mean", s.mean.Seconds(), "s", note)
	l.addPositive("recompute.p50", s.p50.Seconds(), "s", "while the origin is free")
	l.addPositive("recompute.p99", s.p99.Seconds(), "s", "while the origin is free")
}
