package census_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/probes/census"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	t0 = signal.Nanos(1_700_000_000 * 1_000_000_000)
	s  = signal.Nanos(time.Second)
)

func newCensus(t testing.TB, o census.Options) *census.Census {
	t.Helper()
	c, err := census.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// filled returns what c knows at now.
func filled(c *census.Census, now signal.Nanos) *signal.Vitals {
	v := &signal.Vitals{}
	c.Fill(now, v)
	return v
}

// look counts n keys of a group that expire at at.
func look(c *census.Census, now signal.Nanos, group string, at signal.Nanos, n int) {
	for range n {
		c.Key(now, group, at)
	}
}

func groups(v *signal.Vitals) map[string]int {
	sums := map[string]int{}
	for _, b := range v.Expiries {
		sums[b.Group] += int(b.Keys)
	}
	return sums
}

func TestACensusOfAllKeysIsExact(t *testing.T) {
	c := newCensus(t, census.Options{})
	look(c, t0, "feed:*", t0+60*s+s/2, 2000)
	look(c, t0, "user:*", t0+400*s, 5)
	look(c, t0, "config:*", 0, 10)        // never
	look(c, t0, "late:*", t0+2*3600*s, 3) // too far to tell
	look(c, t0, "gone:*", t0-s, 2)        // already
	if v := filled(c, t0); v.Expiries != nil || !v.Sample.IsZero() {
		t.Errorf("before the slice ends: %+v of %+v", v.Expiries, v.Sample)
	}
	c.EndSlice(t0, 2020)
	v := filled(c, t0)
	want := []signal.ExpiryBin{
		{At: t0 + 60*s, Width: time.Second, Keys: 2000, Group: "feed:*"},
		{At: t0 + 400*s, Width: 10 * time.Second, Keys: 5, Group: "user:*"},
	}
	if diff := cmp.Diff(want, v.Expiries); diff != "" {
		t.Errorf("expiries (-want +got):\n%s", diff)
	}
	if want := (signal.Sample{Keys: 2020, Population: 2020, Weight: 1}); v.Sample != want {
		t.Errorf("sample is %+v, want %+v", v.Sample, want)
	}
	if got := groups(filled(c, t0+61*s)); got["feed:*"] != 0 || got["user:*"] != 5 {
		t.Errorf("a minute later there are %v, want those of user:* only", got)
	}
	if v := filled(c, t0+200*s); v.Expiries[0].Width != time.Second {
		t.Errorf("200 s before it is due a bin is %v wide, want a second", v.Expiries[0].Width)
	}
}

func TestSlicesCountUntilTheWalkComesByAgainOrTheyAreOld(t *testing.T) {
	far := t0 + 1000*s
	tests := []struct {
		name       string
		keep       time.Duration
		population uint64
		slices     int
		keys       uint64 // looked at that count
	}{
		{"the first slice stands for all", 0, 1000, 1, 100},
		{"slices add up", 0, 1000, 5, 500},
		{"until they cover all keys", 0, 1000, 12, 1000},
		{"or are older than is kept", 5 * time.Second, 10_000, 12, 600},
		{"the newest counts whatever its age", time.Second, 10_000, 1, 100},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := newCensus(t, census.Options{Keep: tc.keep})
			var now signal.Nanos
			for i := range tc.slices {
				now = t0 + signal.Nanos(i)*s
				look(c, now, "feed:*", far, 100)
				c.EndSlice(now, tc.population)
			}
			v := filled(c, now)
			if v.Sample.Keys != tc.keys || v.Sample.Population != tc.population {
				t.Errorf("sample is %+v, want %d of %d keys", v.Sample, tc.keys, tc.population)
			}
			if got := groups(v)["feed:*"]; got != int(tc.population) {
				t.Errorf("%d keys, want all %d", got, tc.population)
			}
		})
	}
}

func TestAPopulationThatHalvesWasFlushed(t *testing.T) {
	c := newCensus(t, census.Options{})
	look(c, t0, "feed:*", t0+60*s, 100)
	c.EndSlice(t0, 1000)
	look(c, t0+s, "user:*", t0+60*s, 10)
	c.EndSlice(t0+s, 20)
	if diff := cmp.Diff(map[string]int{"user:*": 20}, groups(filled(c, t0+s))); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	c.EndSlice(t0+2*s, 0)
	if v := filled(c, t0+2*s); v.Expiries != nil {
		t.Errorf("an empty server has expiries %+v", v.Expiries)
	}
}

func TestWhatIsCutShortDoesNotCount(t *testing.T) {
	c := newCensus(t, census.Options{})
	look(c, t0, "feed:*", t0+60*s, 100)
	c.DropSlice()
	look(c, t0, "user:*", t0+60*s, 10)
	c.EndSlice(t0, 10)
	if diff := cmp.Diff(map[string]int{"user:*": 10}, groups(filled(c, t0))); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	c.Reset()
	if v := filled(c, t0); v.Expiries != nil || !v.Sample.IsZero() {
		t.Errorf("after a reset: %+v of %+v", v.Expiries, v.Sample)
	}
}

func TestTheLargestGroupsAreToldApart(t *testing.T) {
	c := newCensus(t, census.Options{Groups: 2})
	for i, g := range []string{"a:*", "b:*", "c:*", census.Other, ""} {
		look(c, t0, g, t0+60*s, 50-10*i)
	}
	c.EndSlice(t0, 150)
	if diff := cmp.Diff(map[string]int{"a:*": 50, "b:*": 40, census.Other: 60}, groups(filled(c, t0))); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestGroupsWithoutEndTakeNoMemoryWithoutEnd(t *testing.T) {
	c := newCensus(t, census.Options{Groups: 100, Keep: time.Second})
	for i := range 50 {
		now := t0 + signal.Nanos(10*i)*s
		for j := range 1000 {
			look(c, now, fmt.Sprintf("g%d:*", 1000*i+j), now+60*s, 1)
		}
		look(c, now, "feed:*", now+60*s, 1000)
		c.EndSlice(now, 1_000_000)
		v := filled(c, now)
		if got := len(groups(v)); got > 101 {
			t.Fatalf("%d groups, want 100 and the rest", got)
		}
	}
	// Those of old slices have made room.
	now := t0 + 1000*s
	look(c, now, "new:*", now+60*s, 10)
	c.EndSlice(now, 10)
	if got := groups(filled(c, now))["new:*"]; got != 10 {
		t.Errorf("%d keys of a new group, want 10: no key is left of the others", got)
	}
}

func TestARecordHoldsNoMoreBinsThanItMay(t *testing.T) {
	c := newCensus(t, census.Options{Groups: 100})
	for sec := range 3599 {
		for g := range 20 {
			look(c, t0, fmt.Sprintf("g%d:*", g), t0+signal.Nanos(sec+1)*s, 1+g%3)
		}
	}
	c.EndSlice(t0, 1_000_000)
	v := filled(c, t0)
	if len(v.Expiries) > signal.MaxExpiryBins {
		t.Errorf("%d bins, want at most %d", len(v.Expiries), signal.MaxExpiryBins)
	}
	back, err := signal.ParseExpiries(signal.AppendExpiries(nil, t0, v.Expiries), t0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v.Expiries, back); diff != "" {
		t.Errorf("came back (-want +got):\n%s", diff)
	}
}

// The margin is to cover the truth 95 times in 100. Of 2,000 draws that is 1,900
// give or take 10, and a bound of 1,850 is wrong once in 10^6 runs; the seed is
// fixed.
func TestTheMarginCoversTheTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const all, wave, sample, draws = 100_000, 2000, 5000, 2000
	covered := 0
	for range draws {
		c := newCensus(t, census.Options{})
		in := 0
		for range sample {
			if random.IntN(all) < wave {
				in++
			}
		}
		look(c, t0, "feed:*", t0+60*s, in)
		look(c, t0, "user:*", 0, sample-in)
		c.EndSlice(t0, all)
		v := filled(c, t0)
		got := float64(groups(v)["feed:*"])
		if math.Abs(got-wave) <= v.Sample.Margin(got) {
			covered++
		}
	}
	if covered < 1850 {
		t.Errorf("%d of %d intervals hold the truth, want 95 %%", covered, draws)
	}
}

func TestACensusNeverCountsMoreThanThereIs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCensus(t, census.Options{Keep: time.Duration(rapid.IntRange(1, 60).Draw(rt, "keep")) * time.Second, Groups: rapid.IntRange(1, 5).Draw(rt, "groups")})
		now := t0
		for range rapid.IntRange(0, 20).Draw(rt, "steps") {
			now += signal.Nanos(rapid.IntRange(0, 30).Draw(rt, "pause")) * s
			for range rapid.IntRange(0, 50).Draw(rt, "keys") {
				group := rapid.SampledFrom([]string{"", "a:*", "b:*", "c:*", "d:*", "e:*", "f:*", census.Other}).Draw(rt, "group")
				c.Key(now, group, now+signal.Nanos(rapid.IntRange(-10, 4000).Draw(rt, "ahead"))*s)
			}
			switch rapid.IntRange(0, 9).Draw(rt, "then") {
			case 0:
				c.DropSlice()
			case 1:
				c.Reset()
			default:
				c.EndSlice(now, rapid.Uint64Range(0, 1000).Draw(rt, "population"))
			}
			v := filled(c, now)
			sum := 0.0
			for i, b := range v.Expiries {
				if b.Keys == 0 || b.At.Add(b.Width) <= now || i > 0 && v.Expiries[i-1].At > b.At {
					rt.Fatalf("bin %d is %+v at %d", i, b, now)
				}
				sum += float64(b.Keys)
			}
			// Each bin may be rounded up by a half.
			if sum > float64(v.Sample.Population)+float64(len(v.Expiries))/2 || v.Sample.Keys > v.Sample.Population {
				rt.Fatalf("%v keys of %+v", sum, v.Sample)
			}
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []census.Options{{Keep: time.Millisecond}, {Keep: 2 * time.Hour}, {Groups: -1}, {Groups: 101}} {
		if _, err := census.New(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func BenchmarkKey(b *testing.B) {
	c := newCensus(b, census.Options{})
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		c.Key(t0, "feed:*", t0+signal.Nanos(1+i%3000)*s)
		if i++; i%5000 == 0 {
			c.EndSlice(t0, 1_000_000)
		}
	}
}
