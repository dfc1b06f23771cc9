package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// Epoch is the instant at which every run starts. It is arbitrary, and the same
// for all, so that runs can be compared.
var Epoch = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

// Options configure a [Sim].
type Options struct {
	// Seed replaces the scenario's, unless it is zero.
	Seed uint64
	// Calm switches off what amplifies load: one attempt a request and no
	// hedge, results that come late still fill the cache, and no error deletes
	// a key.
	Calm bool
	// Report takes what one process says at one instant, in order of time.
	// It is the receiver's to keep. Nil: the processes are not watched, which
	// costs less.
	Report func(rig.Report)
}

// Sim is one run. It is not safe for concurrent use.
type Sim struct {
	o      Options
	sc     *scenario.Scenario
	now    int64 // nanoseconds since Epoch
	end    int64
	agenda agenda

	// Chance comes in streams, so that a change to one part of a scenario
	// leaves the rest of the run as it was: above all the arrivals, and that
	// somebody watches.
	arrivals, services, choices, reporting *rand.Rand

	origins   []*origin
	caches    []*cache
	workloads []*workload
	slots     []*process // by instance; nil while it is away
	up        []*process // those that take requests
	dropping  float64    // share of reports that are lost

	tail    span // the last tenth
	account account
	err     error // the first thing that went wrong
}

// New returns a run of sc that has not begun. sc must have passed its checks.
func New(sc *scenario.Scenario, o Options) (*Sim, error) {
	if o.Seed == 0 {
		o.Seed = sc.Seed
	}
	s := &Sim{
		o: o, sc: sc, end: int64(sc.Duration),
		arrivals:  rand.New(rand.NewPCG(o.Seed, 1)),
		services:  rand.New(rand.NewPCG(o.Seed, 2)),
		choices:   rand.New(rand.NewPCG(o.Seed, 3)),
		reporting: rand.New(rand.NewPCG(o.Seed, 4)),
	}
	s.account.init(s)
	byName := map[string]*origin{}
	for _, name := range slices.Sorted(maps.Keys(sc.Origins)) {
		byName[name] = newOrigin(s, name, sc.Origins[name])
		s.origins = append(s.origins, byName[name])
	}
	for _, name := range slices.Sorted(maps.Keys(sc.Caches)) {
		c := sc.Caches[name]
		s.caches = append(s.caches, newCache(s, len(s.caches), name, c, byName[c.Origin]))
	}
	s.tail.from, s.tail.to = s.rest().LastTenth()
	for i := range sc.Workloads {
		s.workloads = append(s.workloads, newWorkload(s, &sc.Workloads[i]))
	}
	for i := range sc.Fleet.Instances {
		if err := s.startProcess(i, sc.Fleet.Build, nil, s.skew()); err != nil {
			return nil, fmt.Errorf("start instance %d: %w", i, err)
		}
	}
	for i := range sc.Events {
		s.plan(&sc.Events[i])
	}
	for _, w := range s.workloads {
		s.agenda.push(w.gap(s), w)
	}
	return s, nil
}

// skew draws how far an instance's clock is off.
func (s *Sim) skew() time.Duration {
	most := s.sc.Fleet.ClockSkew
	if most == 0 {
		return 0
	}
	return time.Duration((2*s.choices.Float64() - 1) * float64(most))
}

// Now returns the instant the run has come to, on the true clock.
func (s *Sim) Now() time.Time { return Epoch.Add(time.Duration(s.now)) }

// hook is an action from outside.
type hook func()

func (h hook) run(*Sim) { h() }

// After runs f in virtual time d from now. It costs an allocation.
func (s *Sim) After(d time.Duration, f func()) { s.agenda.push(s.now+max(0, int64(d)), hook(f)) }

// checkEvery is after how many events the context is looked at.
const checkEvery = 1 << 14

// Run runs to the end, or until ctx is done.
func (s *Sim) Run(ctx context.Context) error {
	for n := 0; len(s.agenda.events) > 0 && s.agenda.events[0].at <= s.end; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return fmt.Errorf("run scenario %q: %w", s.sc.Name, ctx.Err())
		}
		e := s.agenda.pop()
		s.now = e.at
		e.do.run(s)
		if s.err != nil {
			return fmt.Errorf("run scenario %q: %w", s.sc.Name, s.err)
		}
	}
	s.now = s.end
	return nil
}

func (s *Sim) after(d time.Duration, do action) { s.agenda.push(s.now+max(0, int64(d)), do) }

func (s *Sim) cache(name string) *cache {
	for _, c := range s.caches {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (s *Sim) origin(name string) *origin {
	for _, o := range s.origins {
		if o.name == name {
			return o
		}
	}
	return nil
}
