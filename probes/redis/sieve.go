package redis

import (
	"hash/maphash"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	maxLevel = 16
	// calmFor is how many seconds in a row must have half the events that are
	// allowed before more keys are watched again.
	calmFor = 10
)

// sieve lets so many events a second pass. If there are more it lets those of
// every second key pass, then of every fourth and so on, so that what passes of
// a key is all of it.
type sieve struct {
	most  int
	seed  maphash.Seed
	at    signal.Nanos // when the events came that are passed now
	level uint         // one key in 1<<level passes

	second    signal.Nanos // when the current second began
	all, some int          // events in it, and of them those that passed at this level
	calm      int          // seconds
}

func newSieve(most int) sieve { return sieve{most: most, seed: maphash.MakeSeed()} }

// takes reports whether events of the key pass.
func (s *sieve) takes(key []byte) bool {
	return s.level == 0 || maphash.Bytes(s.seed, key)&(1<<s.level-1) == 0
}

// share returns of how many keys one passes.
func (s *sieve) share() int { return 1 << s.level }

// passes counts an event and reports whether it passes.
func (s *sieve) passes(key []byte) bool {
	if s.at.Sub(s.second) >= time.Second {
		s.turn()
	}
	s.all++
	if !s.takes(key) {
		return false
	}
	if s.some++; s.some > s.most && s.level < maxLevel {
		s.level++
		s.some = 0
		return s.takes(key)
	}
	return true
}

// turn begins another second.
func (s *sieve) turn() {
	if s.level > 0 && s.all>>(s.level-1) < s.most/2 {
		s.calm++
	} else {
		s.calm = 0
	}
	if s.calm >= calmFor {
		s.level, s.calm = s.level-1, 0
	}
	s.second, s.all, s.some = s.at, 0, 0
}
