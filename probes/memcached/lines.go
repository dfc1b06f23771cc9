package memcached

import (
	"bytes"
	"fmt"
	"io"
)

// maxLine bounds a line of the server: its own bound is 4096 bytes. Anything
// longer is no memcached.
const maxLine = 16 << 10

// readSize is how much is asked for at once. A server that writes its log or a
// list of its keys waits for whoever reads it slowly.
const readSize = 256 << 10

// lines cuts what a server sends into lines. It keeps what is left of one when a
// read is cut short by its deadline, so that the next read goes on from there.
type lines struct {
	src  io.Reader
	buf  []byte
	r, w int // buf[r:w] is not handed out yet
}

func newLines(src io.Reader) *lines {
	return &lines{src: src, buf: make([]byte, readSize+maxLine)}
}

// next returns the next whole line that was read, without its end, or false. It
// is valid until fill is called.
func (l *lines) next() ([]byte, bool) {
	i := bytes.IndexByte(l.buf[l.r:l.w], '\n')
	if i < 0 {
		return nil, false
	}
	line := l.buf[l.r : l.r+i]
	l.r += i + 1
	return bytes.TrimSuffix(line, []byte{'\r'}), true
}

// fill reads once. It must be called only after next returned false.
func (l *lines) fill() error {
	if l.w-l.r > maxLine {
		return fmt.Errorf("read a line: more than %d bytes: is this a memcached?", maxLine)
	}
	l.w = copy(l.buf, l.buf[l.r:l.w])
	l.r = 0
	n, err := l.src.Read(l.buf[l.w:])
	l.w += n
	if n > 0 {
		return nil // an error that came with bytes comes again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// line returns the next line, and reads for as long as that takes.
func (l *lines) line() ([]byte, error) {
	for {
		if line, ok := l.next(); ok {
			return line, nil
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}
