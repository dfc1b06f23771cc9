package signal_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestDurationsSurvivePacking(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var h signal.Durations
		for _, d := range rapid.SliceOf(rapid.Int64Range(0, int64(time.Hour))).Draw(rt, "durations") {
			h.Observe(time.Duration(d))
		}
		got, err := signal.ParseDurations(signal.AppendDurations(nil, &h))
		if err != nil || got != h {
			rt.Fatalf("%v: %v came back as %v", err, h, got)
		}
	})
}

func TestExpiriesSurvivePacking(t *testing.T) {
	const now = signal.Nanos(1_700_000_000_123_456_789)
	rapid.Check(t, func(rt *rapid.T) {
		var bins []signal.ExpiryBin
		for _, d := range rapid.SliceOf(rapid.Int64Range(1, int64(signal.ExpiryFar))).Draw(rt, "ahead") {
			bin, ok := signal.BinExpiry(now, now+signal.Nanos(d))
			if !ok {
				rt.Fatalf("no bin for %v ahead", time.Duration(d))
			}
			bin.Keys = 1
			bin.Group = rapid.SampledFrom([]string{"", "feed:*", "user:*", "other", "ключ:*"}).Draw(rt, "group")
			bins = signal.MergeExpiries(bins, []signal.ExpiryBin{bin})
		}
		got, err := signal.ParseExpiries(signal.AppendExpiries(nil, now, bins), now)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(bins, got); diff != "" {
			rt.Fatalf("bins (-want +got):\n%s", diff)
		}
	})
}

func TestBinsWithoutGroupsArePackedAsEver(t *testing.T) {
	bins := []signal.ExpiryBin{{At: 1e18, Width: time.Second, Keys: 3}, {At: 1e18 + 5e9, Width: 10 * time.Second, Keys: 300}}
	if diff := cmp.Diff([]byte{1, 0, 1, 3, 10, 10, 0xac, 2}, signal.AppendExpiries(nil, 1e18, bins)); diff != "" {
		t.Errorf("bytes (-want +got):\n%s", diff)
	}
	bins[1].Group = "a:*"
	if diff := cmp.Diff([]byte{2, 1, 3, 'a', ':', '*', 0, 1, 3, 0, 10, 10, 0xac, 2, 1}, signal.AppendExpiries(nil, 1e18, bins)); diff != "" {
		t.Errorf("bytes with a group (-want +got):\n%s", diff)
	}
}

func TestDamagedExpiriesAreRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"another version":        {3, 0, 1, 3},
		"no version":             {0, 0, 1, 3},
		"a name that is cut":     {2, 1, 3, 'a'},
		"a name that is empty":   {2, 1, 0, 0, 1, 3, 0},
		"a name with an escape":  {2, 1, 2, 0x1b, 'a', 0, 1, 3, 1},
		"a name that is no text": {2, 1, 1, 0xff, 0, 1, 3, 1},
		"a name nobody gave":     {2, 1, 1, 'a', 0, 1, 3, 2},
		"a name too long":        append(append([]byte{2, 1, 0x81, 1}, make([]byte, 129)...), 0, 1, 3, 1),
		"too many names":         {2, 0x81, 2},
		"a bin that is cut":      {2, 1, 1, 'a', 0, 1, 3},
		"a width of nothing":     {1, 0, 0, 3},
		"a bin beyond the hour":  {1, 0xff, 0xff, 0xff, 1, 1, 3},
	} {
		if bins, err := signal.ParseExpiries(b, 1e18); err == nil {
			t.Errorf("%s: got %+v and no error", name, bins)
		}
	}
}

func TestWhatIsNotAheadHasNoBin(t *testing.T) {
	for _, at := range []signal.Nanos{0, 99, 100, 100 + signal.Nanos(2*time.Hour)} {
		if bin, ok := signal.BinExpiry(100, at); ok {
			t.Errorf("%d has the bin %+v", at, bin)
		}
	}
}

func TestQuantilesAreAtMostABucketTooHigh(t *testing.T) {
	var h signal.Durations
	for i := 1; i <= 1000; i++ {
		h.Observe(time.Duration(i) * 10 * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0.5: 5 * time.Second, 0.99: 9900 * time.Millisecond, 0: 10 * time.Millisecond, 1: 10 * time.Second} {
		if got := h.Quantile(q); got < want || float64(got) > 1.2*float64(want) {
			t.Errorf("quantile %v is %v; want %v, or up to a fifth more", q, got, want)
		}
	}
	if got := (&signal.Durations{}).Quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
	h.Observe(time.Hour)
	if got := h.Quantile(1); got < 10*time.Minute {
		t.Errorf("the highest is %v; want the last bound", got)
	}
}

func TestWhatWasCountedSinceIsTheDifference(t *testing.T) {
	var before, after signal.Durations
	before.Observe(time.Second)
	after = before
	after.Observe(time.Minute)
	if got := after.Since(&before); got.Count() != 1 || got.Quantile(1) < time.Minute {
		t.Errorf("since: %v", got)
	}
	if got := before.Since(&after); got != before {
		t.Errorf("since a later state, as after a restart: %v; want all of it", got)
	}
}

func FuzzParseVitalsParts(f *testing.F) {
	var h signal.Durations
	h.Observe(time.Second)
	f.Add(signal.AppendDurations(nil, &h))
	f.Add(signal.AppendExpiries(nil, 1e18, []signal.ExpiryBin{{At: 1e18, Width: time.Second, Keys: 3}}))
	f.Add(signal.AppendExpiries(nil, 1e18, []signal.ExpiryBin{{At: 1e18, Width: time.Second, Keys: 3, Group: "feed:*"}, {At: 2e18, Width: time.Second, Keys: 1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := signal.ParseDurations(b); err == nil {
			if again, err := signal.ParseDurations(signal.AppendDurations(nil, &h)); err != nil || again != h {
				t.Fatalf("%v: %v came back as %v", err, h, again)
			}
		}
		bins, err := signal.ParseExpiries(b, 1e18)
		if err != nil {
			return
		}
		again, err := signal.ParseExpiries(signal.AppendExpiries(nil, 1e18, bins), 1e18)
		if diff := cmp.Diff(bins, again); err != nil || diff != "" {
			t.Fatalf("%v: came back (-want +got):\n%s", err, diff)
		}
		if len(bins) > signal.MaxExpiryBins {
			t.Fatalf("%d bins", len(bins))
		}
	})
}
