package lab

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	tickEvery = time.Second
	// urgentDelay is how long an urgent report waits for others to share its
	// tick, as in the exporter.
	urgentDelay = 5 * time.Millisecond
	// A report takes from minDelay to maxDelay to arrive.
	minDelay, maxDelay = time.Millisecond, 8 * time.Millisecond
)

// clock is the time that a rig lives in. The functions given to After are called
// one at a time, each so long from now.
type clock interface {
	Now() time.Time
	After(d time.Duration, f func())
}

// pipe is the exporter, but for its sockets: what arrives is decoded, joined,
// shown to the detectors, and what they find is kept as incidents.
type pipe struct {
	clock     clock
	config    detectors.Config
	dir       string // of what survives a restart; empty if there is none
	exporter  *exporter
	findings  findings
	incidents incidents
	restart   *restart // nil if there is none
	found     []detectors.Finding
	encoder   encoder
	delays    *rand.Rand
	hurried   bool // an urgent tick is due
	windows   int
	err       error
}

// exporter is what a restart makes anew.
type exporter struct {
	fleet     *fleet.Fleet
	detectors []detectors.Detector
	learnt    engine.Knowledge
	manager   *incident.Manager
}

// newPipe returns a pipe whose exporter, once it is booted, keeps in dir what is
// to survive it.
func newPipe(seed uint64, c detectors.Config, dir string) *pipe {
	p := &pipe{config: c, dir: dir, delays: rand.New(rand.NewPCG(seed, 5))}
	p.findings.open = map[subject]*Finding{}
	p.incidents = incidents{findings: &p.findings, byID: map[string]*Incident{}}
	return p
}

// boot starts an exporter, which knows what the one before has saved.
func (p *pipe) boot() error {
	x := &exporter{}
	var err error
	if x.detectors, err = detectors.All(p.config); err != nil {
		return err
	}
	if x.fleet, err = fleet.New(fleet.Options{}); err != nil {
		return err
	}
	o := incident.Options{Listeners: []incident.Listener{&p.incidents}}
	if p.dir != "" {
		o.StateFile = filepath.Join(p.dir, "incidents.json")
		x.learnt = engine.Remember(filepath.Join(p.dir, "knowledge.json"), x.detectors, slog.New(slog.DiscardHandler))
	}
	if x.manager, err = incident.New(o); err != nil {
		return err
	}
	p.exporter = x
	return nil
}

// close stops the exporter; what it knows is saved.
func (p *pipe) close() error {
	x := p.exporter
	if x == nil {
		return nil
	}
	p.exporter = nil
	x.learnt.Close()
	return x.manager.Close()
}

// start sets the clock of the exporter going.
func (p *pipe) start(c clock) {
	p.clock = c
	p.findings.start = p.now()
	var tick func()
	tick = func() {
		if x := p.exporter; x != nil {
			p.look(x.fleet.Tick(p.now()))
		}
		c.After(tickEvery, tick)
	}
	c.After(tickEvery, tick)
}

func (p *pipe) now() signal.Nanos { return signal.At(p.clock.Now()) }

// report takes what a process says, on its way to the exporter.
func (p *pipe) report(r rig.Report) {
	delay := minDelay + time.Duration(p.delays.Int64N(int64(maxDelay-minDelay)))
	p.clock.After(delay, func() { p.arrive(r) })
}

// arrive is the report at the exporter, which may be away.
func (p *pipe) arrive(r rig.Report) {
	if p.exporter == nil {
		return
	}
	ws, vs, err := p.encoder.through(r.Windows, r.Vitals)
	if err != nil {
		p.err = fmt.Errorf("send a report: %w", err)
		return
	}
	p.windows += len(ws)
	if !p.exporter.fleet.Add(p.now(), ws, vs) || p.hurried {
		return
	}
	p.hurried = true
	p.clock.After(urgentDelay, func() {
		p.hurried = false
		if p.exporter != nil {
			p.look(p.exporter.fleet.UrgentTick(p.now()))
		}
	})
}

// look shows a tick to every detector, and what they find to whoever keeps
// incidents; nil is no tick.
func (p *pipe) look(t *signal.Tick) {
	if t == nil {
		return
	}
	p.found = p.found[:0]
	for _, d := range p.exporter.detectors {
		p.found = append(p.found, d.Observe(t)...)
	}
	p.findings.add(t.At, p.found)
	p.exporter.manager.Apply(t.At, p.found)
	if x := p.restart; x != nil {
		if !x.planned && p.incidents.most >= x.waitsFor {
			x.planned = true
			p.clock.After(restartAfter, p.stop)
		}
		x.look(t.At.Sub(p.findings.start), &p.findings)
	}
}
