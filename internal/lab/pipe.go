package lab

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/fleet"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/sim"
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

// pipe is the exporter, but for its sockets: what arrives is decoded, joined,
// and shown to the detectors.
type pipe struct {
	sim       *sim.Sim
	fleet     *fleet.Fleet
	detectors []detectors.Detector
	findings  findings
	encoder   encoder
	delays    *rand.Rand
	hurried   bool // an urgent tick is due
	windows   int
	err       error
}

func newPipe(seed uint64, c detectors.Config) (*pipe, error) {
	all, err := detectors.All(c)
	if err != nil {
		return nil, err
	}
	f, err := fleet.New(fleet.Options{})
	if err != nil {
		return nil, err
	}
	return &pipe{fleet: f, detectors: all, delays: rand.New(rand.NewPCG(seed, 5))}, nil
}

// start sets the clock of the exporter going.
func (p *pipe) start(s *sim.Sim) {
	p.sim = s
	var tick func()
	tick = func() {
		p.look(p.fleet.Tick(p.now()))
		s.After(tickEvery, tick)
	}
	s.After(tickEvery, tick)
}

func (p *pipe) now() signal.Nanos { return signal.At(p.sim.Now()) }

// report takes what a process says, on its way to the exporter.
func (p *pipe) report(r sim.Report) {
	delay := minDelay + time.Duration(p.delays.Int64N(int64(maxDelay-minDelay)))
	p.sim.After(delay, func() { p.arrive(r) })
}

// arrive is the report at the exporter.
func (p *pipe) arrive(r sim.Report) {
	ws, vs, err := p.encoder.through(r.Windows, r.Vitals)
	if err != nil {
		p.err = fmt.Errorf("send a report: %w", err)
		return
	}
	p.windows += len(ws)
	if !p.fleet.Add(p.now(), ws, vs) || p.hurried {
		return
	}
	p.hurried = true
	p.sim.After(urgentDelay, func() {
		p.hurried = false
		if t := p.fleet.UrgentTick(p.now()); t != nil {
			p.look(t)
		}
	})
}

// look shows a tick to every detector.
func (p *pipe) look(t *signal.Tick) {
	for _, d := range p.detectors {
		p.findings.add(t.At, d.Observe(t))
	}
}
