package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

const (
	// reportEvery is how often a monitor flushes.
	reportEvery = time.Second
	// drainFor is how long a process that is replaced has for its requests.
	drainFor = 30 * time.Second
)

// process is one life of one instance. It is its own action: the next flush.
type process struct {
	s        *Sim
	instance int
	build    string
	skew     time.Duration
	protect  []scenario.Protections // by cache
	monitors []*instrument.Monitor  // by cache; nil if nobody watches
	out      *outbox
	busy     int   // requests it has not answered
	dead     bool  // it says and does nothing more
	muted    bool  // it says nothing more
	leaving  bool  // it takes no new requests
	leaveBy  int64 // when it ends, answered or not
}

// startProcess puts a new process in the place of instance i. protect replaces
// the caches' protections, unless it is nil.
func (s *Sim) startProcess(i int, build string, protect []scenario.Protections, skew time.Duration) error {
	p := &process{s: s, instance: i, build: build, skew: skew, protect: protect}
	if p.protect == nil {
		for _, c := range s.caches {
			p.protect = append(p.protect, c.cfg.Protect)
		}
	}
	p.monitors = make([]*instrument.Monitor, len(s.caches)) // a nil monitor does nothing
	if s.o.Report != nil {
		if err := p.watch(); err != nil {
			return err
		}
		s.after(time.Duration(s.reporting.Int64N(int64(reportEvery))), p)
	}
	if s.slots == nil {
		s.slots = make([]*process, s.sc.Fleet.Instances)
	}
	s.slots[i] = p
	s.listUp()
	return nil
}

// watch gives p its monitors.
func (p *process) watch() error {
	s := p.s
	p.out = &outbox{}
	for i, c := range s.caches {
		o := signal.Origin{Name: c.origin.name}
		if c.origin.cfg.Declared {
			o.Budget = c.origin.cfg.Concurrency
		}
		// Claims are what the scenario says of the cache, and what a deploy
		// added. What a deploy took away, nobody knows to have lost.
		m, err := instrument.New(c.name, instrument.Options{
			Service:  rig.Service,
			Instance: fmt.Sprintf("lab-%02d", p.instance),
			Build:    p.build,
			Origin:   o,
			Claims:   rig.Claims(&c.cfg, c.cfg.Protect|p.protect[c.index]),
			// A table far larger than what goes into it never has to choose
			// what to forget, which it would do by chance.
			MaxKeys: max(64, min(8*len(c.entries), 1<<17)), MaxBytes: 1 << 30,
			MaxWindows: max(1024, len(c.entries)),
			Privacy:    instrument.PrivacyRaw,
			Salt:       rig.Service,
			Interval:   -1,
			Now:        func() time.Time { return Epoch.Add(time.Duration(s.now) + p.skew) },
		})
		if err != nil {
			return err
		}
		m.Attach(p.out)
		p.monitors[i] = m
	}
	return nil
}

// run flushes, and comes back.
func (p *process) run(s *Sim) {
	if p.dead || p.muted {
		return
	}
	if p.leaving && (p.busy == 0 || s.now >= p.leaveBy) {
		p.dead = true
		for _, m := range p.monitors {
			m.Close()
		}
		p.send(false)
		return
	}
	for _, m := range p.monitors {
		m.Flush()
	}
	p.send(false)
	s.after(reportEvery, p)
}

// hurry sends what is urgent of one cache at once, as the monitor's goroutine
// would.
func (p *process) hurry(c *cache) {
	if p.out == nil || p.dead || p.muted {
		return
	}
	p.monitors[c.index].FlushUrgent()
	if len(p.out.report.Windows) > 0 {
		p.send(true)
	}
}

// send passes on what p's monitors have said, unless it is lost.
func (p *process) send(urgent bool) {
	r := p.out.report
	p.out.report = rig.Report{}
	if p.s.dropping > 0 && p.s.reporting.Float64() < p.s.dropping {
		p.out.dropped += uint64(len(r.Windows) + len(r.Vitals))
		return
	}
	r.Urgent = urgent
	// A monitor's table is in an order that differs from run to run.
	slices.SortStableFunc(r.Windows, func(a, b *signal.Window) int {
		return cmp.Or(cmp.Compare(a.Cache, b.Cache), cmp.Compare(a.Key.ID, b.Key.ID))
	})
	p.s.o.Report(r)
}

// crash ends p without a word, and with it all that it was doing.
func (p *process) crash() {
	p.dead = true
	if p.s.slots[p.instance] == p {
		p.s.slots[p.instance] = nil
	}
	p.s.listUp()
}

// retire takes p out of service; it ends once its requests are answered.
func (p *process) retire() {
	p.leaving, p.leaveBy = true, p.s.now+int64(drainFor)
	if p.s.slots[p.instance] == p {
		p.s.slots[p.instance] = nil
	}
	p.s.listUp()
}

// listUp lists the processes that take requests.
func (s *Sim) listUp() {
	s.up = s.up[:0]
	for _, p := range s.slots {
		if p != nil {
			s.up = append(s.up, p)
		}
	}
	changed := 0.0
	for _, p := range s.up {
		if p.build != s.sc.Fleet.Build {
			changed++
		}
	}
	s.account.Rolled(changed / float64(max(1, len(s.up))))
}

// outbox is the sink of a process's monitors.
type outbox struct {
	report  rig.Report
	dropped uint64
}

// Window implements [instrument.Sink].
func (o *outbox) Window(w *signal.Window, _ bool) { o.report.Windows = append(o.report.Windows, w) }

// Vitals implements [instrument.Sink].
func (o *outbox) Vitals(v *signal.Vitals) { o.report.Vitals = append(o.report.Vitals, v) }

// Dropped implements [instrument.Sink].
func (o *outbox) Dropped() uint64 { return o.dropped }

func expiry(ttl time.Duration) instrument.Expiry { return instrument.Expiry{TTL: ttl} }
