package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// lookEvery is how often a deployment is asked again who its primaries are. A
// primary that is gone is noticed at once; one that was told to hand over stays
// connected and falls silent.
const lookEvery = 2 * time.Second

// deployment is one Redis, however many servers it has. It is for one
// goroutine at a time.
type deployment struct {
	seeds []string
	o     Options
	nodes map[string]*node // primaries, by address
	due   time.Time        // when to look again who they are
}

// node is a primary and a connection to it.
type node struct {
	addr   string
	client *goredis.Client
}

func newDeployment(seeds []string, o Options) *deployment {
	return &deployment{seeds: slices.Clone(seeds), o: o, nodes: map[string]*node{}}
}

// primaries returns the primaries, by address. In a cluster or behind Sentinels
// it asks who they are, unless it did so lately; one that has not changed is the
// same node as before, and one that is no longer among them is closed.
func (d *deployment) primaries(ctx context.Context) ([]*node, error) {
	if now := time.Now(); len(d.nodes) == 0 || now.After(d.due) {
		addrs, err := d.look(ctx)
		if err != nil {
			return nil, err
		}
		d.due = now.Add(lookEvery)
		d.settle(addrs)
	}
	nodes := make([]*node, 0, len(d.nodes))
	for _, addr := range slices.Sorted(maps.Keys(d.nodes)) {
		nodes = append(nodes, d.nodes[addr])
	}
	return nodes, nil
}

// doubt makes the next call of primaries look again: a node did not answer.
func (d *deployment) doubt() { d.due = time.Time{} }

// close lets go of all connections.
func (d *deployment) close() error {
	var errs []error
	for _, n := range d.nodes {
		errs = append(errs, n.client.Close())
	}
	clear(d.nodes)
	return errors.Join(errs...)
}

// settle makes nodes of exactly the given addresses.
func (d *deployment) settle(addrs []string) {
	for addr, n := range d.nodes {
		if !slices.Contains(addrs, addr) {
			_ = n.client.Close() // it is gone, or not ours to talk to any more
			delete(d.nodes, addr)
		}
	}
	for _, addr := range addrs {
		if d.nodes[addr] == nil {
			d.nodes[addr] = &node{addr: addr, client: goredis.NewClient(clientOptions(addr, d.o))}
		}
	}
}

// look returns the addresses of the primaries.
func (d *deployment) look(ctx context.Context) ([]string, error) {
	switch d.o.Mode {
	case Cluster:
		return d.anyOf(ctx, d.clusterSeeds(), func(addr string) *goredis.Options { return clientOptions(addr, d.o) }, clusterPrimaries)
	case Sentinel:
		return d.anyOf(ctx, d.seeds, func(addr string) *goredis.Options { return sentinelOptions(addr, d.o) }, d.sentinelPrimary)
	}
	return d.seeds, nil
}

// clusterSeeds returns whom to ask about a cluster: primaries known first, as
// seeds may have been given up since they were written down.
func (d *deployment) clusterSeeds() []string {
	return append(slices.Sorted(maps.Keys(d.nodes)), d.seeds...)
}

// anyOf asks one server after the other until one answers.
func (d *deployment) anyOf(ctx context.Context, addrs []string, options func(string) *goredis.Options, ask func(context.Context, *goredis.Client, string) ([]string, error)) ([]string, error) {
	var errs []error
	for _, addr := range addrs {
		client := goredis.NewClient(options(addr))
		found, err := ask(ctx, client, addr)
		_ = client.Close()
		if err == nil {
			return found, nil
		}
		errs = append(errs, fmt.Errorf("ask %s: %w", addr, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("find the primaries: %w", errors.Join(errs...))
}

// clusterPrimaries returns the addresses of those who own a slot.
func clusterPrimaries(ctx context.Context, c *goredis.Client, asked string) ([]string, error) {
	//lint:ignore SA1019 CLUSTER SHARDS is of Redis 7, and servers before that are in use.
	slots, err := c.ClusterSlots(ctx).Result()
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(asked)
	var addrs []string
	for _, s := range slots {
		if len(s.Nodes) == 0 {
			continue
		}
		addr := s.Nodes[0].Addr
		if strings.HasPrefix(addr, ":") { // it does not know its own address, and means that it is asked at
			addr = net.JoinHostPort(host, addr[1:])
		}
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) == 0 {
		return nil, errors.New("the cluster has no slots: is it set up?")
	}
	slices.Sort(addrs)
	return addrs, nil
}

func (d *deployment) sentinelPrimary(ctx context.Context, c *goredis.Client, _ string) ([]string, error) {
	cmd := goredis.NewStringSliceCmd(ctx, "sentinel", "get-master-addr-by-name", d.o.Master)
	_ = c.Process(ctx, cmd) // the same error as Result's
	parts, err := cmd.Result()
	switch {
	case errors.Is(err, goredis.Nil):
		return nil, fmt.Errorf("it knows no master %q", d.o.Master)
	case err != nil:
		return nil, err
	case len(parts) != 2:
		return nil, fmt.Errorf("it gave %d parts of an address: want 2", len(parts))
	}
	return []string{net.JoinHostPort(parts[0], parts[1])}, nil
}
