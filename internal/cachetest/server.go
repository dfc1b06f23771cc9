package cachetest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	startTimeout = 20 * time.Second      // a server that is up answers in milliseconds; a busy machine may not
	pollEvery    = 10 * time.Millisecond // how often a starting server is asked
	startTries   = 5                     // a free port may be taken before the server binds it
)

// server says how to start one kind of server and how to recognise it.
type server struct {
	binary string
	args   func(port string) []string
	// ask is sent to the server, which answers with a line that starts with
	// pid and holds the id of its process.
	ask string
	pid string
	// locked, if set, starts a line with which the server says that it is
	// there, but tells its process to no stranger.
	locked string
}

// errExited is worth another try: another process may have taken the port.
var errExited = errors.New("it exited before it answered")

// start runs s and returns its address once it answers. It fails t if it does
// not, and kills the server when t ends.
func (s server) start(t testing.TB) string {
	t.Helper()
	return s.run(t).addr
}

// run is start for a server that the test may take away and bring back.
func (s server) run(t testing.TB) *Server {
	t.Helper()
	path, err := exec.LookPath(s.binary)
	if err != nil {
		t.Fatalf("start %s: %v: run `make tools`", s.binary, err)
	}
	for try := 1; ; try++ {
		p, err := s.try(t, path)
		if err == nil {
			t.Cleanup(p.Kill)
			return p
		}
		if !errors.Is(err, errExited) || try == startTries {
			t.Fatalf("start %s, try %d: %v", s.binary, try, err)
		}
	}
}

func (s server) try(t testing.TB, path string) (*Server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	p := &Server{t: t, spec: s, path: path, addr: addr}
	return p, p.launch()
}

// Server is a server that a test can take away and bring back at the address it
// had. Its methods are for one goroutine.
type Server struct {
	t    testing.TB
	spec server
	path string
	addr string

	cmd    *exec.Cmd
	exited chan struct{}
}

// Addr returns its address, host:port.
func (p *Server) Addr() string { return p.addr }

// Kill ends the server at once, as a crash would, and waits until it is gone.
func (p *Server) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Signal sends the server's process a signal.
func (p *Server) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Restart starts a server that was killed again, at the same address. It fails
// the test if it does not come up.
func (p *Server) Restart() {
	p.t.Helper()
	if err := p.launch(); err != nil {
		p.t.Fatalf("start %s again at %s: %v", p.spec.binary, p.addr, err)
	}
}

// launch starts the process and waits until it answers.
func (p *Server) launch() error {
	_, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		return err
	}
	var output bytes.Buffer // read only after the process has ended
	cmd := exec.Command(p.path, p.spec.args(port)...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // killing it is how it ends
	}()
	p.cmd, p.exited = cmd, exited
	if err := p.spec.await(p.addr, cmd.Process.Pid, exited); err != nil {
		p.Kill()
		return fmt.Errorf("%w; it said:\n%s", err, output.String())
	}
	return nil
}

// await returns once the process pid, and not another that has its port,
// answers at addr.
func (s server) await(addr string, pid int, exited <-chan struct{}) error {
	deadline := time.NewTimer(startTimeout)
	defer deadline.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case <-exited:
			return errExited
		case <-deadline.C:
			return fmt.Errorf("no answer at %s within %v", addr, startTimeout)
		case <-poll.C:
			if s.answers(addr, pid) {
				return nil
			}
		}
	}
}

// answers reports whether the process pid, by its own account, serves addr.
func (s server) answers(addr string, pid int) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	if _, err := conn.Write([]byte(s.ask)); err != nil {
		return false
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if s.locked != "" && strings.HasPrefix(lines.Text(), s.locked) {
			return true
		}
		if rest, ok := strings.CutPrefix(lines.Text(), s.pid); ok {
			return strings.TrimSpace(rest) == strconv.Itoa(pid)
		}
	}
	return false
}

// freeAddr returns a loopback address nobody listened on a moment ago.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
