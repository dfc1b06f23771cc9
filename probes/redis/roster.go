package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// looker looks at one primary, and remembers what it saw from one run to the
// next. It returns what it has to say, if anything, and what keeps it from
// seeing all.
type looker interface {
	look(ctx context.Context, c *goredis.Client, budget int) (*signal.Vitals, []string, error)
}

// roster looks at all primaries of a deployment, each with a looker of its own.
type roster[L looker] struct {
	primaries *deployment
	lookers   map[string]L // by address
	make      func(addr string) L
	budget    int // of keys, for each primary and run
}

func newRoster[L looker](addrs []string, o Options, make func(addr string) L) *roster[L] {
	return &roster[L]{primaries: newDeployment(addrs, o), lookers: map[string]L{}, make: make}
}

// leaver is a looker that has something to put right on its server when the
// probe is closed.
type leaver interface {
	leave(ctx context.Context, c *goredis.Client) error
}

// leaveWithin bounds how long that may take for all of them.
const leaveWithin = time.Second

// close lets lookers put right what they have to, and closes all connections.
func (r *roster[L]) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	var errs []error
	for addr, l := range r.lookers {
		n := r.primaries.nodes[addr]
		if l, ok := any(l).(leaver); ok && n != nil {
			errs = append(errs, l.leave(ctx, n.client))
		}
	}
	return errors.Join(append(errs, r.primaries.close())...)
}

// run looks at every primary at once. It fails if any of them cannot be looked
// at: a picture with a part missing must not pass for the whole.
func (r *roster[L]) run(ctx context.Context) (probes.Result, error) {
	nodes, err := r.primaries.primaries(ctx)
	if err != nil {
		return probes.Result{}, err
	}
	r.settle(nodes)
	views := make([]view, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		l := r.lookers[n.addr]
		wg.Go(func() { views[i] = glance(ctx, l, n, r.budget) })
	}
	wg.Wait()
	var out probes.Result
	var errs []error
	for i := range views {
		if views[i].err != nil {
			errs = append(errs, views[i].err)
		}
		if views[i].vitals != nil {
			out.Vitals = append(out.Vitals, views[i].vitals)
		}
		out.Limits = append(out.Limits, views[i].limits...)
	}
	slices.Sort(out.Limits)
	out.Limits = slices.Compact(out.Limits)
	if len(errs) > 0 {
		r.primaries.doubt()
	}
	return out, errors.Join(errs...)
}

// view is what came of a look at one primary.
type view struct {
	vitals *signal.Vitals
	limits []string
	err    error
}

// glance looks at one primary. A panic is passed on as an error: it must reach
// the runner, and would end the process if it left this goroutine.
func glance(ctx context.Context, l looker, n *node, budget int) (v view) {
	defer func() {
		if p := recover(); p != nil {
			v = view{err: fmt.Errorf("look at %s: panic: %v", n.addr, p)}
		}
	}()
	v.vitals, v.limits, v.err = l.look(ctx, n.client, budget)
	if v.err != nil {
		v.err = fmt.Errorf("look at %s: %w", n.addr, v.err)
	}
	return v
}

// settle makes lookers of exactly the given primaries.
func (r *roster[L]) settle(nodes []*node) {
	for addr := range r.lookers {
		if !slices.ContainsFunc(nodes, func(n *node) bool { return n.addr == addr }) {
			delete(r.lookers, addr)
		}
	}
	for _, n := range nodes {
		if _, ok := r.lookers[n.addr]; !ok {
			r.lookers[n.addr] = r.make(n.addr)
		}
	}
}
