package rig

import "time"

// Story is what an account knows of one key: the burst its recomputes make up.
// The zero value is that of a key nothing has happened to.
type Story struct {
	running  int // recomputes that count: all but warm-up
	provoked int // of running, those that a reader's miss set off
	burst    burst
}

// burst is a maximal set of overlapping recomputes of one key.
type burst struct {
	starts   int
	peak     int  // provoked, at one instant
	ahead    bool // the first came before the value expired
	cold     bool // there had never been a value
	doubled  bool // two provoked ones have run at once
	noted    bool // and that is in the account's onsets, from this index on
	onsets   int
	late     bool // it began in spite of early refreshes
	bypass   bool // two provoked ones of one process have run at once
	busy     time.Duration
	survivor time.Duration // of the first that succeeded, else of the first that ended
	won      bool
	ended    bool
	rolled   float64 // how far a deploy had come
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
	rollout               rollout
}

// fewStarts is the number of starters that XFetch is said to keep to.
const fewStarts = 3

// begin adds a recompute, and reports whether it is the first to double another.
// known says that there has been a value.
func (b *bursts) begin(s *Story, provoked, known bool) (doubled bool) {
	x := &s.burst
	if s.running == 0 {
		*x = burst{ahead: !provoked, cold: !known, rolled: b.rollout.share}
	}
	s.running++
	x.starts++
	if !provoked {
		b.ahead++
		return false
	}
	s.provoked++
	x.peak = max(x.peak, s.provoked)
	b.peak = max(b.peak, x.peak)
	if s.provoked == 2 && !x.doubled {
		x.doubled = true
		return true
	}
	return false
}

// end ends one that took so long, and reports whether it was the last of its
// burst.
func (b *bursts) end(s *Story, took time.Duration, ok, provoked bool) (over bool) {
	x := &s.burst
	s.running--
	if provoked {
		s.provoked--
	}
	x.busy += took
	if ok && !x.won || !x.ended {
		x.survivor = took
	}
	x.won, x.ended = x.won || ok, true
	if s.running > 0 {
		return false
	}
	b.close(x)
	return true
}

// close counts a burst.
func (b *bursts) close(x *burst) {
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
	b.rollout.add(x.rolled, x.starts)
}
