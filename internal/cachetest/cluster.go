package cachetest

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// slots is how many parts the keys of a Redis Cluster are divided in.
const slots = 16384

// Cluster is a Redis Cluster.
type Cluster struct {
	// Primaries own the slots, in equal shares and in this order, when the
	// cluster is made; each has the replica of the same index, if it was
	// made with replicas.
	Primaries []*Server
	Replicas  []*Server
}

// Addrs returns the addresses of those that were primaries when it was made.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, p := range c.Primaries {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

// RedisCluster starts a cluster of so many primaries, each with a replica if
// replicas is set, and returns once it serves all slots. It fails t if it does
// not come up.
func RedisCluster(t testing.TB, primaries int, replicas bool, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	args = append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}, args...)
	for i := range primaries {
		c.Primaries = append(c.Primaries, clusterServer(t, args))
		low, high := slots*i/primaries, slots*(i+1)/primaries-1
		Command(t, c.Primaries[i].Addr(), "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(low), strconv.Itoa(high))
		Command(t, c.Primaries[i].Addr(), "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	nodes := c.Primaries
	if replicas {
		for range primaries {
			c.Replicas = append(c.Replicas, clusterServer(t, args))
		}
		nodes = append(nodes[:primaries:primaries], c.Replicas...)
	}
	for _, n := range nodes[1:] {
		host, port, _ := net.SplitHostPort(nodes[0].Addr())
		Command(t, n.Addr(), "CLUSTER", "MEET", host, port, busPort(nodes[0].Addr()))
	}
	c.await(t, nodes, fmt.Sprintf("cluster_known_nodes:%d", len(nodes)))
	for i, r := range c.Replicas {
		id := Command(t, c.Primaries[i].Addr(), "CLUSTER", "MYID")
		eventually(t, "a replica knows its primary", func() bool {
			return !strings.HasPrefix(command(t, r.Addr(), "CLUSTER", "REPLICATE", id), "-")
		})
	}
	c.await(t, nodes, "cluster_state:ok")
	for _, r := range c.Replicas {
		eventually(t, "a replica has its copy", func() bool {
			return strings.Contains(command(t, r.Addr(), "INFO", "replication"), "master_link_status:up")
		})
	}
	return c
}

// clusterServer starts a server whose bus has a free port of its own: by default
// it is ten thousand above the other, which may not exist.
func clusterServer(t testing.TB, args []string) *Server {
	t.Helper()
	s := redisServer(t, nil)
	plain := s.args
	s.args = func(port string) []string {
		return append(plain(port), append([]string{"--cluster-port", busPort(net.JoinHostPort("127.0.0.1", port))}, args...)...)
	}
	return s.run(t)
}

// busPort returns the port of a cluster server's bus.
func busPort(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	if n += 10_000; n > 65_535 {
		n -= 20_000
	}
	return strconv.Itoa(n)
}

func (c *Cluster) await(t testing.TB, nodes []*Server, state string) {
	t.Helper()
	for _, n := range nodes {
		eventually(t, state, func() bool { return strings.Contains(command(t, n.Addr(), "CLUSTER", "INFO"), state) })
	}
}

// RedisSentinel starts a Sentinel that watches the server at addr under the name
// given, and alone decides that it is down.
func RedisSentinel(t testing.TB, name, addr string) *Server {
	t.Helper()
	dir := t.TempDir()
	host, port, _ := net.SplitHostPort(addr)
	s := server{
		binary: "redis-server",
		args: func(own string) []string {
			config := dir + "/sentinel-" + own + ".conf"
			writeFile(t, config, fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\n"+
				"sentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %s 1000\nsentinel failover-timeout %s 3000\n",
				own, dir, name, host, port, name, name))
			return []string{config, "--sentinel"}
		},
		ask: "INFO server\r\n",
		pid: "process_id:",
	}
	return s.run(t)
}

// eventually fails t if what does not become true in time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("not within %v: %s", startTimeout, what)
		case <-poll.C:
		}
	}
}

// Command sends a command to a Redis at addr and returns its answer, of one line
// or one string. It fails t if that is an error.
func Command(t testing.TB, addr string, args ...string) string {
	t.Helper()
	got := command(t, addr, args...)
	if strings.HasPrefix(got, "-") {
		t.Fatalf("%s: %q: %s", addr, args, got)
	}
	return got
}

func command(t testing.TB, addr string, args ...string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "-" + err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprintf(conn, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(a), a)
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err != nil {
		return "-" + err.Error()
	}
	line = strings.TrimSpace(line)
	size, isString := strings.CutPrefix(line, "$")
	n, err := strconv.Atoi(size)
	if !isString || err != nil || n < 0 {
		return strings.TrimPrefix(line, "+")
	}
	text := make([]byte, n)
	for read := 0; read < n; {
		k, err := in.Read(text[read:])
		if err != nil {
			return "-" + err.Error()
		}
		read += k
	}
	return string(text)
}
