package memcached

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/probes/keyspace"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// heard is what a ledger is told.
type heard struct {
	Key  string
	Kind keyspace.Kind
	TTL  time.Duration
}

// recorder is a ledger that notes what it is told.
type recorder struct{ list []heard }

func (r *recorder) Observe(e keyspace.Event) {
	r.list = append(r.list, heard{string(e.Key), e.Kind, e.TTL})
}
func (r *recorder) Gap() { r.list = append(r.list, heard{Key: "(gap)"}) }

func (r *recorder) Flush(signal.Nanos) ([]*signal.Window, keyspace.Counts) {
	return nil, keyspace.Counts{}
}

func TestEventsTellWhatTheLogMeans(t *testing.T) {
	const s = signal.Nanos(time.Second)
	lock, err := keyspace.ParseLockPattern("lock:{key}")
	if err != nil {
		t.Fatal(err)
	}
	taken := []entry{{kind: got, conn: 1, key: "lock:a", own: true}, {kind: stored, conn: 1, key: "lock:a", ttl: 10, at: 100 * s}}
	heldFor10s := heard{"lock:a", keyspace.Store, 10 * time.Second}
	tests := []struct {
		name      string
		deletions bool
		entries   []entry
		want      []heard
	}{
		{"a miss", false, []entry{{kind: got, key: "a"}}, []heard{{"a", keyspace.Miss, 0}}},
		{"a hit is nothing", false, []entry{{kind: got, found: value}}, nil},
		{"the first to find a value expired misses it", false, []entry{{kind: got, key: "a", found: outdated}},
			[]heard{{"a", keyspace.Expired, 0}, {"a", keyspace.Miss, 0}}},
		{"the first to find a value flushed misses it", false, []entry{{kind: got, key: "a", found: flushed}},
			[]heard{{"a", keyspace.Delete, 0}, {"a", keyspace.Miss, 0}}},
		{"a store, whose own get is no miss", false, []entry{{kind: got, key: "a", own: true}, {kind: stored, key: "a", ttl: 5}},
			[]heard{{"a", keyspace.Store, 5 * time.Second}}},
		{"a store over a value that had expired", false, []entry{{kind: got, key: "a", own: true, found: outdated}, {kind: stored, key: "a", ttl: 5}},
			[]heard{{"a", keyspace.Expired, 0}, {"a", keyspace.Store, 5 * time.Second}}},
		{"a store for ever", false, []entry{{kind: stored, key: "a"}}, []heard{{"a", keyspace.Store, -1}}},
		{"a store past its expiry is a way to delete", false, []entry{{kind: stored, key: "a", ttl: -64}}, []heard{{"a", keyspace.Delete, 0}}},
		{"a store that is refused or fails", false, []entry{{kind: refused, key: "a"}, {kind: failed, key: "a"}}, nil},
		{"an eviction", false, []entry{{kind: evicted, key: "a"}}, []heard{{"a", keyspace.Evicted, 0}}},
		{"a deletion", true, []entry{{kind: deleted, key: "a"}}, []heard{{"a", keyspace.Delete, 0}}},

		{"a lock is released by who took it", false, append(taken[:2:2], entry{kind: got, found: value, conn: 1, key: "lock:a"}),
			[]heard{heldFor10s, {"lock:a", keyspace.Delete, 0}}},
		{"a lock is not released by who waits for it", false, append(taken[:2:2],
			entry{kind: got, found: value, conn: 2, key: "lock:a"},
			entry{kind: got, found: value, conn: 1, key: "lock:a", own: true}, entry{kind: refused, conn: 1, key: "lock:a"}),
			[]heard{heldFor10s}},
		{"a lock is not released by being looked at where deletions are logged", true, append(taken[:2:2], entry{kind: got, found: value, conn: 1, key: "lock:a"}),
			[]heard{heldFor10s}},
		{"a lock that is gone before its time was released on another connection", false, append(taken[:2:2],
			entry{kind: got, conn: 2, key: "lock:a", own: true, at: 104 * s}, entry{kind: stored, conn: 2, key: "lock:a", ttl: 10, at: 104 * s}),
			[]heard{heldFor10s, {"lock:a", keyspace.Delete, 0}, heldFor10s}},
		{"a lock that is gone at its time expired", false, append(taken[:2:2],
			entry{kind: got, conn: 2, key: "lock:a", own: true, at: 109500 * s / 1000}, entry{kind: stored, conn: 2, key: "lock:a", ttl: 10, at: 110 * s}),
			[]heard{heldFor10s, {"lock:a", keyspace.Expired, 0}, heldFor10s}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var r recorder
			v := newEvents(&r, []keyspace.LockPattern{lock})
			v.deletions = tc.deletions
			v.observe(tc.entries)
			if diff := cmp.Diff(tc.want, r.list); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAGapForgetsWhoHoldsALock(t *testing.T) {
	lock, err := keyspace.ParseLockPattern("lock:*")
	if err != nil {
		t.Fatal(err)
	}
	var r recorder
	v := newEvents(&r, []keyspace.LockPattern{lock})
	v.observe([]entry{{kind: stored, conn: 1, key: "lock:a", ttl: 10}})
	v.gap()
	v.observe([]entry{{kind: got, found: value, conn: 1, key: "lock:a"}})
	want := []heard{{"lock:a", keyspace.Store, 10 * time.Second}, {Key: "(gap)"}}
	if diff := cmp.Diff(want, r.list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKeysOfHitsAreNotKept(t *testing.T) {
	lock, err := keyspace.ParseLockPattern("lock:*")
	if err != nil {
		t.Fatal(err)
	}
	v := newEvents(&recorder{}, []keyspace.LockPattern{lock})
	for key, want := range map[string]string{"a": "", "lock:a": "lock:a"} {
		e := v.entry(record{kind: got, found: value, key: []byte(key)}, &clock{}, 0)
		if e.key != want {
			t.Errorf("of a hit on %q, kept %q, want %q", key, e.key, want)
		}
	}
}
