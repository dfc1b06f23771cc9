package memcached

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// tell returns the numbers of entries, and those of gets that are not a
// reader's.
func tell(entries []entry) (gids, own []uint64) {
	for _, e := range entries {
		gids = append(gids, e.gid)
		if e.own {
			own = append(own, e.gid)
		}
	}
	return gids, own
}

func TestBacklogWaitsForWhatMayComeBefore(t *testing.T) {
	const ms = signal.Nanos(time.Millisecond)
	var b backlog
	b.add(entry{gid: 7, seen: 1000 * ms})
	b.add(entry{gid: 9, seen: 1000 * ms})
	if gids, _ := tell(b.release(999 * ms)); gids != nil {
		t.Errorf("released %v too early", gids)
	}
	b.add(entry{gid: 8, seen: 1400 * ms}) // the server's next round brings what its last one missed
	b.add(entry{gid: 10, seen: 1400 * ms})
	if gids, _ := tell(b.release(1000 * ms)); !slices.Equal(gids, []uint64{7, 8, 9}) {
		t.Errorf("released %v, want 7 to 9: whatever comes before 9 is there", gids)
	}
	if gids, _ := tell(b.release(1400 * ms)); !slices.Equal(gids, []uint64{10}) {
		t.Errorf("released %v, want 10", gids)
	}
}

func TestBacklogTellsTheGetOfAStoreFromAReaders(t *testing.T) {
	tests := []struct {
		name    string
		entries []entry
		own     []uint64
	}{
		{"a reader misses and stores", []entry{
			{gid: 1, conn: 1, key: "a", kind: got}, {gid: 2, conn: 1, key: "a", kind: got}, {gid: 3, conn: 1, key: "a", kind: stored},
		}, []uint64{2}},
		{"a store that nobody missed", []entry{
			{gid: 1, conn: 1, key: "a", kind: got}, {gid: 2, conn: 1, key: "a", kind: stored},
		}, []uint64{1}},
		{"an add that is refused", []entry{
			{gid: 1, conn: 1, key: "a", kind: got, found: value}, {gid: 2, conn: 1, key: "a", kind: refused},
		}, []uint64{1}},
		{"another reader in between", []entry{
			{gid: 1, conn: 1, key: "a", kind: got}, {gid: 2, conn: 2, key: "a", kind: got}, {gid: 3, conn: 1, key: "a", kind: stored},
		}, []uint64{1}},
		{"a get and a store of different keys", []entry{
			{gid: 1, conn: 1, key: "a", kind: got}, {gid: 2, conn: 1, key: "b", kind: stored},
		}, nil},
		{"a reader's get before one that found its key", []entry{
			{gid: 1, conn: 1, key: "a", kind: got}, {gid: 2, conn: 1, kind: got, found: value}, {gid: 3, conn: 1, key: "a", kind: stored},
		}, nil},
		{"the get after a store that failed, whose connection is not known", []entry{
			{gid: 1, conn: -5, key: "a", kind: failed}, {gid: 2, conn: 1, key: "a", kind: got}, {gid: 3, conn: 1, key: "a", kind: got},
		}, []uint64{2}},
		{"a get long after a store that failed", []entry{
			{gid: 1, conn: -5, key: "a", kind: failed}, {gid: 2, conn: 1, key: "a", kind: got, at: signal.Nanos(time.Second)},
		}, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var b backlog
			rand.Shuffle(len(tc.entries), func(i, j int) { tc.entries[i], tc.entries[j] = tc.entries[j], tc.entries[i] })
			for _, e := range tc.entries {
				b.add(e)
			}
			gids, own := tell(b.release(0))
			if len(gids) != len(tc.entries) || !slices.IsSorted(gids) {
				t.Errorf("released %v", gids)
			}
			if !slices.Equal(own, tc.own) {
				t.Errorf("got %v, want %v for the server's own", own, tc.own)
			}
		})
	}
}

func TestBacklogKnowsAServersOwnGetThoughItsStoreWaits(t *testing.T) {
	var b backlog
	b.add(entry{gid: 1, conn: 1, key: "a", kind: got, seen: 1})
	b.add(entry{gid: 2, conn: 1, key: "a", kind: stored, seen: 2})
	if _, own := tell(b.release(1)); !slices.Equal(own, []uint64{1}) {
		t.Errorf("got %v, want 1", own)
	}
}
