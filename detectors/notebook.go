package detectors

import (
	"maps"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// notebook remembers something of each of a bounded number of keys, of those that
// came up lately. It has two halves: when the newer one is full it becomes the
// older one, and what was in that and has not come up since is forgotten. So a
// flood of keys costs no search for which to forget.
type notebook[T any] struct {
	most         int
	keep         time.Duration // how long an idle key is remembered
	newer, older map[subject]*page[T]
	sweepAt      signal.Nanos
}

// page is what is remembered of one key.
type page[T any] struct {
	subject
	seen signal.Nanos
	note T
}

func newNotebook[T any](most int, keep time.Duration) *notebook[T] {
	return &notebook[T]{most: most, keep: keep, newer: map[subject]*page[T]{}, older: map[subject]*page[T]{}}
}

// open returns the note of s, a zero one if s is not remembered.
func (n *notebook[T]) open(at signal.Nanos, s subject) *T {
	p := n.newer[s]
	if p == nil {
		if p = n.older[s]; p == nil {
			p = &page[T]{subject: s}
		}
		delete(n.older, s)
		if len(n.newer) >= n.most/2 {
			n.older, n.newer = n.newer, map[subject]*page[T]{}
		}
		n.newer[s] = p
	}
	p.seen = at
	return &p.note
}

// find returns the note of s, or nil.
func (n *notebook[T]) find(s subject) *T {
	if p := n.newer[s]; p != nil {
		return &p.note
	}
	if p := n.older[s]; p != nil {
		return &p.note
	}
	return nil
}

// forget tears the page of s out.
func (n *notebook[T]) forget(s subject) {
	delete(n.newer, s)
	delete(n.older, s)
}

// sweep forgets what has been idle for long.
func (n *notebook[T]) sweep(at signal.Nanos) {
	if at < n.sweepAt && n.sweepAt.Sub(at) <= sweepEvery {
		return
	}
	n.sweepAt = at.Add(sweepEvery)
	idle := func(_ subject, p *page[T]) bool { return at.Sub(p.seen).Abs() > n.keep }
	maps.DeleteFunc(n.newer, idle)
	maps.DeleteFunc(n.older, idle)
}

// sorted returns all pages, by subject.
func (n *notebook[T]) sorted() []*page[T] {
	out := make([]*page[T], 0, n.len())
	out = slices.AppendSeq(out, maps.Values(n.newer))
	out = slices.AppendSeq(out, maps.Values(n.older))
	slices.SortFunc(out, func(a, b *page[T]) int { return compareSubjects(a.subject, b.subject) })
	return out
}

func (n *notebook[T]) len() int { return len(n.newer) + len(n.older) }
