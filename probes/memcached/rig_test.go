package memcached_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client speaks memcached's text protocol.
type client struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

// dial returns a client of the server at addr that is closed when t ends.
func dial(t testing.TB, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

// do sends a command and returns the first line of the answer; of a value, the
// answer to its end.
func (c *client) do(format string, args ...any) string {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, format+"\r\n", args...); err != nil {
		c.t.Fatal(err)
	}
	first := c.line()
	for line := first; strings.HasPrefix(first, "VALUE ") && line != "END"; {
		line = c.line()
	}
	if strings.HasPrefix(first, "VA ") {
		c.line()
	}
	return first
}

func (c *client) line() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimRight(line, "\r\n")
}

func (c *client) get(key string) (found bool) {
	return strings.HasPrefix(c.do("get %s", key), "VALUE ")
}

func (c *client) set(key string, ttl int) {
	c.t.Helper()
	if got := c.do("set %s 0 %d 1\r\nx", key, ttl); got != "STORED" {
		c.t.Fatalf("set %q: %s", key, got)
	}
}

// run is a probe that runs for a test.
type run struct {
	t testing.TB
	p probes.Probe
	// What its runs said.
	windows       []*signal.Window
	vitals        *signal.Vitals // the latest
	gaps, skipped uint64
	limits        []string
	err           error // of the latest
}

// running returns p, closed when t ends.
func running(t testing.TB, p probes.Probe, err error) *run {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if p.Interval == 0 {
		p.Interval = probes.DefaultInterval
	}
	if p.Timeout == 0 {
		p.Timeout = p.Interval * 8 / 10
	}
	return &run{t: t, p: p}
}

// once runs the probe once.
func (r *run) once() error {
	ctx, cancel := context.WithTimeout(r.t.Context(), r.p.Timeout)
	defer cancel()
	var res probes.Result
	res, r.err = r.p.Run(ctx)
	r.windows = append(r.windows, res.Windows...)
	if len(res.Vitals) > 0 {
		r.vitals = res.Vitals[0]
	}
	r.gaps += res.Gaps
	r.skipped += res.Skipped
	r.limits = res.Limits
	return r.err
}

// ok runs the probe once and fails t if it fails.
func (r *run) ok() *run {
	r.t.Helper()
	if err := r.once(); err != nil {
		r.t.Fatal(err)
	}
	return r
}

// until runs the probe, whether it fails or not, until done, or fails t after
// two minutes: a server may take its time on a machine that is busy.
func (r *run) until(what string, done func() bool) {
	r.t.Helper()
	pace := time.NewTicker(50 * time.Millisecond) // or it would keep the server from what it waits for
	defer pace.Stop()
	for deadline := time.Now().Add(2 * time.Minute); !done(); r.once() {
		if time.Now().After(deadline) {
			r.t.Fatalf("after two minutes there is no %s; the latest error is %v, the limits are %q", what, r.err, r.limits)
		}
		<-pace.C
	}
}

// sum merges what was seen of one key group. A recompute that runs on from one
// window into the next is in it once.
func (r *run) sum(group string) signal.Window {
	var sum signal.Window
	for _, w := range r.windows {
		if w.Key.Group != group {
			continue
		}
		if sum.Cache == "" {
			sum = *w
			continue
		}
		sum.Merge(w)
	}
	return sum
}
