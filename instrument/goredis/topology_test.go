package goredis_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
)

// cluster starts a cluster of three servers and returns their addresses once
// each of them knows that it is whole.
func cluster(t *testing.T) []string {
	t.Helper()
	const nodes, slots = 3, 16384
	var addrs []string
	var meet []any
	for n := range nodes {
		bus := freePort(t) // the default, 10000 above the port, may be no port at all
		addr := cachetest.RedisWith(t, "--cluster-enabled", "yes", "--cluster-port", bus)
		addrs = append(addrs, addr)
		node := plainClient(t, addr)
		must(t, node.ClusterAddSlotsRange(t.Context(), n*slots/nodes, (n+1)*slots/nodes-1))
		must(t, node.Do(t.Context(), "CLUSTER", "SET-CONFIG-EPOCH", n+1))
		if meet != nil {
			must(t, node.Do(t.Context(), meet...))
			continue
		}
		host, port := split(t, addr)
		meet = []any{"CLUSTER", "MEET", host, port, bus}
	}
	for _, addr := range addrs {
		node := plainClient(t, addr)
		eventually(t, "whole cluster at "+addr, func() bool {
			info := node.ClusterInfo(t.Context()).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d", slots))
		})
	}
	return addrs
}

// sentinel starts a server, called "main", and a Sentinel that watches it, and
// returns the Sentinel's address.
func sentinel(t *testing.T) string {
	t.Helper()
	host, port := split(t, cachetest.Redis(t))
	own := freePort(t)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor main %s %s 1\n", own, host, port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", conf, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatalf("start Sentinel: %v", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	addr := net.JoinHostPort("127.0.0.1", own)
	client := redis.NewSentinelClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	eventually(t, "Sentinel at "+addr, func() bool {
		return client.GetMasterAddrByName(t.Context(), "main").Err() == nil
	})
	return addr
}

// plainClient returns a client without a hook.
func plainClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func must(t *testing.T, cmd redis.Cmder) {
	t.Helper()
	if err := cmd.Err(); err != nil {
		t.Fatalf("%v: %v", cmd.Args(), err)
	}
}

func split(t *testing.T, addr string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// freePort returns a port of the loopback interface nobody listened on a moment
// ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port := split(t, l.Addr().String())
	return port
}

// eventually asks until it is so. Servers that find each other say when they
// are done only if asked.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for !so() {
		select {
		case <-deadline.C:
			t.Fatalf("no %s within 30s", what)
		case <-poll.C:
		}
	}
}
