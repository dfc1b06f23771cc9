// Package engine is the exporter between what comes in and what goes out: it
// joins windows into ticks of the fleet, shows each tick to the detectors, and
// hands what they find to the incident manager.
//
// There is one loop. It ticks once a second, and within milliseconds of a
// window that shows a key in more trouble than the fleet knew of.
package engine

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// tickEvery is the interval of regular ticks.
	tickEvery = time.Second
	// urgentDelay is how long an urgent report waits for others to share its
	// tick. When a hot key expires, a whole fleet reports within
	// milliseconds; one tick for all of them costs less and sees more.
	urgentDelay = 5 * time.Millisecond
)

// Options configure an [Engine]. All but StateFile, Declared and Now are
// required.
type Options struct {
	Fleet     *fleet.Fleet
	Detectors []detectors.Detector
	Incidents *incident.Manager
	Logger    *slog.Logger
	Metrics   *Metrics
	// StateFile is where what detectors have learnt is kept across restarts,
	// once a minute and when [Engine.Run] ends; its folder is made if it is
	// not there. Two engines must not share one. Default: none, and a restart
	// forgets it.
	StateFile string
	// Declared is what the operator says of origins and caches. Default:
	// nothing. It can be changed: see [Engine.Declare].
	Declared Declarations
	// Now is the clock everything is joined on. Default: [SteadyClock].
	Now func() time.Time
}

// Engine joins windows, detects and keeps incidents. [Engine.Ingest] may be
// called concurrently with everything; [Engine.Run] once.
type Engine struct {
	o        Options
	urgent   chan struct{} // holds a token while an urgent tick is due
	declared atomic.Pointer[Declarations]
	caches   atomic.Pointer[[]signal.CacheState]
	limits   atomic.Pointer[[]Limit]
	measures atomic.Pointer[[]detectors.Measure]
	learnt   *knowledge
	looked   atomic.Int64    // when the last regular tick was looked at, as signal.Nanos
	panicked map[string]bool // detectors whose panic was logged; the loop's own
}

// New returns an engine whose detectors know what is in the state file;
// [Engine.Run] starts it.
func New(o Options) *Engine {
	if o.Now == nil {
		o.Now = SteadyClock()
	}
	e := &Engine{o: o, urgent: make(chan struct{}, 1), panicked: map[string]bool{}}
	e.learnt = newKnowledge(o.StateFile, o.Detectors, o.Logger)
	e.Declare(o.Declared)
	e.caches.Store(new([]signal.CacheState))
	e.limits.Store(new([]Limit))
	e.measures.Store(new([]detectors.Measure))
	e.looked.Store(int64(signal.At(o.Now())))
	return e
}

// SteadyClock returns a clock that starts at the wall clock's time and never
// jumps, whatever is done to the wall clock later.
func SteadyClock() func() time.Time {
	base := time.Now()
	return func() time.Time { return base.Add(time.Since(base)) }
}

// Now returns the time on the engine's clock.
func (e *Engine) Now() time.Time { return e.o.Now() }

// Declare replaces what the operator says of origins and caches, for all
// vitals from now on.
func (e *Engine) Declare(d Declarations) { e.declared.Store(&d) }

// Idle returns how long ago the engine last looked at the whole fleet. While it
// runs that is about a second at most.
func (e *Engine) Idle() time.Duration {
	return signal.At(e.o.Now()).Sub(signal.Nanos(e.looked.Load()))
}

// Caches returns what the fleet knew of each cache at the last regular tick,
// by name. The result is shared: do not change it.
func (e *Engine) Caches() []signal.CacheState { return *e.caches.Load() }

// Limit is what one detector could not judge: see [detectors.Limited].
type Limit struct {
	Detector string
	detectors.Limit
}

// Limits returns what detectors could not judge at the last regular tick, by
// detector, then cache. The result is shared: do not change it.
func (e *Engine) Limits() []Limit { return *e.limits.Load() }

// Measures returns what detectors measured at the last regular tick. The result
// is shared: do not change it.
func (e *Engine) Measures() []detectors.Measure { return *e.measures.Load() }

// Totals returns what the fleet has done so far, by cache.
func (e *Engine) Totals() []fleet.CacheTotals { return e.o.Fleet.Totals(signal.At(e.o.Now())) }

// Ingest takes records from a receiver. It implements [ingest.Sink].
func (e *Engine) Ingest(b ingest.Batch) {
	e.o.Metrics.received(b.Transport, len(b.Windows), len(b.Vitals))
	e.Add(b.Windows, b.Vitals)
}

// Add takes windows and vitals, which become the engine's own.
func (e *Engine) Add(ws []*signal.Window, vs []*signal.Vitals) {
	declared := e.declared.Load()
	for _, v := range vs {
		v.Origin = declared.Origin(v.Cache, v.Origin)
	}
	if !e.o.Fleet.Add(signal.At(e.o.Now()), ws, vs) {
		return
	}
	select {
	case e.urgent <- struct{}{}:
	default: // a tick is due already, and will see these too
	}
}

// Run ticks until ctx is done, and looks once more at what is urgent then.
func (e *Engine) Run(ctx context.Context) {
	regular, saving := time.NewTicker(tickEvery), time.NewTicker(saveEvery)
	defer regular.Stop()
	defer saving.Stop()
	defer e.learnt.close()
	var hurry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			// What arrived in haste must not be lost.
			e.look(e.o.Fleet.UrgentTick(signal.At(e.o.Now())))
			return
		case <-regular.C:
			e.look(e.o.Fleet.Tick(signal.At(e.o.Now())))
		case <-saving.C:
			e.learnt.save()
		case <-e.urgent:
			if hurry == nil {
				hurry = time.After(urgentDelay)
			}
		case <-hurry:
			hurry = nil
			e.look(e.o.Fleet.UrgentTick(signal.At(e.o.Now())))
		}
	}
}

// look shows one tick to every detector; nil is no tick.
func (e *Engine) look(t *signal.Tick) {
	if t == nil {
		return
	}
	began := time.Now()
	var found []detectors.Finding
	for _, d := range e.o.Detectors {
		found = append(found, e.observe(d, t)...)
	}
	e.o.Incidents.Apply(t.At, found)
	if !t.Urgent {
		e.caches.Store(&t.Caches)
		e.limits.Store(e.askLimits())
		e.measures.Store(e.askMeasures())
		e.looked.Store(int64(signal.At(e.o.Now())))
	}
	e.o.Metrics.tick(time.Since(began))
}

func (e *Engine) askLimits() *[]Limit {
	var all []Limit
	for _, d := range e.o.Detectors {
		if l, ok := d.(detectors.Limited); ok {
			for _, limit := range l.Limits() {
				all = append(all, Limit{d.Doc().ID, limit})
			}
		}
	}
	return &all
}

func (e *Engine) askMeasures() *[]detectors.Measure {
	var all []detectors.Measure
	for _, d := range e.o.Detectors {
		if m, ok := d.(detectors.Measured); ok {
			all = append(all, m.Measures()...)
		}
	}
	return &all
}

// observe asks one detector. A panic in it must not cost the others, nor the
// exporter: it is counted each time and logged once, and the detector is asked
// again at the next tick, because a detector that is off is silent too.
func (e *Engine) observe(d detectors.Detector, t *signal.Tick) (found []detectors.Finding) {
	id := d.Doc().ID
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		found = nil
		e.o.Metrics.panicked(id)
		if !e.panicked[id] {
			e.panicked[id] = true
			e.o.Logger.Error("Detector panicked; further panics of it are counted only",
				"detector", id, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	return d.Observe(t)
}
