package detectors

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// originName tells origins apart. One without a name belongs to its cache.
type originName struct{ origin, cache string }

func originOf(c *signal.CacheState) originName {
	if c.Origin.Name == "" {
		return originName{cache: c.Cache}
	}
	return originName{origin: c.Origin.Name}
}

func compareOrigins(a, b originName) int {
	return cmp.Or(strings.Compare(a.origin, b.origin), strings.Compare(a.cache, b.cache))
}

// String returns what to call it in a sentence.
func (n originName) String() string {
	if n.origin == "" {
		return "the origin of " + n.cache
	}
	return "origin " + n.origin
}

// label returns what to call it in a metric.
func (n originName) label() string { return cmp.Or(n.origin, n.cache) }

// undeclared says what is missing if an origin has no budget.
func (n originName) undeclared() string {
	name := cmp.Or(n.origin, "NAME")
	s := fmt.Sprintf("Not enough data: what its origin can run at once is not declared. Declare origins.%s.concurrency", name)
	if n.origin == "" {
		s += fmt.Sprintf(" and caches.%s.origin", n.cache)
	}
	return s + "."
}

// recompute says where to declare how long a recompute takes.
func (n originName) recompute() string {
	if n.origin == "" {
		return ""
	}
	return fmt.Sprintf(" as origins.%s.recompute", n.origin)
}

// spending is an origin with the caches that spend it, as one tick has them.
type spending struct {
	name   originName
	budget int // the largest that is declared; 0 if none is
	// takes is the longest recompute time that is declared; 0 if none is.
	takes  time.Duration
	caches []*signal.CacheState
}

// spendings groups the caches of a tick that report by their origin; origins
// and caches are in the order of their names.
func spendings(t *signal.Tick) []spending {
	by := map[originName]*spending{}
	var names []originName
	for i := range t.Caches {
		c := &t.Caches[i]
		if !reporting(c) {
			continue
		}
		n := originOf(c)
		if by[n] == nil {
			by[n] = &spending{name: n}
			names = append(names, n)
		}
		by[n].budget = max(by[n].budget, budgetOf(c))
		by[n].takes = max(by[n].takes, c.Origin.Recompute)
		by[n].caches = append(by[n].caches, c)
	}
	slices.SortFunc(names, compareOrigins)
	out := make([]spending, len(names))
	for i, n := range names {
		out[i] = *by[n]
		slices.SortFunc(out[i].caches, func(a, b *signal.CacheState) int { return strings.Compare(a.Cache, b.Cache) })
	}
	return out
}

// running returns how many provoked recomputes run or queue at it.
func (s *spending) running() uint64 {
	var n uint64
	for _, c := range s.caches {
		n += uint64(c.Running)
	}
	return n
}

// saturated reports whether all it can run at once is taken. Instances count what
// they run at different instants, so that one in eight may be missing from the
// sum.
func (s *spending) saturated() bool { return s.budget > 0 && s.running() >= s.allBut() }

// allBut is what must be counted for all of the budget to be taken.
func (s *spending) allBut() uint64 { return uint64(max(0, s.budget-s.budget/8)) }

// work returns what was done about all its caches.
func (s *spending) work() signal.Work {
	var w signal.Work
	for _, c := range s.caches {
		w.Add(&c.Work)
	}
	return w
}
