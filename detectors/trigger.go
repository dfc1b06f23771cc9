package detectors

import (
	"math"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// triggerKind is something from outside that can start trouble.
type triggerKind uint8

const (
	noTrigger       triggerKind = iota
	triggerDeploy               // instances were started
	triggerEviction             // many values vanished at once
	triggerFault                // the origin returned errors though it was not full
	triggerSlow                 // the origin slowed down though it was not full
	triggerDemand               // readers want more than the origin can give a warm cache
	triggerLoad                 // more readers than before
)

var triggerNames = [...]string{"none seen", "instances started", "values vanished", "the origin failed", "the origin slowed down", "demand above the origin's ceiling", "load rose"}

func (k triggerKind) String() string { return triggerNames[k] }

const (
	// triggerYoung is how long an instance counts as just started.
	triggerYoung = 15 * time.Second
	// triggerMost is how long something may go on and still be what started
	// the trouble. Longer, it is how things are now.
	triggerMost = 10 * time.Minute
	// triggerEvents is how many events make a change worth the name.
	triggerEvents = 20
	// vanishJump is how much faster than before values must vanish.
	vanishJump = 5
	// loadMargin is how much the load may exceed that from before.
	loadMargin = 1.1
	// fullAt is the use of an origin from which what it does says nothing of
	// how it is: recomputes queue, and time out because of that.
	fullAt = 0.9
)

// trigger follows what from outside may explain trouble at an origin.
type trigger struct {
	kind        triggerKind // of the latest: what it began with
	from, until signal.Nanos
	open        bool    // at the latest tick
	backlog     float64 // recomputes that waited when it was last open

	since     [len(triggerNames)]signal.Nanos // how long each kind has gone on
	vanishing bool
}

// look takes in a tick.
func (g *trigger) look(at signal.Nanos, o *origin) {
	kind := noTrigger
	for k := triggerDeploy; k <= triggerLoad; k++ {
		if g.goesOn(at, k, o) && kind == noTrigger {
			kind = k
		}
	}
	g.open = kind != noTrigger
	if !g.open {
		return
	}
	if at.Sub(g.until) > lapse || at < g.until {
		g.kind, g.from = kind, at
	}
	g.until = at
	g.backlog = max(0, o.running-float64(o.budget))
}

// goesOn reports whether k goes on at a tick, and has not for too long. More
// load or demand than before explains trouble for as long as it lasts.
func (g *trigger) goesOn(at signal.Nanos, k triggerKind, o *origin) bool {
	if !g.sees(k, o) {
		g.since[k] = 0
		return false
	}
	if g.since[k] == 0 {
		g.since[k] = at
	}
	return k == triggerLoad || k == triggerDemand || at.Sub(g.since[k]) <= triggerMost
}

func (g *trigger) sees(k triggerKind, o *origin) bool {
	f := &o.last10
	free := o.budget > 0 && f.use(o.budget) < fullAt
	switch k {
	case triggerDeploy:
		return o.uptime > 0 && o.uptime < triggerYoung
	case triggerEviction:
		return g.vanishes(o)
	case triggerFault:
		return free && f.ended >= triggerEvents && f.failed >= f.ended/2
	case triggerSlow:
		return free && o.known && f.timed >= triggerEvents/2 && f.delta() >= 2*o.usual.delta
	case triggerDemand:
		return o.known && o.counterfactual(&o.last5) > fullAt
	case triggerLoad:
		return o.known && o.usual.load > 0 && aboveLoad(&o.last5, o.usual.load)
	}
	return false
}

// vanishes reports whether values began to vanish, or servers are throwing them
// out. Afterwards each key's next miss still says that its value vanished, in a
// loop for as long as it would have lived; so only the beginning counts.
func (g *trigger) vanishes(o *origin) bool {
	if o.last10.evicted >= triggerEvents && o.last10.evicted >= o.last10.misses/2 {
		return true
	}
	before := max(0, o.last60.lost-o.last10.lost)
	jump := o.last10.lost >= triggerEvents &&
		o.last10.perSecond(o.last10.lost)*max(0, (o.last60.span-o.last10.span).Seconds()) >= vanishJump*before
	was := g.vanishing
	g.vanishing = jump
	return jump && !was
}

// aboveLoad reports whether there are more readers than load per second, by more
// than the margin and chance: three standard deviations of a Poisson count.
func aboveLoad(f *flow, load float64) bool {
	expected := loadMargin * load * f.span.Seconds()
	return f.firsts() > expected+3*math.Sqrt(expected)
}
