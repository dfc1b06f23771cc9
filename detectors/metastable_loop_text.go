package detectors

import (
	"fmt"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// raise says that the origin is in a loop, with what is known at a tick.
func (d *metastableLoop) raise(at signal.Nanos, o *watched[loopState]) {
	f := &o.last10
	d.alarms.raise(at, symptom{
		subject: o.own.subject, service: o.service[o.own.subject.cache],
		severity: Page, priority: 1, onset: o.own.onset,
		evidence: d.evidence(at, o),
		summary: fmt.Sprintf("Cache %s: %.0f %% of reads get an answer, %s. %s has not come back since %s, though %s.",
			o.own.subject.cache, 100*f.goodput(), d.sustains(f), capital(o.name.String()), began(&o.trigger, o.own.onset), o.bearable()),
	})
}

// sustains says in words what keeps the loop going.
func (d *metastableLoop) sustains(f *flow) string {
	if f.amplification() >= d.c.Amplification {
		return fmt.Sprintf("with %.1f attempts on the origin for each first one", f.amplification())
	}
	return fmt.Sprintf("the hit ratio is %.2f, and %.0f %% of recomputes fill the cache", f.hitRatio(), 100*f.fillSuccess())
}

// bearable says why the origin should be well.
func (o *origin) bearable() string {
	if o.budget > 0 {
		return fmt.Sprintf("this load would take %.0f %% of it with a warm cache and no retries", 100*o.counterfactual(&o.last60))
	}
	return "it has carried this load within the last day"
}

// began says in words what started the trouble.
func began(g *trigger, onset signal.Nanos) string {
	if g.kind == noTrigger || g.until != onset {
		return onset.Time().Format("15:04:05") + " UTC"
	}
	return g.kind.String() + " at " + g.from.Time().Format("15:04:05") + " UTC"
}

// capital returns s with a first letter fit to begin a sentence.
func capital(s string) string {
	if s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

func (d *metastableLoop) evidence(at signal.Nanos, o *watched[loopState]) []Evidence {
	var l evidenceList
	o.phase(&l)
	if o.budget > 0 {
		l.add("use.counterfactual", o.counterfactual(&o.last60), "1", fmt.Sprintf("with a warm cache and no retries; a loop if at most %.1f", fullAt))
		l.add("admission.target", o.admission(), "{read}/s", "of users, at most, while attempts and hit ratio are as they are")
	}
	l.add("lasting", seconds(max(0, at.Sub(o.own.onset))), "s", "since "+began(&o.trigger, o.own.onset))
	l.add("hold", seconds(d.hold(&o.origin)), "s", "that it had to outlast")
	l.addPositive("drain", o.drain(), "s", "that a system without a loop would have needed")
	if m, ok := o.carriedWell(at); ok {
		l.add("same_load.goodput", m.Good, "1", fmt.Sprintf("at %.0f reads a second, %s UTC", m.Load, m.At.Time().Format("Mon 15:04")))
	}
	o.background(&l)
	return l
}

// admission returns how many reads per second may be let in: what the origin can
// do, less a tenth, over the attempts each read costs.
func (o *origin) admission() float64 {
	f := &o.last10
	cost := f.amplification() * max(0.001, 1-f.hitRatio())
	return 0.9 * o.ceiling() / cost
}
