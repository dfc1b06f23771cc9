package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// handshakeWithin bounds what it takes to connect, log in and subscribe, if
// the run has more time than that.
const handshakeWithin = 2 * time.Second

// subscription is a connection that listens. It has no goroutine: what comes
// while nobody reads waits in the socket.
type subscription struct {
	in     pushReader
	last   time.Time // when something last came
	closed bool
}

// subscribe connects to the server at addr and subscribes to the channels.
func subscribe(ctx context.Context, addr string, o Options, channels []string) (*subscription, error) {
	deadline := time.Now().Add(handshakeWithin)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	conn, err := dial(ctx, addr, o.TLS)
	if err != nil {
		return nil, err
	}
	s := &subscription{in: pushReader{conn: conn}, last: time.Now()}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := s.handshake(deadline, o, channels); err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return s, nil
}

func dial(ctx context.Context, addr string, t *tls.Config) (net.Conn, error) {
	if t == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	return (&tls.Dialer{Config: t}).DialContext(ctx, "tcp", addr)
}

func (s *subscription) handshake(deadline time.Time, o Options, channels []string) error {
	if o.Password != "" {
		auth := []string{"AUTH", o.Password}
		if o.Username != "" {
			auth = []string{"AUTH", o.Username, o.Password}
		}
		if err := s.send(deadline, auth...); err != nil {
			return fmt.Errorf("log in: %w", err)
		}
		if _, err := s.await(deadline); err != nil {
			return fmt.Errorf("log in: %w", err)
		}
	}
	if err := s.send(deadline, append([]string{"SUBSCRIBE"}, channels...)...); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	for left := len(channels); left > 0; {
		m, err := s.await(deadline)
		if err != nil {
			return fmt.Errorf("subscribe: %w", err)
		}
		// Events of channels that are subscribed already may come in between.
		// They are of the time before we listened.
		if m.is("subscribe") {
			left--
		}
	}
	return nil
}

// send writes a command.
func (s *subscription) send(deadline time.Time, args ...string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if err := s.in.conn.SetWriteDeadline(deadline); err != nil {
		return err
	}
	_, err := s.in.conn.Write([]byte(b.String()))
	return err
}

// await returns the next message; an error of the server is one.
func (s *subscription) await(deadline time.Time) (message, error) {
	for {
		m, ok, err := s.in.next()
		if err != nil {
			return message{}, err
		}
		if ok && m.kind == '-' {
			return message{}, errors.New(string(m.parts[0]))
		}
		if ok {
			return m, nil
		}
		more, err := s.in.fill(deadline)
		if err != nil {
			return message{}, err
		}
		if !more && time.Now().After(deadline) {
			return message{}, context.DeadlineExceeded
		}
	}
}

const (
	// lookUp is how long it may take to notice that a run is called off.
	lookUp = 50 * time.Millisecond
	// lostAfter is how long a server may be silent, though each run asks it for
	// a sign of life, before it counts as gone.
	lostAfter = 2 * time.Second
)

// listen asks the server for a sign of life and hands every event that comes
// until the deadline to handle, in order; heard is called before those that came
// at once. It fails if the connection is lost, or the server has not answered for
// long.
func (s *subscription) listen(ctx context.Context, until time.Time, heard func(), handle func(channel, key []byte, over bool)) error {
	began := time.Now()
	if err := s.send(began.Add(handshakeWithin), "PING"); err != nil {
		return err
	}
	heard()
	for {
		m, ok, err := s.in.next()
		switch {
		case err != nil:
			return err
		case ok && m.is("message") && m.n == 3:
			handle(m.parts[1], m.parts[2], m.over > 0)
			continue
		case ok && m.kind == '-':
			return errors.New(string(m.parts[0]))
		case ok:
			continue
		}
		now := time.Now()
		if err := ctx.Err(); err != nil || !now.Before(until) {
			return err
		}
		more, err := s.in.fill(earlier(until, now.Add(lookUp)))
		switch {
		case err != nil:
			return err
		case more:
			s.last = time.Now()
		case now.Sub(s.last) > max(lostAfter, 2*until.Sub(began)):
			return errors.New("the server does not answer")
		}
		heard()
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (s *subscription) close() {
	if !s.closed {
		s.closed = true
		s.in.conn.Close()
	}
}
