package memcached

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// WatchName is the name of the probe [Watch] makes, unless options give another.
const WatchName = "memcached-watch"

// watchInterval is the default interval of [Watch]: what it hears waits for what
// may come before it, so it should not wait for the run to end as well.
const watchInterval = 500 * time.Millisecond

// Watch returns a probe that listens to the log of the server at addr,
// host:port: what its clients looked for and did not find, and what they stored.
// It makes windows of that for cache, of the source {Service,
// addr#watch}, and one [signal.Vitals] a run.
//
// The log comes in pieces, up to a second late and out of order, so windows come
// about one and a half seconds after what they tell of. Each run also asks for
// the server's counters: they tell of lines the server had no room for, of a
// restart, and of a connection that has gone silent.
//
// It costs the server two connections, and about a microsecond for each line.
func Watch(addr, cache string, o Options, w WatchOptions) (probes.Probe, error) {
	o, w = o.withDefaults(WatchName).streaming(watchInterval), w.withDefaults()
	if err := o.validate(addr, cache); err != nil {
		return probes.Probe{}, err
	}
	source := signal.Source{Service: o.Service, Instance: addr + "#watch"}
	events, err := w.events(source, cache)
	if err != nil {
		return probes.Probe{}, fmt.Errorf("probe memcached %q: %w", addr, err)
	}
	p := &watch{
		log:      link{addr: addr, o: o},
		counters: link{addr: addr, o: o},
		source:   source,
		cache:    cache,
		events:   events,
		budget:   newBudget(w.MaxLinesPerSecond, time.Now()),
		interval: o.Interval,
		limits:   limits{lines: w.MaxLinesPerSecond},
	}
	return probes.Probe{
		Name:     o.Name,
		Target:   addr,
		Interval: o.Interval,
		Timeout:  o.Timeout,
		Run:      p.run,
		Close:    func() error { return errors.Join(p.log.close(), p.counters.close()) },
	}, nil
}

// unseen is what no server's log tells of.
const unseen = signal.UnknownHits | signal.UnknownStarts | signal.UnknownCoalesced | signal.UnknownEarly | signal.UnknownLocks | signal.UnknownRetries

// watch listens to one server's log.
type watch struct {
	log      link // which the server writes its log to
	counters link // which it is asked for its counters on
	source   signal.Source
	cache    string
	interval time.Duration

	budget   *budget
	backlog  backlog
	clock    clock
	events   *events
	key      []byte // of the line that is read
	last     counters
	polled   bool      // last is set
	asked    time.Time // when the log was asked for
	answered bool      // the server has agreed
	heard    int       // lines, since the counters were asked for
	owed     time.Time // since when the log should have said something; zero if it has
	limits   limits
	// Of this run.
	gaps, skipped uint64
}

func (p *watch) run(ctx context.Context) (probes.Result, error) {
	p.gaps, p.skipped = 0, 0
	err := p.ask(ctx)
	if err == nil {
		err = p.listen(ctx)
	}
	res := p.report(signal.At(time.Now()))
	if err != nil {
		res.Vitals = nil // they would say that it sees
	}
	return res, err
}

// ask asks for the counters and draws conclusions.
func (p *watch) ask(ctx context.Context) error {
	n, err := p.counters.askStats(ctx)
	if err != nil {
		if !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			p.lost() // the server is gone, or the way to it; if it is only slow, the log is late too
		}
		return err
	}
	before := p.last
	p.last = n
	if !p.polled {
		p.polled = true
		return nil
	}
	if n.anew(&before) {
		p.lost() // the server was started anew, and its keys are gone
		return nil
	}
	if n.logDropped > before.logDropped && p.log.c != nil {
		p.gap()
		p.limits.dropped(time.Now())
	}
	owes := n.commands() > before.commands() && p.heard == 0
	p.heard = 0
	if p.log.c == nil && p.budget.resting {
		p.skipped += n.commands() - min(before.commands(), n.commands())
	}
	return p.silent(owes)
}

// report returns what is known to be complete at now.
func (p *watch) report(now signal.Nanos) probes.Result {
	until := now.Add(-holdBack)
	p.events.observe(p.backlog.release(until))
	windows, n := p.events.ledger.Flush(now)
	source := p.source
	source.Build = p.last.version
	listening := p.log.c != nil && p.answered
	v := &signal.Vitals{
		Source: source, Cache: p.cache, At: now,
		Lookups: n.Lookups, Work: n.Work, Tracked: n.Tracked, Overflowed: n.Overflowed,
		Probe: true, Watch: listening, Unknown: unseen,
	}
	return probes.Result{
		Windows: windows,
		Vitals:  []*signal.Vitals{v},
		Gaps:    p.gaps,
		Skipped: p.skipped,
		Limits:  p.limits.list(time.Now(), p.events.deletions, listening),
	}
}
