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
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := signal.ParseDurations(b); err == nil {
			if again, err := signal.ParseDurations(signal.AppendDurations(nil, &h)); err != nil || again != h {
				t.Fatalf("%v: %v came back as %v", err, h, again)
			}
		}
		if bins, err := signal.ParseExpiries(b, 1e18); err == nil && len(bins) > signal.MaxExpiryBins {
			t.Fatalf("%d bins", len(bins))
		}
	})
}
