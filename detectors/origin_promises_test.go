package detectors_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// ofOrigins are the detectors that look at whole caches and their origins.
func ofOrigins(t testing.TB) []detectors.Detector {
	t.Helper()
	all, err := detectors.All(detectors.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(d detectors.Detector) bool {
		return !slices.Contains([]string{"expiry-forecast", "mass-invalidation", "penetration", "synchronized-expiry", "underdosed-jitter"}, d.Doc().ID)
	})
}

// anything draws a tick that need make no sense.
func anything(rt *rapid.T, at time.Duration) *signal.Tick {
	count := rapid.OneOf(rapid.Uint64Range(0, 50), rapid.Uint64Range(0, 5000), rapid.Uint64())
	tk := &signal.Tick{At: after(at), Urgent: rapid.IntRange(0, 5).Draw(rt, "urgent") == 0}
	for _, name := range []string{"feed", "other", "third"} {
		if rapid.IntRange(0, 9).Draw(rt, "missing") == 0 {
			continue
		}
		c := feed()
		c.Cache = name
		c.Origin = rapid.SampledFrom([]signal.Origin{{}, {Name: "db", Budget: 8}, {Name: "db", Budget: -1}, {Budget: 1 << 40}}).Draw(rt, "origin")
		c.Instances = rapid.IntRange(0, 2).Draw(rt, "instances")
		c.Lookups = signal.Lookups{Hits: count.Draw(rt, "hits"), Misses: count.Draw(rt, "misses")}
		c.Misses, c.MissTop, c.MissedKeys = count.Draw(rt, "key misses"), count.Draw(rt, "top"), rapid.IntRange(-1, 5000).Draw(rt, "keys")
		c.Running = rapid.Uint32Range(0, 100).Draw(rt, "running")
		c.Work.Busy = time.Duration(rapid.Int64().Draw(rt, "busy"))
		c.Work.Stores = count.Draw(rt, "stores")
		for range rapid.IntRange(0, 30).Draw(rt, "durations") {
			c.Work.Durations.Observe(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "duration")))
		}
		cause := rapid.IntRange(0, int(signal.NumCauses)-1).Draw(rt, "cause")
		c.Work.Recomputes.Started[cause], c.Work.Recomputes.Ended[cause][signal.OutcomeOK] = count.Draw(rt, "started"), count.Draw(rt, "ended")
		for range rapid.IntRange(0, 8).Draw(rt, "bins") {
			c.Expiries = append(c.Expiries, signal.ExpiryBin{
				At:    after(at + time.Duration(rapid.Int64Range(-int64(minute), int64(time.Hour)).Draw(rt, "deadline"))),
				Width: rapid.SampledFrom([]time.Duration{second, 10 * second, 0, -second, time.Hour}).Draw(rt, "width"),
				Keys:  rapid.Uint32().Draw(rt, "keys due"),
			})
		}
		tk.Caches = append(tk.Caches, c)
	}
	for i := range rapid.IntRange(0, 20).Draw(rt, "episodes") {
		e := burst(at-time.Duration(rapid.IntRange(0, 5000).Draw(rt, "age"))*ms, rapid.IntRange(0, 5).Draw(rt, "peak"), ofKey(signal.KeyID(i)))
		e.Window.Cache = rapid.SampledFrom([]string{"feed", "other", "unheard"}).Draw(rt, "cache")
		e.Final = rapid.Bool().Draw(rt, "final")
		e.Due = rapid.SampledFrom([]signal.Nanos{0, 1, e.Started, e.Started.Add(minute)}).Draw(rt, "due")
		e.Offset = time.Duration(rapid.Int64Range(-int64(minute), int64(minute)).Draw(rt, "offset"))
		tk.Episodes = append(tk.Episodes, e)
	}
	return tk
}

func TestDetectorsOfOriginsKeepTheirPromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := ofOrigins(t), ofOrigins(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		open := map[string]detectors.Finding{}
		at := time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(rt, "ticks") {
			at += rapid.SampledFrom([]time.Duration{second, second, second, 300 * ms, 30 * second, -5 * second}).Draw(rt, "pause")
			tk := anything(rt, at)
			shuffled := *tk
			shuffled.Episodes, shuffled.Caches = slices.Clone(tk.Episodes), slices.Clone(tk.Caches)
			rng.Shuffle(len(shuffled.Episodes), func(i, j int) {
				shuffled.Episodes[i], shuffled.Episodes[j] = shuffled.Episodes[j], shuffled.Episodes[i]
			})
			rng.Shuffle(len(shuffled.Caches), func(i, j int) {
				shuffled.Caches[i], shuffled.Caches[j] = shuffled.Caches[j], shuffled.Caches[i]
			})
			for i, d := range a {
				fs := d.Observe(tk)
				if diff := cmp.Diff(fs, b[i].Observe(&shuffled)); diff != "" {
					rt.Fatalf("%s, shuffled (-in order +shuffled):\n%s", d.Doc().ID, diff)
				}
				for _, f := range fs {
					holdToContract(rt, open, tk, &f)
				}
			}
		}
	})
}

// holdToContract fails if f breaks what [detectors.Detector] promises.
func holdToContract(rt *rapid.T, open map[string]detectors.Finding, tk *signal.Tick, f *detectors.Finding) {
	name := f.Detector + " " + f.Cache
	was, ok := open[name]
	switch {
	case tk.Urgent:
		rt.Fatalf("%s speaks at an urgent tick", name)
	case f.Key != signal.Key{} || f.Onset > tk.At:
		rt.Fatalf("%s: key %v, onset %v after the tick", name, f.Key, f.Onset.Sub(tk.At))
	case f.Cleared && !ok:
		rt.Fatalf("%s clears what is not open", name)
	case ok && (f.Severity < was.Severity || f.Severity == was.Severity && f.Priority > was.Priority || f.Service != was.Service):
		rt.Fatalf("%s: %v after %v", name, stateOf(f), stateOf(&was))
	case (f.Severity == detectors.Page) != (f.Priority == 1 || f.Priority == 2):
		rt.Fatalf("%s: severity %v of priority %d", name, f.Severity, f.Priority)
	}
	for _, e := range f.Evidence {
		if !(e.Value >= 0) || math.IsInf(e.Value, 0) {
			rt.Fatalf("%s: %s is %v", name, e.Name, e.Value)
		}
	}
	open[name] = *f
	if f.Cleared {
		delete(open, name)
	}
}

func TestDetectorsOfOriginsLeaveTheTickAlone(t *testing.T) {
	make := func() *signal.Tick {
		ts := waveShop().warm().run(65 * second)
		return ts[len(ts)-1]
	}
	for _, d := range ofOrigins(t) {
		tk := make()
		d.Observe(tk)
		if diff := cmp.Diff(make(), tk); diff != "" {
			t.Errorf("%s changes it (-before +after):\n%s", d.Doc().ID, diff)
		}
	}
}

func TestWrongConfigurationOfOriginDetectorsIsNamed(t *testing.T) {
	tests := []struct {
		c    detectors.Config
		want string
	}{
		{detectors.Config{SynchronizedExpiry: detectors.SynchronizedExpiryConfig{Window: 2 * minute}}, "synchronized-expiry: window is 2m0s: want 1s to 1m0s"},
		{detectors.Config{SynchronizedExpiry: detectors.SynchronizedExpiryConfig{Demand: math.NaN()}}, "synchronized-expiry: demand is NaN: want 0.5 to 100"},
		{detectors.Config{SynchronizedExpiry: detectors.SynchronizedExpiryConfig{ExpiredShare: 1.1}}, "synchronized-expiry: expired_share is 1.1: want 0.1 to 1"},
		{detectors.Config{SynchronizedExpiry: detectors.SynchronizedExpiryConfig{DistinctShare: -1}}, "synchronized-expiry: distinct_share is -1: want 0.01 to 1"},
		{detectors.Config{SynchronizedExpiry: detectors.SynchronizedExpiryConfig{TopShare: 2}}, "synchronized-expiry: top_share is 2: want 0.01 to 1"},
		{detectors.Config{SynchronizedExpiry: detectors.SynchronizedExpiryConfig{ClearDemand: 1.3}}, "synchronized-expiry: clear_demand is 1.3: want 0.1 to 1.2"},
		{detectors.Config{SynchronizedExpiry: detectors.SynchronizedExpiryConfig{ClearAfter: ms}}, "synchronized-expiry: clear_after is 1ms: want 1s to 24h0m0s"},
		{detectors.Config{ExpiryForecast: detectors.ExpiryForecastConfig{Backlog: ms}}, "expiry-forecast: backlog is 1ms: want 100ms to 1h0m0s"},
		{detectors.Config{ExpiryForecast: detectors.ExpiryForecastConfig{Recomputes: 0.5}}, "expiry-forecast: recomputes is 0.5: want 1 to 1000"},
		{detectors.Config{ExpiryForecast: detectors.ExpiryForecastConfig{ClearAfter: ms}}, "expiry-forecast: clear_after is 1ms: want 1s to 24h0m0s"},
		{detectors.Config{UnderdosedJitter: detectors.UnderdosedJitterConfig{MinWork: ms}}, "underdosed-jitter: min_work is 1ms: want 100ms to 1h0m0s"},
		{detectors.Config{UnderdosedJitter: detectors.UnderdosedJitterConfig{Tolerance: 1.5}}, "underdosed-jitter: tolerance is 1.5: want 0.1 to 1"},
		{detectors.Config{UnderdosedJitter: detectors.UnderdosedJitterConfig{ClearAfter: ms}}, "underdosed-jitter: clear_after is 1ms: want 1s to 24h0m0s"},
		{detectors.Config{MassInvalidation: detectors.MassInvalidationConfig{Keys: 1}}, "mass-invalidation: keys is 1: want 2 to 1000000"},
		{detectors.Config{MassInvalidation: detectors.MassInvalidationConfig{LostShare: 3}}, "mass-invalidation: lost_share is 3: want 0.1 to 1"},
		{detectors.Config{MassInvalidation: detectors.MassInvalidationConfig{Factor: 1}}, "mass-invalidation: factor is 1: want 1.5 to 100"},
		{detectors.Config{MassInvalidation: detectors.MassInvalidationConfig{Alarm: 1}}, "mass-invalidation: alarm is 1: want 3 to 30"},
		{detectors.Config{MassInvalidation: detectors.MassInvalidationConfig{ClearAfter: ms}}, "mass-invalidation: clear_after is 1ms: want 1s to 24h0m0s"},
		{detectors.Config{Penetration: detectors.PenetrationConfig{Negatives: 1}}, "penetration: negatives is 1: want 10 to 1000000"},
		{detectors.Config{Penetration: detectors.PenetrationConfig{NegativeShare: 2}}, "penetration: negative_share is 2: want 0.1 to 1"},
		{detectors.Config{Penetration: detectors.PenetrationConfig{DistinctShare: 2}}, "penetration: distinct_share is 2: want 0.1 to 1"},
		{detectors.Config{Penetration: detectors.PenetrationConfig{ClearAfter: ms}}, "penetration: clear_after is 1ms: want 1s to 24h0m0s"},
	}
	for _, tc := range tests {
		t.Run(tc.want, func(t *testing.T) {
			if _, err := detectors.All(tc.c); err == nil || err.Error() != "configure "+tc.want {
				t.Errorf("error %v, want configure %s", err, tc.want)
			}
		})
	}
}

func BenchmarkDetectorsOfOrigins(b *testing.B) {
	for _, d := range ofOrigins(b) {
		b.Run(fmt.Sprintf("%s, 100k episodes", d.Doc().ID), func(b *testing.B) {
			tk := tick(second)
			for key := range signal.KeyID(100_000) {
				tk.Episodes = append(tk.Episodes, burst(0, 1, ofKey(key), live))
			}
			b.ReportAllocs()
			for b.Loop() {
				tk.At = tk.At.Add(second)
				d.Observe(tk)
			}
		})
	}
}
