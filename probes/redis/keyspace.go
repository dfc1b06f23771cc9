package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/keyspace"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// KeyspaceName is the name of the probe [Keyspace] makes, unless options give
// another.
const KeyspaceName = "redis-keyspace"

// KeyspaceOptions say what of a server's key events to watch. The zero value
// watches them all, as long as they are not too many, and changes nothing.
type KeyspaceOptions struct {
	// Configure lets the probe add the flags it needs to the servers' setting
	// notify-keyspace-events. When the probe is closed it puts back what was
	// there, unless somebody else has changed it since. Default: the setting
	// is only read, and the probe says what is missing.
	Configure bool
	// Locks says which keys are locks: see [keyspace.ParseLockPattern].
	// Default: none is known to be one.
	Locks []string
	// MaxEventsPerSecond bounds how many events of one server are looked at,
	// 100 to 1,000,000. Beyond it the probe watches every second key only,
	// then every fourth and so on, by a hash of the key: those it watches it
	// sees whole. Default 20,000.
	MaxEventsPerSecond int
	// MaxKeys bounds how many keys of one server are remembered, 64 to 10
	// million, at about half a kilobyte each. Default 65,536.
	MaxKeys int
	// GiveUp is how long a miss waits for a store, 1s to 1h. Default 60s.
	GiveUp time.Duration
	// TTLLookups bounds how many times to live are asked for in one run, up
	// to 1000: a store's event does not tell how long the value lives.
	// Default 32; negative: none.
	TTLLookups int
	// RawKeys adds keys themselves to the evidence, cut to 256 bytes. Default:
	// only their group and a hash.
	RawKeys bool
	// Salt is mixed into the hash of a key. Default: none.
	Salt string
}

const (
	defaultEvents, maxEvents = 20_000, 1_000_000
	minEvents                = 100
	defaultLookups           = 32
	maxLookups               = 1000
	maxKeyspaceKeys          = 10_000_000
)

func (o KeyspaceOptions) withDefaults() KeyspaceOptions {
	o.MaxEventsPerSecond = cmp.Or(o.MaxEventsPerSecond, defaultEvents)
	o.TTLLookups = cmp.Or(o.TTLLookups, defaultLookups)
	return o
}

func (o KeyspaceOptions) validate() error {
	switch {
	case o.MaxEventsPerSecond < minEvents || o.MaxEventsPerSecond > maxEvents:
		return fmt.Errorf("MaxEventsPerSecond is %d: want %d to %d", o.MaxEventsPerSecond, minEvents, maxEvents)
	case o.TTLLookups > maxLookups:
		return fmt.Errorf("TTLLookups is %d: want at most %d", o.TTLLookups, maxLookups)
	case o.MaxKeys > maxKeyspaceKeys:
		return fmt.Errorf("MaxKeys is %d: want at most %d", o.MaxKeys, maxKeyspaceKeys)
	}
	return nil
}

// ledger returns the options of a server's ledger, without its source.
func (o KeyspaceOptions) ledger(cache string) (keyspace.Options, error) {
	l := keyspace.Options{
		Cache: cache, Removals: true,
		MaxKeys: o.MaxKeys, GiveUp: o.GiveUp, RawKeys: o.RawKeys, Salt: o.Salt,
	}
	for _, text := range o.Locks {
		p, err := keyspace.ParseLockPattern(text)
		if err != nil {
			return l, err
		}
		l.Locks = append(l.Locks, p)
	}
	return l, nil
}

// Keyspace returns a probe that listens to the key events of every primary of
// the deployment at addrs, and answers with a window for each key on which
// something happened, and a [signal.Vitals] for each primary, of the source
// {Service, addr#keyspace}.
//
// It tells events by when they arrive. While it is not connected, or the server
// has dropped it for being slow, it sees nothing: each such stretch is a gap,
// and the run fails. It costs each server a subscription to some thirty
// channels, a message for each miss and each write, and a few lookups a second;
// nothing for a hit.
func Keyspace(addrs []string, cache string, o Options, k KeyspaceOptions) (probes.Probe, error) {
	o, k = o.withDefaults(KeyspaceName), k.withDefaults()
	if err := o.validate(addrs, cache); err != nil {
		return probes.Probe{}, err
	}
	l, err := k.ledger(cache)
	if err == nil {
		err = k.validate()
	}
	if err == nil {
		trial := l
		trial.Source = signal.Source{Service: o.Service, Instance: addrs[0]}
		_, err = keyspace.New(trial)
	}
	if err != nil {
		return probes.Probe{}, fmt.Errorf("probe redis %q: %w", target(addrs), err)
	}
	p := &keyspaceProbe{d: newDeployment(addrs, o), k: k, ledger: l, ears: map[string]*ear{}, now: steadyClock()}
	interval := cmp.Or(o.Interval, probes.DefaultInterval)
	return probes.Probe{
		Name: o.Name, Target: target(addrs), Interval: interval,
		// It listens for as long as it may.
		Timeout: cmp.Or(o.Timeout, interval),
		Run:     p.run, Close: p.close,
	}, nil
}

// keyspaceProbe listens to all primaries of a deployment.
type keyspaceProbe struct {
	d      *deployment
	k      KeyspaceOptions
	ledger keyspace.Options
	ears   map[string]*ear // by address
	now    func() signal.Nanos
}

// steadyClock returns a clock that starts at the wall clock's time and never
// jumps, whatever is done to the wall clock later.
func steadyClock() func() signal.Nanos {
	base := time.Now()
	return func() signal.Nanos { return signal.At(base.Add(time.Since(base))) }
}

// backBefore is how long before its deadline a run stops listening.
func backBefore(timeout time.Duration) time.Duration { return max(timeout/10, 25*time.Millisecond) }

// run listens until shortly before its deadline.
func (p *keyspaceProbe) run(ctx context.Context) (probes.Result, error) {
	until := time.Now().Add(probes.DefaultInterval)
	if d, ok := ctx.Deadline(); ok {
		until = d
	}
	until = until.Add(-backBefore(time.Until(until)))
	var res probes.Result
	nodes, err := p.d.primaries(ctx)
	if err != nil {
		return res, err
	}
	p.settle(nodes, &res)
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		e := p.ears[n.addr]
		all.Go(func() { errs[i] = e.run(ctx, until) })
	}
	all.Wait()
	for i, n := range nodes {
		p.ears[n.addr].report(&res, false)
		if errs[i] != nil {
			p.d.doubt()
			errs[i] = fmt.Errorf("listen to %s: %w", n.addr, errs[i])
		}
	}
	slices.Sort(res.Limits)
	res.Limits = slices.Compact(res.Limits)
	return res, errors.Join(errs...)
}

// settle makes ears for exactly the given nodes. What a primary that is none any
// more did last is not known.
func (p *keyspaceProbe) settle(nodes []*node, res *probes.Result) {
	for addr, e := range p.ears {
		if slices.ContainsFunc(nodes, func(n *node) bool { return n.addr == addr }) {
			continue
		}
		e.lose()
		e.report(res, true)
		delete(p.ears, addr)
	}
	for _, n := range nodes {
		if p.ears[n.addr] == nil {
			p.ears[n.addr] = p.newEar(n)
		}
	}
}

// close puts settings back and lets go of all connections.
func (p *keyspaceProbe) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeWithin)
	defer cancel()
	var errs []error
	for addr, e := range p.ears {
		if err := e.close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("put %s of %s back: %w", notifyOption, addr, err))
		}
	}
	return errors.Join(append(errs, p.d.close())...)
}

// limit says what keeps the probe from seeing all it could.
func limit(format string, args ...any) string {
	return strings.TrimSuffix(fmt.Sprintf(format, args...), ".") + "."
}
