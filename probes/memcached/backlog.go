package memcached

import (
	"cmp"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// holdBack is how long a record waits for those that come before it.
//
// The server's threads log each for itself, and one thread gathers that, round
// after round; it sleeps up to a second when there was nothing to gather, and at
// most half of that when there was. What one of its rounds missed comes with the
// next, so behind what happened later: by 0.5 s, and what the machine takes to
// wake up.
const holdBack = 700 * time.Millisecond

// entry is a record that waits.
type entry struct {
	gid   uint64
	at    signal.Nanos // when it happened, on this machine's clock
	seen  signal.Nanos // when it was read, on this machine's clock
	conn  int64
	key   string // empty if nobody wants to know
	ttl   int32
	kind  kind
	found found
	own   bool // not a reader's get: the server made it to store the key
}

// backlog puts records in the order in which they happened. The zero value is
// ready.
type backlog struct {
	entries []entry
	next    map[int64]int // of a connection: the entry that follows, while they are looked at from the end
}

func (b *backlog) add(e entry) { b.entries = append(b.entries, e) }

// release returns, in order, those entries before which nothing can come any
// more: whatever came before one that was seen at until or earlier is there. The
// rest waits. What it returns is valid until entries are added.
func (b *backlog) release(until signal.Nanos) []entry {
	slices.SortStableFunc(b.entries, func(x, y entry) int { return cmp.Compare(x.gid, y.gid) })
	b.tellApart()
	n := 0
	for i := range b.entries {
		if b.entries[i].seen <= until {
			n = i + 1
		}
	}
	ripe := b.entries[:n:n]
	b.entries = b.entries[n:]
	return ripe
}

// tellApart marks the gets that the server makes to store a key. Of one
// connection, such a get comes right before the line that tells of the store:
// both are written while one command is carried out. It must be called before
// the store of a get can have been released, which holds as both are seen at
// once.
func (b *backlog) tellApart() {
	if b.next == nil {
		b.next = map[int64]int{}
	}
	clear(b.next)
	for i := len(b.entries) - 1; i >= 0; i-- {
		e := &b.entries[i]
		switch e.kind {
		case got:
			if next, ok := b.next[e.conn]; ok {
				n := &b.entries[next]
				e.own = e.own || (n.kind == stored || n.kind == refused) && n.key == e.key
			}
			b.next[e.conn] = i
		case stored, refused:
			b.next[e.conn] = i
		}
	}
	b.tellFailed()
}

// failedWithin is how soon after a store that failed the server looks for what
// it was to replace. Some versions do not say whose connection that was, so time
// has to do.
const failedWithin = time.Millisecond

// tellFailed marks the gets the server makes after a store failed, to drop what
// the new value should have replaced.
func (b *backlog) tellFailed() {
	for i := range b.entries {
		f := &b.entries[i]
		if f.kind != failed {
			continue
		}
		for j := i + 1; j < len(b.entries) && b.entries[j].at.Sub(f.at) <= failedWithin; j++ {
			if e := &b.entries[j]; e.kind == got && e.key == f.key {
				e.own = true
				break
			}
		}
	}
}
