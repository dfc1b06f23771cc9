package cachetest

import (
	"io"
	"net"
	"os"
	"sync"
	"testing"
)

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Proxy passes connections on to a server, until the test cuts them. It is safe
// for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu     sync.Mutex
	cut    bool
	frozen chan struct{} // closed when bytes may flow again; nil if they do
	conns  map[net.Conn]struct{}
}

// NewProxy starts a proxy of the server at target, gone when t ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	p.wg.Go(p.serve)
	t.Cleanup(func() {
		l.Close()
		p.Thaw()
		p.Cut()
		p.wg.Wait()
	})
	return p
}

// Addr returns the address to connect to, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut breaks all connections, and new ones as soon as they are made.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		c.Close()
	}
}

// Mend lets new connections live again.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// Freeze holds back all bytes, as a network does that has lost its way: nobody
// is told.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen == nil {
		p.frozen = make(chan struct{})
	}
}

// Thaw lets bytes flow again, those held back first.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.frozen != nil {
		close(p.frozen)
		p.frozen = nil
	}
}

func (p *Proxy) serve() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(near, far) {
			near.Close()
			if far != nil {
				far.Close()
			}
			continue
		}
		p.wg.Go(func() { p.pass(near, far) })
		p.wg.Go(func() { p.pass(far, near) })
	}
}

func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return false
	}
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	return true
}

// pass copies what comes from one side to the other.
func (p *Proxy) pass(from, to net.Conn) {
	defer func() {
		from.Close()
		to.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, from)
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		wait := p.frozen
		p.mu.Unlock()
		if wait != nil {
			<-wait
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil && err != io.ErrNoProgress {
			return
		}
	}
}
