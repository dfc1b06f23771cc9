package redis

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

// Bounds on what a server may send. No key is that long on purpose; one that is
// longer is passed over, and its event counted as skipped.
const (
	maxHeader   = 64 // of an array or a string
	maxLine     = 4096
	maxPart     = 4 << 20
	firstBuffer = 64 << 10
)

// message is one reply, or one message of a subscription: RESP2, as far as
// servers use it for those. Its parts are only lent.
type message struct {
	kind  byte // '+', '-', ':' or '*'
	parts [3][]byte
	n     int // parts; 1 unless it is an array
	over  int // bytes of the last part that are left out, its line end included
}

func (m *message) is(name string) bool { return m.n > 0 && string(m.parts[0]) == name }

// parsePush reads one message from b and returns its length; zero if there is
// not all of it yet.
func parsePush(b []byte) (m message, n int, err error) {
	line, n, err := cutLine(b, maxLine)
	if n == 0 || err != nil {
		return message{}, 0, err
	}
	m.kind = line[0]
	switch m.kind {
	case '+', '-', ':':
		m.parts[0], m.n = line[1:], 1
		return m, n, nil
	case '*':
	default:
		return message{}, 0, fmt.Errorf("a message starts with %q: this is not Redis", line[0])
	}
	count, err := strconv.Atoi(string(line[1:]))
	if err != nil || count < 1 || count > len(m.parts) {
		return message{}, 0, fmt.Errorf("a message has %.20q parts: want 1 to %d", line[1:], len(m.parts))
	}
	for m.n < count {
		used, err := m.part(b[n:], m.n == count-1)
		if used == 0 || err != nil {
			return message{}, 0, err
		}
		n += used
	}
	return m, n, nil
}

// part reads one part, a string or a number; only the last may be too long.
func (m *message) part(b []byte, last bool) (n int, err error) {
	line, n, err := cutLine(b, maxHeader)
	if n == 0 || err != nil {
		return 0, err
	}
	switch line[0] {
	case ':':
		m.parts[m.n], m.n = line[1:], m.n+1
		return n, nil
	case '$':
	default:
		return 0, fmt.Errorf("part of a message starts with %q", line[0])
	}
	size, err := strconv.Atoi(string(line[1:]))
	switch {
	case err != nil || size < -1 || size > maxPart && !last || size > 1<<30:
		return 0, fmt.Errorf("part of a message has %.20q bytes", line[1:])
	case size == -1:
		m.parts[m.n], m.n = nil, m.n+1
		return n, nil
	case size > maxPart:
		m.over, m.n = size+2, m.n+1
		return n, nil
	case len(b) < n+size+2:
		return 0, nil
	case b[n+size] != '\r' || b[n+size+1] != '\n':
		return 0, errors.New("part of a message does not end where it should")
	}
	m.parts[m.n], m.n = b[n:n+size], m.n+1
	return n + size + 2, nil
}

// cutLine returns the first line of b without its end, and its length with it;
// zero if it is not all there.
func cutLine(b []byte, most int) (line []byte, n int, err error) {
	i := bytes.IndexByte(b[:min(len(b), most)], '\n')
	switch {
	case i < 0 && len(b) >= most:
		return nil, 0, fmt.Errorf("a line has more than %d bytes: this is not Redis", most)
	case i < 0:
		return nil, 0, nil
	case i < 2 || b[i-1] != '\r':
		return nil, 0, errors.New("a line is empty, or does not end as it should: this is not Redis")
	}
	return b[:i-1], i + 1, nil
}

// pushReader reads messages from a connection. A deadline may pass in the middle
// of one: what is there is kept.
type pushReader struct {
	conn net.Conn
	buf  []byte
	r, w int
	over int // bytes to pass over
}

// next returns the next message that is all there; false if there is none.
func (p *pushReader) next() (m message, ok bool, err error) {
	if n := min(p.over, p.w-p.r); n > 0 {
		p.over -= n
		p.r += n
	}
	if p.over > 0 {
		return message{}, false, nil
	}
	m, n, err := parsePush(p.buf[p.r:p.w])
	p.r += n
	p.over = m.over
	return m, n > 0, err
}

// fill waits for more bytes until the deadline, and reports whether some came.
func (p *pushReader) fill(deadline time.Time) (bool, error) {
	if p.r == p.w {
		p.r, p.w = 0, 0
	}
	if p.w == len(p.buf) {
		p.makeRoom()
	}
	if err := p.conn.SetReadDeadline(deadline); err != nil {
		return false, err
	}
	n, err := p.conn.Read(p.buf[p.w:])
	p.w += n
	switch {
	case n > 0:
		return true, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return false, nil
	case errors.Is(err, io.EOF):
		return false, errors.New("the server closed the connection")
	}
	return false, err
}

// makeRoom moves what is unread to the front, in a larger buffer if it fills
// this one. A message has at most one long part, so there is an end to that.
func (p *pushReader) makeRoom() {
	size := max(len(p.buf), firstBuffer)
	if p.w-p.r > size/2 {
		size *= 2
	}
	buf := make([]byte, size)
	p.w = copy(buf, p.buf[p.r:p.w])
	p.buf, p.r = buf, 0
}
