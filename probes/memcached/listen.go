package memcached

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// silentFor is how long the log may say nothing while the server's counters say
// that there is something to say: the log is a second late at most.
const silentFor = 5 * time.Second

// silent notices a connection whose other end is gone without a word.
func (p *watch) silent(owes bool) error {
	now := time.Now()
	switch {
	case p.log.c == nil:
		return nil
	case !p.answered && now.Sub(p.asked) > silentFor:
		p.lost()
		return fmt.Errorf("ask for the log: no answer for %v", silentFor)
	case !owes && p.owed.IsZero():
		return nil
	case p.owed.IsZero():
		p.owed = now
	case now.Sub(p.owed) > silentFor:
		p.lost()
		return fmt.Errorf("the log has said nothing for %v, and there was something to say", silentFor)
	}
	return nil
}

// listen reads the log until shortly before ctx's deadline.
func (p *watch) listen(ctx context.Context) error {
	if !p.budget.renew(time.Now()) {
		return nil
	}
	if err := p.subscribe(ctx); err != nil {
		return p.log.drop(err)
	}
	c := p.log.c
	defer c.until(ctx, p.listenUntil(ctx))()
	for {
		if err := p.take(c); err != nil {
			p.lost()
			return fmt.Errorf("read the log: %w", err)
		}
		if p.budget.resting {
			p.lost()
			p.limits.rested(time.Now())
			return nil
		}
		switch err := c.fill(); {
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil:
			return nil // nothing more was said
		case err != nil:
			if ctx.Err() == nil {
				p.lost()
			}
			return fmt.Errorf("read the log: %w", err)
		}
	}
}

// listenUntil leaves a run a tenth of its time to make something of what it
// heard.
func (p *watch) listenUntil(ctx context.Context) time.Time {
	now := time.Now()
	until := now.Add(p.interval)
	if d, ok := ctx.Deadline(); ok {
		until = now.Add(d.Sub(now) * 9 / 10)
	}
	return until
}

// subscribe makes the log's connection, if there is none, and asks for the log.
// The answer is the log's first line: it is as late as the rest if somebody else
// watches too.
func (p *watch) subscribe(ctx context.Context) error {
	if p.log.c != nil {
		return nil
	}
	c, err := p.log.open(ctx)
	if err != nil {
		return err
	}
	p.owed = time.Time{}
	p.clock = clock{}
	p.answered, p.events.deletions = false, true
	defer c.bound(ctx)()
	return p.request(c, "watch fetchers mutations evictions deletions")
}

func (p *watch) request(c *conn, text string) error {
	p.asked = time.Now()
	if _, err := c.Write([]byte(text + "\r\n")); err != nil {
		return fmt.Errorf("ask for the log: %w", err)
	}
	return nil
}

// answer takes in the answer to the request for the log. Servers before 1.6.20 do
// not log deletions, and refuse to be asked for it.
func (p *watch) answer(c *conn, line []byte) error {
	err := refusal(line)
	switch {
	case string(line) == "OK":
		p.answered = true
		return nil
	case string(line) == "ERROR" && p.events.deletions:
		p.events.deletions = false
		return p.request(c, "watch fetchers mutations evictions")
	case err == nil:
		err = fmt.Errorf("the server answers %s", quoted(line))
	}
	return fmt.Errorf("ask for the log: %w", err)
}

// take takes in the lines that were read.
func (p *watch) take(c *conn) error {
	now := time.Now()
	for {
		line, ok := c.next()
		if !ok {
			return nil
		}
		if !p.answered {
			if err := p.answer(c, line); err != nil {
				return err
			}
			continue
		}
		r, ok := parseRecord(line, &p.key)
		if !ok {
			return fmt.Errorf("a line is none of a memcached's log (%d bytes)", len(line))
		}
		p.heard, p.owed = p.heard+1, time.Time{}
		if r.kind == skipped {
			p.gap()
			p.limits.dropped(now)
			continue
		}
		p.backlog.add(p.events.entry(r, &p.clock, signal.At(now)))
		if !p.budget.spend() {
			return nil
		}
	}
}

// lost says that the log's connection is gone, and what it would have said is
// not known.
func (p *watch) lost() {
	if p.log.c == nil {
		return
	}
	_ = p.log.close()
	p.gap()
}

// gap says that something is missing between what was heard and what comes.
func (p *watch) gap() {
	p.gaps++
	p.events.observe(p.backlog.release(signal.At(time.Now())))
	p.events.gap()
}
