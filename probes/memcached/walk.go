package memcached

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// fairSince is the first version that lets go of all locks while it waits for
// whoever reads the list.
var fairSince = version{1, 6, 19}

// busyRetry is how soon a server is asked again that was busy.
const busyRetry = 10 * time.Second

// start asks for a list. If the server is busy, that is put off.
func (p *metadump) start(ctx context.Context) error {
	now := time.Now()
	c, err := p.list.open(ctx)
	if err != nil {
		return err
	}
	w := walk{began: now, fair: !parseVersion(p.last.version).before(fairSince), ahead: p.last.ahead(now)}
	order := "all"
	if w.fair {
		order = "hash"
	}
	p.due = now.Add(p.o.Every)
	line, err := c.ask(ctx, "lru_crawler metadump "+order)
	switch {
	case err != nil:
		return p.list.drop(err)
	case bytes.HasPrefix(line, []byte("BUSY")):
		p.due = now.Add(min(busyRetry, p.o.Every))
		return nil
	}
	p.walk = w
	return p.first(line)
}

// first takes in the first line of the answer. Only some versions begin with OK.
func (p *metadump) first(line []byte) error {
	if string(line) == "OK" {
		return nil
	}
	if _, err := p.take(line); err != nil {
		p.stop()
		return err
	}
	return nil
}

// read reads the list until it ends, or until shortly before ctx's deadline; the
// next run goes on from there.
func (p *metadump) read(ctx context.Context) error {
	c := p.list.c
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = p.walk.began.Add(p.o.Within)
	}
	now := time.Now()
	defer c.until(ctx, now.Add(deadline.Sub(now)*9/10))()
	for {
		over, err := p.takeAll(c)
		if err != nil {
			p.stop()
			return err
		}
		if over {
			return nil
		}
		if p.walk.looked >= p.o.MaxKeys || time.Since(p.walk.began) >= p.o.Within {
			p.cutShort()
			return nil
		}
		switch err := c.fill(); {
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil:
			return nil
		case err != nil:
			p.stop()
			return err
		}
	}
}

// takeAll takes in the lines that were read, and reports whether the list is
// over.
func (p *metadump) takeAll(c *conn) (over bool, err error) {
	for {
		line, ok := c.next()
		if !ok {
			return false, nil
		}
		if over, err := p.take(line); over || err != nil {
			return over, err
		}
	}
}

// take takes in one line, and reports whether it is the last.
func (p *metadump) take(line []byte) (over bool, err error) {
	if string(line) == "END" {
		p.end(uint64(p.walk.looked))
		p.tooLong = false
		return true, nil
	}
	if bytes.HasPrefix(line, []byte("ERROR locked")) {
		p.stop() // its hash table grows
		p.due = time.Now().Add(min(busyRetry, p.o.Every))
		return true, nil
	}
	if err := refusal(line); err != nil {
		return false, err
	}
	it, ok := parseItem(line, &p.key)
	if !ok {
		return false, fmt.Errorf("a line is none of a memcached's list (%d bytes)", len(line))
	}
	p.walk.looked++
	p.keys.Key(signal.At(p.walk.began), p.o.Group(string(it.key)), it.expiry.Add(p.walk.ahead))
	return false, nil
}

// cutShort ends a list that goes over its bounds. If it is a fair sample, it
// counts.
func (p *metadump) cutShort() {
	if p.walk.fair && p.walk.looked > 0 {
		p.end(max(p.last.items, uint64(p.walk.looked)))
		_ = p.list.close() // a server that is hung up on stops listing
		return
	}
	p.tooLong = !p.walk.fair
	p.stop()
}

// end makes the list count as a part of so many keys.
func (p *metadump) end(population uint64) {
	p.keys.EndSlice(signal.At(time.Now()), population)
	p.walk = walk{}
}
