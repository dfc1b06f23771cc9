package detectors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// epoch is when every test begins.
const epoch = signal.Nanos(1_700_000_000_000_000_000)

func after(d time.Duration) signal.Nanos { return epoch.Add(d) }

func newHotKeyExpiry(t testing.TB, c detectors.HotKeyExpiryConfig) detectors.Detector {
	t.Helper()
	d, err := detectors.NewHotKeyExpiry(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

type (
	episodeOption = func(*signal.Episode)
	cacheOption   = func(*signal.CacheState)
)

// burst is a final episode of key 1 in cache feed: an expiry that two instances
// answer with peak recomputes of 400 ms, all but one of them wasted.
func burst(started time.Duration, peak int, change ...episodeOption) signal.Episode {
	start, half := after(started), uint32(peak+1)/2
	w := &signal.Window{
		Source: signal.Source{Service: "shop"},
		Cache:  "feed", Key: signal.Key{ID: 1, Group: "feed:*"},
		Start: start, End: start.Add(400 * time.Millisecond),
		InFlightPeak: half, MissPeak: half,
		Busy: time.Duration(peak) * 400 * time.Millisecond, BusyMax: 400 * time.Millisecond,
		Shares: []signal.Share{
			{Source: signal.Source{Service: "shop", Instance: "a"}, Recomputes: uint64(half), InFlightPeak: half, MissPeak: half},
			{Source: signal.Source{Service: "shop", Instance: "b"}, Recomputes: uint64(peak / 2), InFlightPeak: uint32(peak / 2), MissPeak: uint32(peak / 2)},
		},
	}
	w.Recomputes.Started[signal.CauseExpired] = uint64(peak)
	w.Recomputes.Ended[signal.CauseExpired][signal.OutcomeOK] = uint64(peak)
	e := signal.Episode{
		Started: start, Window: w, PeakLow: peak, PeakHigh: peak,
		Onset: start.Add(10 * time.Millisecond), KnownBefore: true, TTL: time.Minute, Final: true,
		Duplicates: uint64(max(peak-1, 0)), Wasted: time.Duration(max(peak-1, 0)) * 400 * time.Millisecond,
	}
	for _, f := range change {
		f(&e)
	}
	return e
}

func live(e *signal.Episode) { e.Final = false }

func ofKey(id signal.KeyID) episodeOption { return func(e *signal.Episode) { e.Window.Key.ID = id } }

func ofCache(name string) episodeOption { return func(e *signal.Episode) { e.Window.Cache = name } }

func ttl(d time.Duration) episodeOption { return func(e *signal.Episode) { e.TTL = d } }

// cold makes an episode one of a key that nobody had a value for.
func cold(e *signal.Episode) {
	r := &e.Window.Recomputes
	r.Started[signal.CauseCold], r.Started[signal.CauseExpired] = r.Started[signal.CauseExpired], 0
	e.KnownBefore = false
}

// coalesced makes an episode one of as many instances as it has recomputes.
func coalesced(e *signal.Episode) {
	w := e.Window
	w.InFlightPeak, w.Shares = 1, nil
	for i := range e.PeakLow {
		w.Shares = append(w.Shares, signal.Share{Source: signal.Source{Instance: fmt.Sprint(i)}, Recomputes: 1, InFlightPeak: 1})
	}
}

// budget is what tick declares by itself.
const budget = 8

// feed is the state of cache feed.
func feed(change ...cacheOption) signal.CacheState {
	c := signal.CacheState{
		Cache: "feed", Service: "shop", Origin: signal.Origin{Name: "db", Budget: budget},
		Instances: 2, UptimeMin: time.Hour, UptimeMax: time.Hour,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func noBudget(c *signal.CacheState) { c.Origin = signal.Origin{} }

func silent(c *signal.CacheState) { c.Instances, c.Silent, c.UptimeMin, c.UptimeMax = 0, 2, 0, 0 }

func uptime(d time.Duration) cacheOption {
	return func(c *signal.CacheState) { c.UptimeMin, c.UptimeMax = min(c.UptimeMin, d), d }
}

// tick is a regular tick at which cache feed has a budget of 8.
func tick(at time.Duration, es ...signal.Episode) *signal.Tick {
	return &signal.Tick{At: after(at), Episodes: es, Caches: []signal.CacheState{feed()}}
}

// with replaces the states of caches in t.
func with(t *signal.Tick, caches ...signal.CacheState) *signal.Tick {
	t.Caches = caches
	return t
}

func urgent(t *signal.Tick) *signal.Tick {
	t.Urgent = true
	return t
}

// idle is a regular tick a second, from and to included, without an episode.
func idle(from, to time.Duration, caches ...signal.CacheState) []*signal.Tick {
	if caches == nil {
		caches = []signal.CacheState{feed()}
	}
	var out []*signal.Tick
	for at := from; at <= to; at += time.Second {
		out = append(out, &signal.Tick{At: after(at), Caches: caches})
	}
	return out
}

// play shows ticks to d and returns what it said that was new.
func play(d detectors.Detector, ticks []*signal.Tick) []string {
	var out []string
	last := map[string]string{}
	for _, t := range ticks {
		for _, f := range d.Observe(t) {
			name := ""
			if f.Key.ID != 1 || f.Cache != "feed" {
				name = fmt.Sprintf(" %s/%d", f.Cache, f.Key.ID)
			}
			state := stateOf(&f)
			if state != last[name] {
				out = append(out, fmt.Sprint(t.At.Sub(epoch), name, " ", state))
			}
			last[name] = state
		}
	}
	return out
}

func stateOf(f *detectors.Finding) string {
	switch {
	case f.Cleared:
		return "cleared"
	case f.Priority > 0:
		return fmt.Sprintf("%v/%d", f.Severity, f.Priority)
	}
	return f.Severity.String()
}
