package fleet_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// probed is what a probe says of a server.
func probed(server string, at signal.Nanos, uptime time.Duration) *signal.Vitals {
	return &signal.Vitals{Source: signal.Source{Service: "redis", Instance: server}, Cache: "feed", At: at, Uptime: uptime, Probe: true}
}

func TestAProbeIsNoInstance(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	app := vitals(1, t0)
	app.Uptime = time.Minute
	f.Add(t0, nil, []*signal.Vitals{app, probed("a:1", t0, time.Second), probed("b:1", t0, time.Hour)})
	c := f.Tick(t0).Caches[0]
	if c.Instances != 1 || c.Probes != 2 || c.Silent != 0 || c.UptimeMin != time.Minute || c.UptimeMax != time.Minute || c.Service != app.Service {
		t.Errorf("got %+v; want the name and the uptime of the one instance, and two probes", c)
	}
	if c := f.Tick(t0 + 10*s).Caches[0]; c.Instances != 0 || c.Probes != 0 || c.Silent != 1 {
		t.Errorf("reporting %d, probes %d, silent %d; want 0, 0 and the one instance", c.Instances, c.Probes, c.Silent)
	}
}

func TestACacheThatOnlyProbesKnowGoesByItsServers(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	f.Add(t0, nil, []*signal.Vitals{probed("a:1", t0, time.Minute), probed("b:1", t0, time.Hour), probed("b:1#expiry", t0, 0)})
	c := f.Tick(t0).Caches[0]
	if c.Instances != 0 || c.Probes != 3 || c.UptimeMin != time.Minute || c.UptimeMax != time.Hour || c.Service != "redis" {
		t.Errorf("got %+v; want the uptimes of those servers whose probes tell", c)
	}
}

func TestFlushesAndRestartsAreCountedBetweenTicks(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	say := func(at signal.Nanos, uptime time.Duration, flushes uint64) {
		v := probed("a:1", at, uptime)
		v.Server.Flushes = flushes
		f.Add(at, nil, []*signal.Vitals{v})
	}
	say(t0, time.Hour, 7)
	f.Tick(t0)
	say(t0+s, time.Hour+time.Second, 9)
	if c := f.Tick(t0 + s).Caches[0]; c.Flushed != 2 || c.Restarted != 0 {
		t.Errorf("flushed %d, restarted %d; want 2 and 0", c.Flushed, c.Restarted)
	}
	say(t0+2*s, time.Second, 1)
	if c := f.Tick(t0 + 2*s).Caches[0]; c.Flushed != 1 || c.Restarted != 1 {
		t.Errorf("flushed %d, restarted %d; want 1 by the server that was started anew", c.Flushed, c.Restarted)
	}
}

func TestExpiriesKeepTheirGroupsAndTheirSample(t *testing.T) {
	f := newFleet(t, fleet.Options{})
	at := t0 + 100*s
	say := func(server string, when signal.Nanos, keys uint32, weight float64) {
		v := probed(server, when, 0)
		v.Expiries = []signal.ExpiryBin{{At: at, Width: time.Second, Keys: keys, Group: "feed:*"}}
		v.Sample = signal.Sample{Keys: 10, Population: uint64(10 * weight), Weight: weight}
		v.Hot = []signal.HotKey{{ID: signal.KeyID(keys), Group: "feed:*", Share: float64(keys) / 100, Expiry: at}}
		f.Add(when, nil, []*signal.Vitals{v})
	}
	say("a:1#expiry", t0, 4, 2)
	say("b:1#expiry", t0, 5, 3)
	c := f.Tick(t0).Caches[0]
	if diff := cmp.Diff([]signal.ExpiryBin{{At: at, Width: time.Second, Keys: 9, Group: "feed:*"}}, c.Expiries); diff != "" {
		t.Errorf("expiries (-want +got):\n%s", diff)
	}
	if want := (signal.Sample{Keys: 20, Population: 50, Weight: 3}); c.Sample != want {
		t.Errorf("sample is %+v; want %+v", c.Sample, want)
	}
	if len(c.Hot) != 2 || c.Hot[0].ID != 5 || c.Hot[0].Expiry != at {
		t.Errorf("hot keys are %+v; want 5 before 4", c.Hot)
	}
	say("b:1#expiry", t0+8*s, 5, 3)
	c = f.Tick(t0 + 8*s).Caches[0]
	if len(c.Expiries) != 1 || c.Expiries[0].Keys != 5 || c.Sample.Keys != 10 {
		t.Errorf("got %+v of %+v; want none of the probe that is silent", c.Expiries, c.Sample)
	}
}
