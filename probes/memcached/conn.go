package memcached

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// conn is a connection to a server, for one goroutine. It speaks the text
// protocol: no other has the server's log and its list of keys.
type conn struct {
	net.Conn
	*lines
}

// dial connects to the server at addr and logs in.
func dial(ctx context.Context, addr string, o Options) (*conn, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if o.TLS != nil {
		secure, err := handshake(ctx, raw, addr, o.TLS)
		if err != nil {
			return nil, errors.Join(err, raw.Close())
		}
		raw = secure
	}
	c := &conn{raw, newLines(raw)}
	if o.Password != "" {
		if err := c.login(ctx, o.Username, o.Password); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

func handshake(ctx context.Context, raw net.Conn, addr string, config *tls.Config) (net.Conn, error) {
	config = config.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secure := tls.Client(raw, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("switch TLS on: %w", err)
	}
	return secure, nil
}

// until makes reads and writes fail at deadline and as soon as ctx ends, until
// what it returns is called.
func (c *conn) until(ctx context.Context, deadline time.Time) (stop func()) {
	// An error means that the connection is closed, as its next use will say.
	_ = c.SetDeadline(deadline)
	cut := make(chan struct{})
	uncut := context.AfterFunc(ctx, func() {
		defer close(cut)
		_ = c.SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !uncut() {
			<-cut // or it would cut what comes next
		}
	}
}

// bound is until, with ctx's own deadline.
func (c *conn) bound(ctx context.Context) (stop func()) {
	deadline, _ := ctx.Deadline() // none is the zero time, which is none to a connection too
	return c.until(ctx, deadline)
}

// ask sends a command and returns the first line of the answer, valid until the
// next read. A line that tells of an error is one. An error does not repeat what
// was sent, which may hold a password.
func (c *conn) ask(ctx context.Context, command string) ([]byte, error) {
	defer c.bound(ctx)()
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return nil, err
	}
	line, err := c.line()
	if err != nil {
		return nil, err
	}
	if refusal := refusal(line); refusal != nil {
		return nil, refusal
	}
	return line, nil
}

// login shows a name and a password: as the value of a set, whatever its key.
func (c *conn) login(ctx context.Context, user, password string) error {
	secret := user + " " + password
	answer, err := c.ask(ctx, "set auth 0 0 "+strconv.Itoa(len(secret))+"\r\n"+secret)
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	if string(answer) != "STORED" {
		return fmt.Errorf("log in: the server answers %s", quoted(answer))
	}
	return nil
}

// refusedError is an answer of the server that says no.
type refusedError string

func (e refusedError) Error() string { return "the server answers " + string(e) }

// refusal returns what is wrong if line, the first of an answer, says so.
func refusal(line []byte) error {
	text := string(line)
	for _, start := range []string{"ERROR", "CLIENT_ERROR", "SERVER_ERROR", "BADCLASS"} {
		if text == start || strings.HasPrefix(text, start+" ") {
			return refusedError(quoted(line))
		}
	}
	return nil
}

// maxQuoted bounds what of an answer is repeated in an error.
const maxQuoted = 120

func quoted(line []byte) string {
	if len(line) > maxQuoted {
		line = line[:maxQuoted]
	}
	return strconv.Quote(string(line))
}
