package sim

import "time"

// story is what the run knows of one key: its recomputes, and the burst they
// make up.
type story struct {
	active   []*attempt // recomputes that run, of any cause
	running  int        // of them, those that count: all but warm-up
	provoked int        // of running, those that a reader's miss set off
	burst    burst
}

// burst is a maximal set of overlapping recomputes of one key.
type burst struct {
	starts   int
	peak     int  // provoked, at one instant
	ahead    bool // the first came before the value expired
	cold     bool // there had never been a value
	doubled  bool // two provoked ones have run at once
	busy     time.Duration
	survivor time.Duration // of the first that succeeded, else of the first that ended
	won      bool
	ended    bool
}

// bursts sums them up.
type bursts struct {
	n, starts, most, peak int
	few                   int // of at most fewStarts
	later                 int // of n, those not cold
	expired               int // of later, those whose value expired first
	ahead                 int // starts that came before expiry
	duplicates            int
	busy, wasted          time.Duration
	excess, exposure      float64
}

// fewStarts is the number of starters that XFetch is said to keep to.
const fewStarts = 3

// begin adds a recompute, and reports whether it is the first to double another.
func (b *bursts) begin(e *entry, provoked bool) (doubled bool) {
	x := &e.burst
	if e.running == 0 {
		*x = burst{ahead: !provoked, cold: !e.known}
	}
	e.running++
	x.starts++
	if !provoked {
		b.ahead++
		return false
	}
	e.provoked++
	x.peak = max(x.peak, e.provoked)
	b.peak = max(b.peak, x.peak)
	if e.provoked == 2 && !x.doubled {
		x.doubled = true
		return true
	}
	return false
}

// end ends one that took so long, and the burst if it was the last.
func (b *bursts) end(e *entry, took time.Duration, ok, provoked bool) {
	x := &e.burst
	e.running--
	if provoked {
		e.provoked--
	}
	x.busy += took
	if ok && !x.won || !x.ended {
		x.survivor = took
	}
	x.won, x.ended = x.won || ok, true
	if e.running == 0 {
		b.close(e)
	}
}

// close counts e's burst.
func (b *bursts) close(e *entry) {
	x := &e.burst
	b.n++
	b.starts += x.starts
	b.most = max(b.most, x.starts)
	if x.starts <= fewStarts {
		b.few++
	}
	if !x.cold {
		b.later++
		if !x.ahead {
			b.expired++
		}
	}
	b.duplicates += x.starts - 1
	b.busy += x.busy
	b.wasted += x.busy - x.survivor
	b.excess += float64(x.starts - 1)
	b.exposure += e.c.rate(e.n) * e.c.mean().Seconds()
}
