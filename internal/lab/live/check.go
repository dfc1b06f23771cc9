package live

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/internal/strictyaml"
)

// Bounds on what one process and one server can stand for.
const (
	maxInstances = 200
	maxRate      = 20_000 // reads per second, by all workloads
	maxKeys      = 100_000
)

// doable are the events that can be made to happen in real time.
var doable = []string{
	scenario.DoFlush, scenario.DoEvict, scenario.DoNodeLoss, scenario.DoInvalidate, scenario.DoWarm,
	scenario.DoKillHolder, scenario.DoSlow, scenario.DoFail, scenario.DoShed, scenario.DoLoad,
}

// checker collects what cannot be run.
type checker struct{ errs []error }

func (k *checker) refuse(bad bool, what string, path ...string) {
	if bad {
		k.errs = append(k.errs, strictyaml.Field(what+" runs only in virtual time", path...))
	}
}

func (k *checker) atMost(got, limit float64, path ...string) {
	if got > limit {
		k.errs = append(k.errs, strictyaml.Field(fmt.Sprintf("%v is too much for real time: want at most %v", got, limit), path...))
	}
}

// Check returns what of sc only a simulator can do, for [scenario.LoadFor].
func Check(sc *scenario.Scenario) []error {
	var k checker
	k.atMost(float64(sc.Fleet.Instances), maxInstances, "fleet", "instances")
	k.refuse(sc.Fleet.ClockSkew > 0, "a clock that is off", "fleet", "clock_skew")
	for _, name := range slices.Sorted(maps.Keys(sc.Origins)) {
		k.refuse(sc.Origins[name].Cancel, "an origin that stops what nobody waits for", "origins", name, "cancel")
	}
	for _, name := range slices.Sorted(maps.Keys(sc.Caches)) {
		k.cache(sc.Caches[name], name)
	}
	rate := 0.0
	for i, w := range sc.Workloads {
		at := strconv.Itoa(i)
		rate += w.Rate
		k.atMost(rate, maxRate, "workloads", at, "rate")
		k.atMost(float64(w.First+w.Keys), maxKeys, "workloads", at, "keys")
	}
	for i, e := range sc.Events {
		k.refuse(!slices.Contains(doable, e.Do), e.Do, "events", strconv.Itoa(i), "do")
	}
	return k.errs
}

// cache refuses what the rig's processes do not know how to do.
func (k *checker) cache(c scenario.Cache, name string) {
	in := func(fields ...string) []string { return append([]string{"caches", name}, fields...) }
	k.refuse(c.Sweep.Every > 0, "sweep", in("sweep")...)
	k.refuse(c.Versioned, "telling versions", in("versioned")...)
	k.refuse(c.SingleFlight.Waiters > 0, "a bound on waiters", in("singleflight", "waiters")...)
	k.refuse(!c.Lock.Recheck, "a lock without a second look", in("lock", "recheck")...)
	k.refuse(c.Lock.Release != scenario.ReleaseAlways, "a lock that is left", in("lock", "release")...)
	k.refuse(c.Client.Hedge > 0, "hedge", in("client", "hedge")...)
	k.refuse(c.Client.CacheErrors > 0, "cache_errors", in("client", "cache_errors")...)
}
