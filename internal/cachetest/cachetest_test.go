package cachetest_test

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
)

func TestServersAnswerOnTheirOwnPorts(t *testing.T) {
	tests := []struct {
		name   string
		start  func(testing.TB) string
		ask    string
		answer string
	}{
		{"redis answers a ping", cachetest.Redis, "PING\r\n", "+PONG"},
		{"memcached gives its version", cachetest.Memcached, "version\r\n", "VERSION "},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			first, second := tc.start(t), tc.start(t)
			if first == second {
				t.Fatalf("both servers are at %s", first)
			}
			for _, addr := range []string{first, second} {
				if got := ask(t, addr, tc.ask, 1); !strings.HasPrefix(got, tc.answer) {
					t.Errorf("%s said %q, want %q", addr, got, tc.answer)
				}
			}
		})
	}
}

func TestRedisWithPassesArgumentsOn(t *testing.T) {
	addr := cachetest.RedisWith(t, "--maxmemory", "4mb", "--maxclients", "17")
	const reply = 5 // an array of two strings: *2, $9, maxmemory, $7, 4194304
	for option, want := range map[string]string{"maxmemory": "4194304", "maxclients": "17"} {
		if got := ask(t, addr, "CONFIG GET "+option+"\r\n", reply); got != want {
			t.Errorf("%s is %q, want %q", option, got, want)
		}
	}
}

func TestRedisWithAPasswordIsWaitedForToo(t *testing.T) {
	addr := cachetest.RedisWith(t, "--requirepass", "secret")
	if got := ask(t, addr, "AUTH secret\r\n", 1); got != "+OK" {
		t.Errorf("AUTH said %q, want +OK", got)
	}
}

func TestServersAreGoneWhenTheTestEnds(t *testing.T) {
	var addrs []string
	t.Run("start them", func(t *testing.T) {
		addrs = append(addrs, cachetest.Redis(t), cachetest.Memcached(t))
	})
	for _, addr := range addrs {
		if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			conn.Close()
			t.Errorf("somebody still listens at %s", addr)
		}
	}
}

func TestMissingServersFailTheTestAndSayWhatToRun(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, start := range map[string]func(testing.TB) string{
		"redis-server": cachetest.Redis,
		"memcached":    cachetest.Memcached,
	} {
		t.Run(name, func(t *testing.T) {
			got := fatal(t, start)
			for _, want := range []string{name, "make tools"} {
				if !strings.Contains(got, want) {
					t.Errorf("the test failed with %q, want it to mention %q", got, want)
				}
			}
		})
	}
}

func TestServersThatCannotStartSayWhy(t *testing.T) {
	got := fatal(t, func(t testing.TB) string { return cachetest.RedisWith(t, "--no-such-option", "1") })
	if !strings.Contains(got, "no-such-option") {
		t.Errorf("the test failed with %q, want what redis-server said", got)
	}
}

// fatal runs start with a test that only notes what it fails with.
func fatal(t *testing.T, start func(testing.TB) string) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		start(r)
	}()
	<-done
	if r.message == "" {
		t.Fatal("the test did not fail")
	}
	return r.message
}

// recorder is a testing.TB that keeps its failure to itself.
type recorder struct {
	testing.TB
	message string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// ask sends one command and returns the given line of the answer, from 1.
func ask(t *testing.T, addr, command string, line int) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte(command)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	for range line {
		if !lines.Scan() {
			t.Fatalf("%s after %q: %v", addr, command, lines.Err())
		}
	}
	return lines.Text()
}

func TestAServerComesBackWhereItWas(t *testing.T) {
	s := cachetest.RedisServer(t)
	s.Kill()
	if conn, err := net.DialTimeout("tcp", s.Addr(), time.Second); err == nil {
		conn.Close()
		t.Fatal("it still listens after it was killed")
	}
	s.Restart()
	if got := cachetest.Command(t, s.Addr(), "PING"); got != "PONG" {
		t.Errorf("it says %q, want PONG", got)
	}
}

func TestAClusterServesAllSlots(t *testing.T) {
	c := cachetest.RedisCluster(t, 3, true)
	for _, key := range []string{"a", "b", "c"} { // one on each
		moved := 0
		for _, addr := range c.Addrs() {
			if got := cachetest.Command(t, addr, "CLUSTER", "KEYSLOT", key); !strings.HasPrefix(got, ":") {
				t.Errorf("%s says %q", addr, got)
			}
			if strings.HasPrefix(ask(t, addr, "SET "+key+" 1\r\n", 1), "-MOVED") {
				moved++
			}
		}
		if moved != 2 {
			t.Errorf("%d servers of 3 say that %s is not theirs", moved, key)
		}
	}
}

func TestASentinelKnowsItsMaster(t *testing.T) {
	addr := cachetest.Redis(t)
	s := cachetest.RedisSentinel(t, "cache", addr)
	_, port, _ := net.SplitHostPort(addr)
	const portLine = 5 // *2, $9, 127.0.0.1, $5, port
	if got := ask(t, s.Addr(), "SENTINEL get-master-addr-by-name cache\r\n", portLine); got != port {
		t.Errorf("it names port %q, want %s", got, port)
	}
}

func TestAProxyCutsAndFreezes(t *testing.T) {
	p := cachetest.NewProxy(t, cachetest.Redis(t))
	if got := cachetest.Command(t, p.Addr(), "PING"); got != "PONG" {
		t.Fatalf("through the proxy it says %q", got)
	}
	p.Freeze()
	p.Thaw()
	if got := cachetest.Command(t, p.Addr(), "PING"); got != "PONG" {
		t.Errorf("thawed it says %q", got)
	}
	p.Cut()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a connection lives though the way is cut")
	}
	p.Mend()
	if got := cachetest.Command(t, p.Addr(), "PING"); got != "PONG" {
		t.Errorf("mended it says %q", got)
	}
}
