package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/keyspace"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// unseen is what no server tells of in its events.
const unseen = signal.UnknownHits | signal.UnknownStarts | signal.UnknownCoalesced | signal.UnknownEarly | signal.UnknownLocks | signal.UnknownRetries

// ear listens to one primary. It is for one goroutine at a time.
type ear struct {
	node   *node
	o      Options
	k      KeyspaceOptions
	now    func() signal.Nanos
	source signal.Source
	ledger *keyspace.Ledger
	sieve  sieve

	sub    *subscription
	limits map[string]bool // what keeps it from seeing all
	put    *putBack        // the setting it changed
	proof  *proof          // that misses are published, where the setting cannot be read
	mute   bool            // times to live cannot be asked for
	own    map[string]bool // keys it has missed itself

	gaps, skipped uint64 // since the last report
	healthy       bool   // the latest run was
}

func (p *keyspaceProbe) newEar(n *node) *ear {
	o := p.ledger
	o.Source = signal.Source{Service: p.d.o.Service, Instance: n.addr + "#keyspace"}
	ledger, err := keyspace.New(o)
	if err != nil {
		panic(err) // Keyspace has tried these options
	}
	return &ear{
		node: n, o: p.d.o, k: p.k, now: p.now, source: o.Source, ledger: ledger,
		sieve: newSieve(p.k.MaxEventsPerSecond), limits: map[string]bool{},
	}
}

// run listens until the given time, connecting first if it must.
func (e *ear) run(ctx context.Context, until time.Time) error {
	e.healthy = false
	if e.sub == nil {
		if err := e.connect(ctx); err != nil {
			return err
		}
	}
	e.askLives(ctx)
	err := e.sub.listen(ctx, until, e.heard, e.hear)
	if err == nil && e.proof != nil {
		err = e.proof.check()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded): // late, on a busy machine: nothing is lost
	case errors.Is(err, context.Canceled): // it is the run that is over, not the connection
		return err
	case err != nil:
		e.lose()
		return err
	}
	e.healthy = true
	return nil
}

// connect checks that the server publishes what it must, and subscribes.
func (e *ear) connect(ctx context.Context) error {
	clear(e.limits)
	e.proof, e.mute, e.own = nil, false, map[string]bool{}
	if err := e.checkFlags(ctx); err != nil {
		return err
	}
	sub, err := subscribe(ctx, e.node.addr, e.o, channels(e.o.Database))
	if err != nil {
		return err
	}
	e.sub = sub
	if e.proof != nil {
		e.proof.provoke(ctx, e.node.client)
	}
	return nil
}

// checkFlags makes sure that the server publishes key events, as far as this
// user may know.
func (e *ear) checkFlags(ctx context.Context) error {
	setting, err := readFlags(ctx, e.node.client)
	switch {
	case err != nil && isRefused(err):
		e.limits[limit("It may not run CONFIG GET: it cannot check that %s holds %s, only that misses are published", notifyOption, needFlags)] = true
		e.proof = &proof{}
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", notifyOption, err)
	}
	if want := needFlags + wantFlags; e.k.Configure && missingFlags(setting, want) != "" {
		if setting, err = e.configure(ctx, setting, want); err != nil {
			return err
		}
	}
	if missingFlags(setting, needFlags) != "" {
		return flagsError(setting)
	}
	if m := missingFlags(setting, wantFlags); m != "" {
		e.limits[limit("%s is %q, without %q: values kept as hashes, lists or sets are not seen to be stored", notifyOption, setting, m)] = true
	}
	return nil
}

// configure adds flags to the server's setting and returns what it is then.
func (e *ear) configure(ctx context.Context, was, want string) (string, error) {
	is := withFlags(was, want)
	err := e.node.client.ConfigSet(ctx, notifyOption, is).Err()
	switch {
	case err != nil && isRefused(err):
		e.limits[limit("It may not run CONFIG SET, though it was told to configure the server")] = true
		return was, nil
	case err != nil:
		return "", fmt.Errorf("set %s: %w", notifyOption, err)
	}
	if e.put != nil { // the server was restarted since, or somebody set it back
		was = e.put.was
	}
	e.put = &putBack{was: was, is: is}
	return is, nil
}

// heard is called before events that came at once are handed to hear.
func (e *ear) heard() { e.sieve.at = e.now() }

// hear takes in an event.
func (e *ear) hear(channel, key []byte, over bool) {
	kind, ok := kindOf(channel)
	switch {
	case !ok:
		return
	case over:
		e.skipped++
		return
	case kind == keyspace.Miss && e.isOwn(key):
		return
	}
	if level := e.sieve.level; !e.sieve.passes(key) {
		e.skipped++
		return
	} else if e.sieve.level > level {
		e.ledger.Forget(func(key []byte) bool { return !e.sieve.takes(key) })
	}
	e.ledger.Observe(keyspace.Event{At: e.sieve.at, Key: key, Kind: kind})
}

// isOwn reports whether a miss is of the probe's own making.
func (e *ear) isOwn(key []byte) bool {
	if e.proof != nil && e.proof.saw(key) {
		return true
	}
	if len(e.own) == 0 || !e.own[string(key)] {
		return false
	}
	delete(e.own, string(key))
	return true
}

// lose notes that what happens is not seen from here on.
func (e *ear) lose() {
	if e.sub == nil {
		return
	}
	e.sub.close()
	e.sub = nil
	e.ledger.Gap()
	e.gaps++
}

// report adds what was heard since the last report. A run that failed says
// nothing of how things are now; the last word of an ear is that it is closing.
func (e *ear) report(res *probes.Result, closing bool) {
	now := e.now()
	ws, c := e.ledger.Flush(now)
	res.Windows = append(res.Windows, ws...)
	res.Gaps += e.gaps
	res.Skipped += e.skipped
	e.gaps, e.skipped = 0, 0
	res.Limits = slices.AppendSeq(res.Limits, maps.Keys(e.limits))
	if n := e.sieve.share(); n > 1 {
		res.Limits = append(res.Limits, limit("There are more than %d events a second: one key in %d is watched", e.k.MaxEventsPerSecond, n))
	}
	if !e.healthy && !closing {
		return
	}
	res.Vitals = append(res.Vitals, &signal.Vitals{
		Source: e.source, Cache: e.ledger.Cache(), At: now,
		Lookups: c.Lookups, Work: c.Work, Tracked: c.Tracked, Overflowed: c.Overflowed,
		Probe: true, Watch: true, Unknown: unseen, Closing: closing,
	})
}

// close puts the server's setting back and closes the connection.
func (e *ear) close(ctx context.Context) error {
	if e.sub != nil {
		e.sub.close()
	}
	if e.put == nil {
		return nil
	}
	return e.put.restore(ctx, e.node.client)
}
