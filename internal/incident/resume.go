package incident

import (
	"maps"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// expire gives up findings from before a restart that have not come again in
// time.
func (b *book) expire(now signal.Nanos) {
	if len(b.unconfirmed) == 0 {
		return
	}
	// A clock that was set back starts the wait again: too long is better
	// than too short.
	if b.confirmFrom == 0 || now < b.confirmFrom {
		b.confirmFrom = now
	}
	if now.Sub(b.confirmFrom) < b.opts.ConfirmWithin {
		return
	}
	// Children first: see clear.
	late := slices.SortedFunc(maps.Keys(b.unconfirmed), func(x, y *member) int { return b.compareCauses(y, x) })
	for _, m := range late {
		if m.leads() {
			b.stats.Unconfirmed++
		}
		b.lose(now, m, ReasonUnconfirmed)
	}
}

// resume takes over an incident from before a restart.
func (b *book) resume(inc *Incident) {
	b.byID[inc.ID] = inc
	if !inc.Open() {
		b.file(inc)
		return
	}
	g := newGroup(inc)
	b.open[inc.ID] = g
	g.lead = newMember(inc.Opened, inc.Finding)
	g.lead.subject, g.lead.paged, g.lead.in = inc.subject(), inc.Paged, g
	g.members[g.lead.subject] = g.lead
	for i := range inc.Children {
		if c := &inc.Children[i]; c.Cleared == 0 {
			g.members[c.subject()] = c.member(g)
		}
	}
	for _, m := range g.members {
		b.add(m)
		b.unconfirmed[m] = struct{}{}
		b.unsettled[m] = struct{}{}
	}
	b.count(inc, false)
	b.stats.Resumed++
}
