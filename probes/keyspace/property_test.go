package keyspace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/probes/keyspace"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// TestLedgerKeepsItsPromises tells a small ledger of events at random.
func TestLedgerKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, locks("lock:{key}", "mutex:*"), func(o *keyspace.Options) {
			o.MaxKeys, o.MaxMisses, o.MaxWindows, o.GiveUp = 64, 16, 16, 2*time.Second
		})
		names := []string{"feed:%d", "lock:feed:%d", "mutex:%d", "\xff%d"}
		at, misses, stores := time.Duration(0), uint64(0), uint64(0)
		for range rapid.IntRange(1, 300).Draw(rt, "events") {
			at += time.Duration(rapid.IntRange(0, 400).Draw(rt, "pause")) * ms
			key := fmt.Sprintf(rapid.SampledFrom(names).Draw(rt, "name"), rapid.IntRange(0, 40).Draw(rt, "key"))
			kind := keyspace.Kind(rapid.IntRange(0, int(keyspace.Left)+1).Draw(rt, "kind"))
			ttl := time.Duration(rapid.IntRange(-1, 5000).Draw(rt, "ttl")) * ms
			r.Observe(keyspace.Event{At: t0.Add(at), Key: []byte(key), Kind: kind, TTL: ttl})
			isLock := strings.HasPrefix(key, "lock:") || strings.HasPrefix(key, "mutex:")
			if kind == keyspace.Miss && !isLock {
				misses++
			}
			if (kind == keyspace.Store || kind == keyspace.Change) && !isLock {
				stores++
			}
			switch rapid.IntRange(0, 20).Draw(rt, "then") {
			case 0:
				r.Gap()
			case 1, 2, 3:
				r.flush(at)
			case 4:
				r.Untimed(10)
			}
		}
		r.flush(at + 5*time.Second)
		holdTo(rt, r, misses, stores)
	})
}

func holdTo(t *rapid.T, r *rig, misses, stores uint64) {
	c := &r.counts
	if c.Tracked > 64 || c.Lookups.Misses > misses || c.Work.Stores > stores || c.Work.Recomputes.Provoked() > min(misses, stores) {
		t.Fatalf("of %d misses and %d stores it makes %+v", misses, stores, c)
	}
	for _, w := range r.windows {
		switch {
		case w.End < w.Start || w.End.Sub(w.Start) > signal.MaxSpan:
			t.Fatalf("a window from %d to %d", w.Start, w.End)
		case w.Duplicates > w.Recomputes.Provoked() || w.WhileFresh > w.Duplicates:
			t.Fatalf("a window %s", digest(w))
		case w.InFlightPeak > 16 || w.MissPeak > 16 || len(w.Intervals) > signal.MaxIntervals:
			t.Fatalf("a window %s with %d recomputes", digest(w), len(w.Intervals))
		case w.Locks.Lost > w.Locks.Holds || w.Locks.HoldSum < 0 || w.Locks.HeldSince > w.End:
			t.Fatalf("a window with locks %+v", w.Locks)
		}
		for _, iv := range w.Intervals {
			if iv.Running() || iv.End < iv.Start || iv.End.Sub(iv.Start) > 2*time.Minute {
				t.Fatalf("a recompute %+v", iv)
			}
		}
	}
}

func FuzzLockPattern(f *testing.F) {
	for _, s := range []string{"lock:{key}", "*:lock", "{key}", "a*b*c", "lock:{{key}}"} {
		f.Add(s, "lock:feed:1")
	}
	f.Fuzz(func(t *testing.T, pattern, key string) {
		p, err := keyspace.ParseLockPattern(pattern)
		if err != nil {
			return
		}
		l, err := keyspace.New(keyspace.Options{Source: signal.Source{Service: "redis", Instance: "a:1"}, Cache: "feed", Locks: []keyspace.LockPattern{p}})
		if err != nil {
			t.Fatal(err)
		}
		for kind := keyspace.Miss; kind <= keyspace.Left; kind++ {
			l.Observe(keyspace.Event{At: t0, Key: []byte(key), Kind: kind, TTL: time.Second})
		}
		if ws, _ := l.Flush(t0.Add(time.Second)); len(ws) > 2 {
			t.Errorf("%d windows of one key", len(ws))
		}
	})
}
