package detectors_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newPoisoning() (detectors.Detector, error) {
	return detectors.NewDeltaPoisoning(detectors.DeltaPoisoningConfig{})
}

// wrote is a tick at which key 1 was refreshed early by a recompute that took
// that long.
func wrote(at, took time.Duration, change ...keyOption) *signal.Tick {
	return keyTick(at, key(at, append([]keyOption{ran(uint64(at), at-took, at, signal.CauseEarly)}, change...)...))
}

// acted is the recompute time a reader acted on.
func acted(on time.Duration) keyOption {
	return func(k *signal.KeyState) {
		k.Window.Early = signal.Early{Count: 1, LeadSum: 12 * second, LeadMax: 12 * second, DeltaMax: on}
	}
}

// writes is a recompute each ten seconds that took that long.
func writes(from time.Duration, took ...time.Duration) (out ticks) {
	for i, d := range took {
		out = append(out, wrote(from+time.Duration(i)*10*second, d))
	}
	return out
}

func times(n int, d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }

func TestDeltaPoisoning(t *testing.T) {
	healthy := func() ticks { return writes(0, times(6, 400*ms)...) }
	clamped := func(d time.Duration) cacheOption {
		return claims(signal.Claims{Protection: []string{signal.ProtectXFetch}, Clamp: d})
	}
	tellAll(t, newPoisoning, []story{
		{"nothing happens, and it is quiet", idle(0, 5*second, feed(xfetch(1))), nil},
		{"recomputes that take as long as ever are quiet", in(writes(0, times(60, 400*ms)...), xfetch(1)), nil},
		{"one that takes three times as long is a ticket, at the write", in(slices.Concat(healthy(), writes(minute, 1200*ms)), xfetch(1)), []string{"1m0s ticket"}},
		{"a little less is quiet", in(slices.Concat(healthy(), writes(minute, 1199*ms)), xfetch(1)), nil},
		{"four others are too few to tell", in(writes(0, append(times(4, 400*ms), 1800*ms)...), xfetch(1)), nil},
		{"others that vary tell their median badly", in(writes(0, 100*ms, 200*ms, 300*ms, 400*ms, 500*ms, 1499*ms), xfetch(1)), nil},
		{"three times the highest of five is a ticket", in(writes(0, 100*ms, 200*ms, 300*ms, 400*ms, 500*ms, 1500*ms), xfetch(1)), []string{"50s ticket"}},
		{"of nine the highest may be an outlier itself", in(writes(0, slices.Concat(times(8, 400*ms), []time.Duration{2 * second, 1200 * ms})...), xfetch(1)), []string{"1m20s ticket"}},
		{"two of them are a slow origin", in(writes(0, slices.Concat(times(7, 400*ms), []time.Duration{2 * second, 2 * second, 1200 * ms})...), xfetch(1)), []string{"1m10s ticket"}},
		{"recomputes that overlap are one", in(slices.Concat(writes(0, times(4, 400*ms)...), ticks{keyTick(40*second,
			key(40*second, ran(90, 39*second, 39*second+400*ms, signal.CauseEarly), ran(91, 39*second, 39*second+400*ms, signal.CauseEarly)))}, writes(minute, 1800*ms)), xfetch(1)), []string{"1m0s ticket"}},
		{"so that four lives are too few to tell, however many recomputed", in(slices.Concat(writes(0, times(3, 400*ms)...), ticks{keyTick(40*second,
			key(40*second, ran(90, 39*second, 39*second+400*ms, signal.CauseEarly), ran(91, 39*second, 39*second+400*ms, signal.CauseEarly)))}, writes(minute, 1800*ms)), xfetch(1)), nil},
		{"without the claim it is quiet", in(slices.Concat(healthy(), writes(minute, 1800*ms))), nil},
		{"a clamp that is declared keeps it out", in(slices.Concat(healthy(), writes(minute, 1800*ms)), clamped(800*ms)), nil},
		{"one that is too high does not", in(slices.Concat(healthy(), writes(minute, 1800*ms)), clamped(1200*ms)), []string{"1m0s ticket"}},
		{"a reader who acts on it tells, too", in(slices.Concat(healthy(), ticks{wrote(minute, 400*ms, acted(1800*ms))}), clamped(800*ms)), []string{"1m0s ticket"}},
		{"an origin that is slow for good is told of once, and not for long", in(slices.Concat(writes(0, slices.Concat(times(9, 400*ms), times(80, 1800*ms))...)), xfetch(1)), []string{"1m30s ticket", "11m40s cleared"}},
		{"a recompute that a reader waited for is stored as well", in(slices.Concat(healthy(), ticks{tick(62*second, episodeOf(60*second, ran(77, 60*second, 62*second, signal.CauseExpired)))}), xfetch(1)), []string{"1m2s ticket"}},
		{"one that failed is not", in(slices.Concat(healthy(), ticks{wrote(minute, 1800*ms, func(k *signal.KeyState) {
			k.Window.Intervals[0].Outcome = signal.OutcomeFailed
		})}), xfetch(1)), nil},
		{"one that finds that there is nothing is not either", in(slices.Concat(healthy(), ticks{keyTick(minute, key(minute, ran(9, minute-2*second, minute, signal.CauseNegative)))}), xfetch(1)), nil},
		{"each key has its own usual time", in(slices.Concat(healthy(), ticks{keyTick(minute, key(minute, keyID(2), ran(9, minute-2*second, minute, signal.CauseEarly)))}), xfetch(1)), nil},
		{"it clears after ten minutes", slices.Concat(in(slices.Concat(healthy(), writes(minute, 1800*ms)), xfetch(1)), idle(61*second, 20*minute, feed(xfetch(1)))), []string{"1m0s ticket", "11m0s cleared"}},
	})
}

// strained is two minutes, a tick a second, poisoned at 80 s; from then on the
// origin is busy for so much of every second, and sees that many refreshes.
func strained(busy time.Duration, refreshes uint64, change ...cacheOption) (out ticks) {
	for at := second; at <= 2*minute; at += second {
		tk := tick(at)
		switch {
		case at == 80*second:
			tk = wrote(at, 1800*ms)
		case at < 80*second && at%(10*second) == 0:
			tk = wrote(at, 400*ms)
		}
		in(ticks{tk}, append([]cacheOption{xfetch(1)}, change...)...)
		w := &tk.Caches[0].Work
		w.Busy, w.Recomputes.Started[signal.CauseEarly] = second, 2
		if at > 80*second {
			w.Busy, w.Recomputes.Started[signal.CauseEarly] = busy, refreshes
		}
		out = append(out, tk)
	}
	return out
}

func TestDeltaPoisoningOfABusyOriginPages(t *testing.T) {
	tellAll(t, newPoisoning, []story{
		{"if it is busy and refreshes rise", strained(8*second, 6), []string{"1m20s ticket", "1m28s page/2"}},
		{"not if it is well", strained(6*second, 6), []string{"1m20s ticket"}},
		{"not if refreshes do not rise", strained(8*second, 2), []string{"1m20s ticket"}},
		{"not if its budget is not known", strained(8*second, 6, noBudget), []string{"1m20s ticket"}},
		{"not if nothing is poisoned", func() ticks {
			ts := strained(8*second, 6)
			ts[79].Keys = nil
			return ts
		}(), nil},
	})
}

func TestDeltaPoisoningSaysWhatItKnows(t *testing.T) {
	f := lastOf(t, made(t)(newPoisoning()), in(slices.Concat(writes(0, times(6, 400*ms)...), ticks{wrote(minute, 400*ms, acted(1800*ms))}), xfetch(1.5)))
	want := detectors.Finding{
		Detector: "delta-poisoning", Service: "shop", Cache: "feed", Key: signal.Key{ID: 1, Group: "feed:*"}, Origin: "db",
		Severity: detectors.Ticket, Onset: after(minute - second), Detected: after(minute), Advice: f.Advice,
		Summary: "feed:* in cache feed: a recompute time of 1.80 s counts for its early refresh; usual are 0.40 s.",
		Evidence: []detectors.Evidence{
			{Name: "delta", Value: 1.8, Unit: "s", Note: "stored, or acted on, as the key's recompute time"},
			{Name: "usual", Value: 0.4, Unit: "s", Note: "the median of the key's 7 other recent recomputes"},
			{Name: "factor", Value: 4.5, Unit: "1", Note: "a ticket from 3"},
			{Name: "acted", Value: 1.8, Unit: "s", Note: "the longest a reader acted on, since the last tick"},
			{Name: "lead.max", Value: 12, Unit: "s", Note: "the earliest refresh before the expiry, since the last tick"},
			{Name: "beta", Value: 1.5, Unit: "1", Note: "as declared"},
			{Name: "ttl", Value: 60, Unit: "s"},
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("finding (-want +got):\n%s", diff)
	}
}

func TestDeltaPoisoningOfManyKeysIsOneFinding(t *testing.T) {
	d := made(t)(newPoisoning())
	at := time.Duration(0)
	all := func(took time.Duration) *signal.Tick {
		at += 10 * second
		tk := tick(at)
		for id := range signal.KeyID(8) {
			tk.Keys = append(tk.Keys, key(at, keyID(id+1), ran(uint64(at)+uint64(id), at-took, at, signal.CauseEarly)))
		}
		return tk
	}
	var ts ticks
	for range 6 {
		ts = append(ts, all(400*ms))
	}
	got := play(d, in(append(ts, all(1800*ms)), xfetch(1)))
	want := []string{"1m10s feed/0 ticket", "1m10s ticket", "1m10s feed/2 ticket", "1m10s feed/3 ticket", "1m10s feed/4 ticket", "1m10s feed/5 ticket"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestDeltaPoisoningSaysWhatItCannotJudge(t *testing.T) {
	d := made(t)(newPoisoning())
	d.Observe(in(idle(0, 0), xfetch(1), noBudget)[0])
	if got := unsure(d); len(got) != 1 || !strings.HasSuffix(got[0], "Without it delta-poisoning never pages.") {
		t.Errorf("limits %q", got)
	}
}
