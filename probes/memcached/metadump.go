package memcached

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/keyname"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/census"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// MetadumpName is the name of the probe [Metadump] makes, unless options give
// another.
const MetadumpName = "memcached-metadump"

// Defaults and bounds of [MetadumpOptions].
const (
	DefaultEvery   = time.Minute
	DefaultWithin  = 30 * time.Second
	DefaultMaxKeys = 2_000_000

	minEvery = 5 * time.Second
	maxEvery = time.Hour
	minKeys  = 1000
)

// MetadumpOptions say how often a server lists its keys, and how much that may
// cost. The zero value works.
type MetadumpOptions struct {
	// Every is the time from the start of one list to that of the next, 5s to
	// 1h. Default [DefaultEvery].
	Every time.Duration
	// Within bounds how long one list may take, 1s to Every. Default
	// [DefaultWithin], or Every if that is shorter.
	Within time.Duration
	// MaxKeys bounds how many keys of one list are looked at, at least 1000.
	// Default [DefaultMaxKeys].
	MaxKeys int
	// Group names the family a key belongs to. Default: the convention
	// instrumented services use.
	Group func(key string) string
}

func (o MetadumpOptions) withDefaults() MetadumpOptions {
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.Within == 0 {
		o.Within = min(DefaultWithin, o.Every)
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.Group == nil {
		o.Group = keyname.Pattern
	}
	return o
}

func (o MetadumpOptions) validate() error {
	switch {
	case o.Every < minEvery || o.Every > maxEvery:
		return fmt.Errorf("Every is %v: want %v to %v", o.Every, minEvery, maxEvery)
	case o.Within < time.Second || o.Within > o.Every:
		return fmt.Errorf("Within is %v: want 1s to %v", o.Within, o.Every)
	case o.MaxKeys < minKeys:
		return fmt.Errorf("MaxKeys is %d: want at least %d", o.MaxKeys, minKeys)
	}
	return nil
}

// Metadump returns a probe that has the server at addr, host:port, list its keys
// now and then, and answers each run with one [signal.Vitals] for cache, of the
// source {Service, addr#metadump}, that says how many values of which family expire when,
// as of the latest list.
//
// A list is read as it comes, over several runs if it takes that long: nothing is
// kept but counts. A server lists for one client at a time, and itself looks for
// expired values now and then; if it is busy, it is asked again a little later.
//
// Servers from 1.6.19 on walk their hash table, so the first keys of a list are
// as good as drawn at random: one that goes over its bounds is cut short, and
// scaled up. Older servers hold a lock of that table while they wait for whoever
// reads the list, and with it the clients whose keys are behind it. They are
// asked for a walk in order of use instead, which holds none; the first keys of
// that are no fair sample, so a list that goes over its bounds counts for
// nothing. It also leaves out some of the keys that are in use most.
func Metadump(addr, cache string, o Options, m MetadumpOptions) (probes.Probe, error) {
	o = o.withDefaults(MetadumpName).streaming(probes.DefaultInterval)
	if err := o.validate(addr, cache); err != nil {
		return probes.Probe{}, err
	}
	m = m.withDefaults()
	if err := m.validate(); err != nil {
		return probes.Probe{}, fmt.Errorf("probe memcached %q: %w", addr, err)
	}
	keys, err := census.New(census.Options{})
	if err != nil {
		return probes.Probe{}, fmt.Errorf("probe memcached %q: %w", addr, err)
	}
	p := &metadump{
		list:     link{addr: addr, o: o},
		counters: link{addr: addr, o: o},
		o:        m,
		cache:    cache,
		keys:     keys,
	}
	return probes.Probe{
		Name:     o.Name,
		Target:   addr,
		Interval: o.Interval,
		Timeout:  o.Timeout,
		Run:      p.run,
		Close:    func() error { return errors.Join(p.list.close(), p.counters.close()) },
	}, nil
}

// metadump counts one server's keys.
type metadump struct {
	list     link // on which the server lists its keys
	counters link // which it is asked for its counters on
	o        MetadumpOptions
	cache    string
	keys     *census.Census
	last     counters
	polled   bool      // last is set
	due      time.Time // of the next list
	walk     walk
	key      []byte // of the line that is read
	tooLong  bool   // the latest list went over its bounds and counts for nothing
}

// walk is a list that is being read. The zero value is none.
type walk struct {
	began  time.Time
	looked int
	fair   bool          // its first keys are a fair sample
	ahead  time.Duration // this machine's clock ahead of the server's
}

func (p *metadump) run(ctx context.Context) (probes.Result, error) {
	n, err := p.counters.askStats(ctx)
	if err != nil {
		return probes.Result{}, err
	}
	if p.polled && (n.anew(&p.last) || n.flushes > p.last.flushes) {
		p.forget() // its keys are gone
	}
	p.last, p.polled = n, true
	if p.walk.began.IsZero() && !time.Now().Before(p.due) {
		if err := p.start(ctx); err != nil {
			return probes.Result{}, fmt.Errorf("ask for the list of keys: %w", err)
		}
	}
	if !p.walk.began.IsZero() {
		if err := p.read(ctx); err != nil {
			return probes.Result{}, fmt.Errorf("read the list of keys: %w", err)
		}
	}
	return p.result(signal.At(time.Now())), nil
}

func (p *metadump) result(now signal.Nanos) probes.Result {
	v := &signal.Vitals{
		Source: signal.Source{Service: p.counters.o.Service, Instance: p.counters.addr + "#metadump", Build: p.last.version},
		Cache:  p.cache,
		At:     now,
		Probe:  true,
		Server: signal.Server{Keys: p.last.items},
	}
	p.keys.Fill(now, v)
	res := probes.Result{Vitals: []*signal.Vitals{v}}
	if p.tooLong {
		res.Limits = []string{fmt.Sprintf("The list of keys has more than %d, or takes longer than %v, and a part of it tells nothing of the rest in this version of the server; raise max_keys or within, or use a server from 1.6.19 on.", p.o.MaxKeys, p.o.Within)}
	}
	return res
}

// forget drops what is known and the list that is read, and asks for another.
func (p *metadump) forget() {
	p.keys.Reset()
	p.stop()
	p.due = time.Time{}
}

// stop ends a list that is being read before its end.
func (p *metadump) stop() {
	p.keys.DropSlice()
	_ = p.list.close() // a server that is hung up on stops listing
	p.walk = walk{}
}
