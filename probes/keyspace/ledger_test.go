package keyspace_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/probes/keyspace"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// t0 is when tests begin.
const t0 signal.Nanos = 1_790_000_000_000_000_000

// rig is a ledger and what it has said.
type rig struct {
	t testing.TB
	*keyspace.Ledger
	windows []*signal.Window
	counts  keyspace.Counts
}

func newRig(t testing.TB, change ...func(*keyspace.Options)) *rig {
	t.Helper()
	o := keyspace.Options{Source: signal.Source{Service: "redis", Instance: "a:1"}, Cache: "feed", Removals: true}
	for _, c := range change {
		c(&o)
	}
	l, err := keyspace.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, Ledger: l}
}

func locks(patterns ...string) func(*keyspace.Options) {
	return func(o *keyspace.Options) {
		for _, p := range patterns {
			parsed, err := keyspace.ParseLockPattern(p)
			if err != nil {
				panic(err)
			}
			o.Locks = append(o.Locks, parsed)
		}
	}
}

// see tells the ledger of n events of one kind, a millisecond apart.
func (r *rig) see(at time.Duration, n int, kind keyspace.Kind, key string) {
	for i := range n {
		r.Observe(keyspace.Event{At: t0.Add(at + time.Duration(i)*time.Millisecond), Key: []byte(key), Kind: kind})
	}
}

func (r *rig) flush(at time.Duration) {
	ws, c := r.Flush(t0.Add(at))
	r.windows, r.counts = append(r.windows, ws...), c
}

// merged returns all that was said of the key in the group.
func (r *rig) merged(group string) *signal.Window {
	r.t.Helper()
	var all *signal.Window
	for _, w := range r.windows {
		if w.Key.Group != group {
			continue
		}
		if all == nil {
			c := *w
			all = &c
			continue
		}
		all.Merge(w)
	}
	if all == nil {
		r.t.Fatalf("there is no window of %s in %d", group, len(r.windows))
	}
	return all
}

// story is what happens to feed:1 and what the ledger makes of it.
type story struct {
	name string
	tell func(*rig)
	want string
}

// digest says of a window what detectors judge by.
func digest(w *signal.Window) string {
	var causes []string
	for c := range signal.NumCauses {
		if n := w.Recomputes.Started[c]; n > 0 {
			causes = append(causes, fmt.Sprintf("%d %v", n, c))
		}
	}
	return fmt.Sprintf("misses %d peak %d, recomputed %s, at once %d, duplicates %d, fresh %d, negative %d, stores %d",
		w.Lookups.Misses, w.MissPeak, strings.Join(causes, "+"), w.InFlightPeak, w.Duplicates, w.WhileFresh,
		w.Recomputes.Ended[signal.CauseNegative][signal.OutcomeOK], w.Stores.Count)
}

const ms = time.Millisecond

var stories = []story{
	{"one reader misses and stores: one recompute", func(r *rig) {
		r.see(0, 1, keyspace.Miss, "feed:1")
		r.see(400*ms, 1, keyspace.Store, "feed:1")
	}, "misses 1 peak 1, recomputed 1 cold, at once 1, duplicates 0, fresh 0, negative 0, stores 1"},
	{"200 readers miss and each stores: a dogpile of 200", func(r *rig) {
		r.see(0, 1, keyspace.Store, "feed:1")
		r.see(100*ms, 1, keyspace.Expired, "feed:1")
		r.see(101*ms, 200, keyspace.Miss, "feed:1")
		r.see(500*ms, 200, keyspace.Store, "feed:1")
	}, "misses 200 peak 200, recomputed 200 expired, at once 200, duplicates 199, fresh 0, negative 0, stores 201"},
	{"200 readers poll behind a lock and one stores: one recompute", func(r *rig) {
		r.see(0, 1600, keyspace.Miss, "feed:1")
		r.see(1700*ms, 1, keyspace.Store, "feed:1")
	}, "misses 1600 peak 1600, recomputed 1 cold, at once 1, duplicates 0, fresh 0, negative 0, stores 1"},
	{"cycle after cycle of that adds up to nothing worse", func(r *rig) {
		for i := range time.Duration(10) {
			r.see(i*time.Second, 300, keyspace.Miss, "feed:1")
			r.see(i*time.Second+400*ms, 1, keyspace.Store, "feed:1")
			r.see(i*time.Second+900*ms, 1, keyspace.Expired, "feed:1")
		}
	}, "misses 3000 peak 300, recomputed 9 expired+1 cold, at once 1, duplicates 0, fresh 0, negative 0, stores 10"},
	{"a store without a miss is a store", func(r *rig) {
		r.see(0, 5, keyspace.Store, "feed:1")
	}, "misses 0 peak 0, recomputed , at once 0, duplicates 0, fresh 0, negative 0, stores 5"},
	{"a refresh long after the burst answers none of its misses", func(r *rig) {
		r.see(0, 100, keyspace.Miss, "feed:1")
		r.see(400*ms, 1, keyspace.Store, "feed:1")
		r.see(2*time.Second, 1, keyspace.Store, "feed:1")
	}, "misses 100 peak 100, recomputed 1 cold, at once 1, duplicates 0, fresh 0, negative 0, stores 2"},
	{"recomputes that queue at the origin are one burst however long it takes", func(r *rig) {
		r.see(0, 10, keyspace.Miss, "feed:1")
		for i := range time.Duration(10) {
			r.see(400*ms*(i+1), 1, keyspace.Store, "feed:1")
		}
	}, "misses 10 peak 10, recomputed 10 cold, at once 10, duplicates 9, fresh 0, negative 0, stores 10"},
	{"a value made in steps is one", func(r *rig) {
		r.see(0, 50, keyspace.Miss, "feed:1")
		r.see(400*ms, 50, keyspace.Change, "feed:1")
	}, "misses 50 peak 50, recomputed 1 cold, at once 1, duplicates 0, fresh 0, negative 0, stores 1"},
	{"deleted, then missed: invalidated", func(r *rig) {
		r.see(0, 1, keyspace.Store, "feed:1")
		r.see(10*ms, 1, keyspace.Delete, "feed:1")
		r.see(20*ms, 1, keyspace.Miss, "feed:1")
		r.see(30*ms, 1, keyspace.Store, "feed:1")
	}, "misses 1 peak 1, recomputed 1 invalidated, at once 1, duplicates 0, fresh 0, negative 0, stores 2"},
	{"gone without a word, though the server tells: evicted, with all others", func(r *rig) {
		r.see(0, 1, keyspace.Store, "feed:1")
		r.see(20*ms, 1, keyspace.Miss, "feed:1")
		r.see(30*ms, 1, keyspace.Store, "feed:1")
	}, "misses 1 peak 1, recomputed 1 evicted, at once 1, duplicates 0, fresh 0, negative 0, stores 2"},
	{"gone without a word after its time: expired", func(r *rig) {
		r.Observe(keyspace.Event{At: t0, Key: []byte("feed:1"), Kind: keyspace.Store, TTL: 5 * time.Second})
		r.see(5*time.Second, 1, keyspace.Miss, "feed:1")
		r.see(5030*ms, 1, keyspace.Store, "feed:1")
	}, "misses 1 peak 1, recomputed 1 expired, at once 1, duplicates 0, fresh 0, negative 0, stores 2"},
	{"misses that nobody answers say that there is nothing", func(r *rig) {
		r.see(0, 7, keyspace.Miss, "feed:1")
		r.flush(59 * time.Second)
		r.flush(61 * time.Second)
		r.flush(62 * time.Second)
	}, "misses 7 peak 7, recomputed , at once 0, duplicates 0, fresh 0, negative 7, stores 0"},
	{"those that somebody else's store answered do not", func(r *rig) {
		r.see(0, 7, keyspace.Miss, "feed:1")
		r.see(400*ms, 1, keyspace.Store, "feed:1")
		r.flush(61 * time.Second)
	}, "misses 7 peak 7, recomputed 1 cold, at once 1, duplicates 0, fresh 0, negative 0, stores 1"},
	{"what was open before a gap is forgotten", func(r *rig) {
		r.see(0, 200, keyspace.Miss, "feed:1")
		r.flush(300 * ms)
		r.Gap()
		r.see(500*ms, 200, keyspace.Store, "feed:1")
		r.flush(90 * time.Second)
	}, "misses 200 peak 200, recomputed , at once 0, duplicates 0, fresh 0, negative 0, stores 200"},
}

func TestLedger(t *testing.T) {
	t.Parallel()
	for _, tc := range stories {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			tc.tell(r)
			r.flush(100 * time.Second)
			w := r.merged("feed:*")
			if diff := cmp.Diff(tc.want, digest(w)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if w.Recomputes.Provoked() != r.counts.Work.Recomputes.Provoked() || w.Lookups != r.counts.Lookups || w.Stores.Count != r.counts.Work.Stores || w.Duplicates != r.counts.Work.Duplicates {
				t.Errorf("counts %+v do not match what windows say: %s", r.counts, digest(w))
			}
		})
	}
}

func TestARecomputeIsFromTheMissToTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.see(0, 3, keyspace.Miss, "feed:1")
	r.see(400*ms, 3, keyspace.Store, "feed:1")
	r.flush(500 * ms)
	w := r.merged("feed:*")
	for i, iv := range w.Intervals {
		if iv.End.Sub(iv.Start) != 400*ms || iv.Start != t0.Add(time.Duration(i)*ms) || iv.Outcome != signal.OutcomeOK {
			t.Errorf("recompute %d is %+v, want 400 ms from its miss on", i, iv)
		}
	}
	if o := signal.Sweep(w.Intervals, w.End); o.Peak != 3 || len(w.Intervals) != 3 {
		t.Errorf("%d recomputes, %d at once, want 3", len(w.Intervals), o.Peak)
	}
	for _, u := range []signal.Unknown{signal.UnknownStarts, signal.UnknownCoalesced, signal.UnknownEarly, signal.UnknownLocks, signal.UnknownRetries} {
		if !w.Unknown.Has(u) {
			t.Errorf("%b is not said to be unknown", u)
		}
	}
}

func TestADogpileBeyondWhatWindowsHoldIsStillCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.see(0, 3000, keyspace.Miss, "feed:1")
	for i := range 3000 {
		r.Observe(keyspace.Event{At: t0.Add(3500*ms + time.Duration(i)*time.Microsecond), Key: []byte("feed:1"), Kind: keyspace.Store})
	}
	r.flush(4 * time.Second)
	w := r.merged("feed:*")
	if w.InFlightPeak != 3000 || w.Duplicates != 2999 || !w.Sampled || len(w.Intervals) > signal.MaxFleetIntervals {
		t.Errorf("%s, sampled %v, %d intervals", digest(w), w.Sampled, len(w.Intervals))
	}
}

func TestWindowsAreShortAndValid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range time.Duration(40) {
		r.see(i*100*ms, 1, keyspace.Miss, "feed:1")
	}
	r.flush(4 * time.Second)
	if len(r.windows) < 4 {
		t.Errorf("%d windows for 4 s, want one a second", len(r.windows))
	}
	for _, w := range r.windows {
		if w.End < w.Start || w.End.Sub(w.Start) > signal.MaxSpan || w.Cache != "feed" || w.Service != "redis" || w.Instance != "a:1" {
			t.Errorf("window %+v", w)
		}
	}
}

func TestTheTimeToLiveIsAskedForAndTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.see(0, 1, keyspace.Miss, "feed:1")
	r.see(1*ms, 1, keyspace.Store, "feed:1")
	r.see(2*ms, 1, keyspace.Store, "profile:1") // no recompute: nobody asks
	if got := r.Untimed(10); len(got) != 1 || string(got[0]) != "feed:1" {
		t.Fatalf("asks for %q, want feed:1", got)
	}
	if got := r.Untimed(10); len(got) != 0 {
		t.Errorf("asks again for %q", got)
	}
	r.Observe(keyspace.Event{At: t0.Add(11 * ms), Key: []byte("feed:1"), Kind: keyspace.Left, TTL: time.Minute - 10*ms})
	r.flush(20 * ms)
	s := r.merged("feed:*").Stores
	if want := t0.Add(time.Minute + ms); s.ExpiryMin != want || s.ExpiryMax != want || s.TTLMin != time.Minute || s.TTLMax != time.Minute {
		t.Errorf("got %+v, want a minute from then on", s)
	}
}

func TestKeysOfAnyBytesAreKeptApartAndNotGivenAway(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 1<<20)
	keys := []string{"", " ", "a b\r\n", "\x00\xff", "feed:\xff\xfe", long, long + "x", "tab\there", strings.Repeat("\xff", 300)}
	for _, raw := range []bool{false, true} {
		r := newRig(t, func(o *keyspace.Options) { o.RawKeys = raw })
		for _, k := range keys {
			r.see(0, 2, keyspace.Miss, k)
		}
		r.flush(10 * ms)
		ids := map[signal.KeyID]bool{}
		for _, w := range r.windows {
			ids[w.Key.ID] = true
			if w.Lookups.Misses != 2 || len(w.Key.Text) > 3*256 || (w.Key.Text != "") && !raw {
				t.Errorf("window of %q: %d misses, %d bytes of text", w.Key.Group, w.Lookups.Misses, len(w.Key.Text))
			}
			if bytes.Contains([]byte(w.Key.Group), []byte("\n")) {
				t.Errorf("group %q", w.Key.Group)
			}
		}
		if len(ids) != len(keys) {
			t.Errorf("%d keys told apart, want %d", len(ids), len(keys))
		}
	}
}
