package detectors

import "fmt"

// phase adds where an origin is in the plane of load, hits, use, amplification
// and goodput, against what is usual.
func (o *origin) phase(l *evidenceList) {
	f := &o.last10
	l.add("goodput", f.goodput(), "1", against(o.known, "usual %.2f", o.usual.good)+"; of users' reads, in 10 s")
	l.add("amplification", f.amplification(), "1", "attempts on the origin for each first one")
	l.add("fill_success", f.fillSuccess(), "1", "of the recomputes that readers waited for")
	l.add("hit_ratio", f.hitRatio(), "1", against(o.known, "usual %.2f", o.usual.hits))
	l.add("load", f.load(), "{read}/s", against(o.known, "usual %.0f", o.usual.load)+"; retries left out")
	if o.budget > 0 {
		l.add("use", f.use(o.budget), "1", "recomputes that run or wait, over what the origin can run at once")
	}
}

// background adds what the judgement rests on.
func (o *origin) background(l *evidenceList) {
	if o.budget > 0 {
		l.add("budget", float64(o.budget), "{recompute}", "as declared for "+o.name.String())
	}
	if !o.known {
		return
	}
	l.add("recompute.usual", o.usual.delta, "s", "mean of one when nobody is in the way")
	l.add("baseline.minutes", float64(o.usual.minutes), "{minute}", o.usual.note())
}

// note says how far to trust what is usual.
func (u *usual) note() string {
	switch {
	case u.lastWeek:
		return "healthy, of the same hour last week"
	case u.young():
		return "healthy, all within the last day: a young baseline"
	}
	return "healthy, the latest"
}

func against(known bool, format string, v float64) string {
	if !known {
		return "usual not known"
	}
	return fmt.Sprintf(format, v)
}
