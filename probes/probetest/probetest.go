// Package probetest holds every probe to one contract: what a runner, and who
// reads a probe's records, may count on.
package probetest

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stampede-exporter/stampede-exporter/probes"
)

// Case says how to make the probe under test, and how to make trouble for it.
// What is nil is not tested.
type Case struct {
	// New returns a probe of a healthy server. It may be called several
	// times; each probe is closed by the suite.
	New func(testing.TB) probes.Probe
	// At returns the same probe of whatever listens at addr.
	At func(t testing.TB, addr string) probes.Probe
	// WrongPassword returns a probe of a server that asks for a password, and
	// logs in with the given one, which is wrong.
	WrongPassword func(t testing.TB, password string) probes.Probe
	// Break takes the server of New's probes away, or cuts the way to it;
	// Repair brings it back.
	Break, Repair func(testing.TB)
	// Clients returns how many connections the server counts, that of who
	// asks left out.
	Clients func(testing.TB) int
	// Touch makes something happen to a key that the probe tells of, such as
	// a read that misses and a store.
	Touch func(t testing.TB, key []byte)
	// Keys are how many keys the probe must tell of after a touch of each of
	// [HostileKeys]; zero if it tells of no single keys.
	Keys int
}

const (
	// shortRun is how long a run is given, and patience how long one may take
	// that does not end when it should, on a machine that is busy.
	shortRun = 300 * time.Millisecond
	patience = 10 * time.Second
	// recovery is how long a probe may take to see again.
	recovery = 30 * time.Second
)

// HostileKeys are keys nobody chooses: with spaces, line ends, bytes of
// protocols, control characters, invalid text, and a very long one.
func HostileKeys() [][]byte {
	return [][]byte{
		[]byte(" "), []byte("a key with spaces"), []byte("line\r\nend"), []byte("*3\r\n$7\r\nmessage\r\n"),
		{0, 1, 2, 0xff, 0xfe}, []byte("\x1b[2J\u202e"), []byte(strings.Repeat("k", 200)), []byte(strings.Repeat("long:", 1<<20/5)),
	}
}

// Run runs the suite.
func Run(t *testing.T, c Case) {
	t.Run("a run ends by its deadline", c.endsByItsDeadline)
	t.Run("a run ends when it is called off", c.endsWhenCalledOff)
	t.Run("a server that says nothing is a timeout", c.silentServer)
	t.Run("a server that is gone is an error", c.noServer)
	t.Run("a wrong password is an error that keeps it to itself", c.wrongPassword)
	t.Run("it comes back by itself", c.comesBack)
	t.Run("closing it leaves nothing behind", c.leavesNothing)
	t.Run("its records are valid, and survive the wire", c.validRecords)
}

// open returns a probe that is closed when t ends.
func open(t testing.TB, p probes.Probe) probes.Probe {
	t.Helper()
	if p.Name == "" || p.Target == "" || strings.Contains(p.Target, "@") {
		t.Errorf("probe %q of %q: want both named, and nobody's login in them", p.Name, p.Target)
	}
	t.Cleanup(func() { shut(t, p) })
	return p
}

func shut(t testing.TB, p probes.Probe) {
	t.Helper()
	if p.Close == nil {
		return
	}
	if err := p.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// run runs p once, for so long, and fails t if it does not return.
func run(t testing.TB, p probes.Probe, d time.Duration) (probes.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return await(t, ctx, p)
}

func await(t testing.TB, ctx context.Context, p probes.Probe) (res probes.Result, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err = p.Run(ctx)
	}()
	<-ctx.Done()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("a run goes on %v after it should have ended", patience)
	}
	return res, err
}

// works runs p until it succeeds.
func works(t testing.TB, p probes.Probe) probes.Result {
	t.Helper()
	var err error
	for deadline := time.Now().Add(recovery); time.Now().Before(deadline); {
		var res probes.Result
		if res, err = run(t, p, shortRun); err == nil {
			return res
		}
	}
	t.Fatalf("it does not work: %v", err)
	return probes.Result{}
}

func (c Case) endsByItsDeadline(t *testing.T) {
	p := open(t, c.New(t))
	works(t, p)
	if _, err := run(t, p, shortRun); err != nil {
		t.Errorf("the second run failed: %v", err)
	}
	if p.Run == nil || p.Timeout > p.Interval && p.Interval > 0 {
		t.Errorf("it takes %v of %v", p.Timeout, p.Interval)
	}
}

func (c Case) endsWhenCalledOff(t *testing.T) {
	p := open(t, c.New(t))
	works(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	stop := time.AfterFunc(shortRun/3, cancel)
	defer stop.Stop()
	if _, err := await(t, ctx, p); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Logf("called off, it says: %v", err)
	}
	works(t, p)
}

func (c Case) silentServer(t *testing.T) {
	if c.At == nil {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // connections wait to be accepted, and nobody does
	p := open(t, c.At(t, l.Addr().String()))
	res, err := run(t, p, shortRun)
	if err == nil || len(res.Vitals) > 0 {
		t.Errorf("got %d vitals and error %v from a server that says nothing", len(res.Vitals), err)
	}
}

func (c Case) noServer(t *testing.T) {
	if c.At == nil {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	p := open(t, c.At(t, addr))
	if res, err := run(t, p, shortRun); err == nil || len(res.Vitals) > 0 {
		t.Errorf("got %d vitals and error %v from no server", len(res.Vitals), err)
	}
}

func (c Case) wrongPassword(t *testing.T) {
	if c.WrongPassword == nil {
		return
	}
	const password = "open-sesame-4711"
	p := open(t, c.WrongPassword(t, password))
	_, err := run(t, p, shortRun)
	if err == nil || strings.Contains(err.Error(), password) || strings.Contains(p.Target, password) || strings.Contains(p.Name, password) {
		t.Errorf("got %v, want an error without the password", err)
	}
}

func (c Case) comesBack(t *testing.T) {
	if c.Break == nil {
		return
	}
	p := open(t, c.New(t))
	works(t, p)
	c.Break(t)
	failed := false
	for range 20 { // one that asks now and then may not notice at once
		if res, err := run(t, p, shortRun); err != nil {
			failed = true
			if len(res.Vitals) > 0 && res.Gaps == 0 {
				t.Logf("a run that failed has vitals, which the runner drops")
			}
			break
		}
	}
	if !failed {
		t.Error("the server is away, and nobody says so")
	}
	c.Repair(t)
	works(t, p)
}

func (c Case) leavesNothing(t *testing.T) {
	before := 0
	if c.Clients != nil {
		before = c.Clients(t)
	}
	goroutines := goleak.IgnoreCurrent()
	for range 3 {
		p := c.New(t)
		works(t, p)
		shut(t, p)
	}
	if err := goleak.Find(goroutines); err != nil {
		t.Error(err)
	}
	if c.Clients == nil {
		return
	}
	for deadline := time.Now().Add(patience); c.Clients(t) > before; {
		if time.Now().After(deadline) {
			t.Fatalf("the server counts %d clients, and there were %d before", c.Clients(t), before)
		}
	}
}
