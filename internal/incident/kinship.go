package incident

import (
	"iter"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// rule is one way a finding of one detector, the parent, explains one of
// another.
type rule struct {
	parent, child string
	scope         detectors.Scope
	lead          time.Duration
	lesser        bool
}

// explains reports whether p explains c. They share what the scope says.
func (r *rule) explains(p, c *member) bool {
	return c.since() >= p.since().Add(-r.lead) && (r.lesser || p.finding.Severity >= c.finding.Severity)
}

// kinship is which detectors' findings explain which. It does not change.
type kinship struct {
	ofParent, ofChild map[string][]rule
	ranks             map[string]int
}

func newKinship(relations []detectors.Relation, precedence []string) *kinship {
	k := &kinship{map[string][]rule{}, map[string][]rule{}, map[string]int{}}
	for i, id := range precedence {
		k.ranks[id] = i
	}
	for _, r := range relations {
		if r.Scope == detectors.Apart {
			continue
		}
		for _, child := range r.Children {
			one := rule{r.Parent, child, r.Scope, r.Lead, r.Lesser}
			k.ofParent[r.Parent] = append(k.ofParent[r.Parent], one)
			k.ofChild[child] = append(k.ofChild[child], one)
		}
	}
	return k
}

// rank is lower for what is closer to the cause. A detector nobody has heard of
// (a state file may name one) explains nothing and comes last.
func (k *kinship) rank(detector string) int {
	if n, ok := k.ranks[detector]; ok {
		return n
	}
	return len(k.ranks)
}

// place is what findings of one detector can share.
type place struct {
	detector string
	scope    detectors.Scope
	name     string // of a cache, or of an origin
	key      signal.KeyID
}

// places finds members by what they share.
type places map[place]map[*member]struct{}

func placesOf(m *member) []place {
	out := []place{
		{m.detector, detectors.SameKey, m.cache, m.key},
		{m.detector, detectors.SameCache, m.cache, 0},
	}
	if m.finding.Origin != "" {
		out = append(out, place{m.detector, detectors.SameOrigin, m.finding.Origin, 0})
	}
	return out
}

func (p places) add(m *member) {
	for _, at := range placesOf(m) {
		if p[at] == nil {
			p[at] = map[*member]struct{}{}
		}
		p[at][m] = struct{}{}
	}
}

func (p places) remove(m *member) {
	for _, at := range placesOf(m) {
		delete(p[at], m)
		if len(p[at]) == 0 {
			delete(p, at)
		}
	}
}

// near yields the findings of a detector that share with m what scope says, in
// no order and some perhaps twice.
func (p places) near(m *member, detector string, scope detectors.Scope) iter.Seq[*member] {
	at := []place{{detector, scope, m.cache, 0}}
	switch scope {
	case detectors.SameKey:
		at[0].key = m.key
	case detectors.SameOrigin:
		at[0].scope = detectors.SameCache
		if m.finding.Origin != "" {
			at = append(at, place{detector, scope, m.finding.Origin, 0})
		}
	}
	return func(yield func(*member) bool) {
		for _, at := range at {
			for other := range p[at] {
				if !yield(other) {
					return
				}
			}
		}
	}
}
