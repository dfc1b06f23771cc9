package memcached

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
)

// maxBuild bounds what is kept of a server's version: it comes from outside.
const maxBuild = 64

// maxStats bounds how many lines an answer to stats may have: servers write
// about a hundred.
const maxStats = 10_000

// counters is a server's answer to stats.
type counters struct {
	version string
	pid     uint64 // of the server's process
	uptime  time.Duration
	clock   uint64 // seconds since 1970, on the server's clock

	hits, misses, expired, flushed uint64 // reads
	sets, flushes, evictions       uint64
	items                          uint64 // it holds now
	// Of the server's log: lines it had no room to keep, of all who watch it,
	// and lines it could not send to one of them.
	logDropped, logSkipped uint64
}

// askStats asks for stats.
func (c *conn) askStats(ctx context.Context) (counters, error) {
	line, err := c.ask(ctx, "stats")
	if err != nil {
		return counters{}, fmt.Errorf("ask for stats: %w", err)
	}
	defer c.bound(ctx)()
	var p statsParser
	for range maxStats {
		done, err := p.line(line)
		if err != nil {
			return counters{}, fmt.Errorf("parse stats: %w", err)
		}
		if done {
			return p.finish()
		}
		if line, err = c.line(); err != nil {
			return counters{}, fmt.Errorf("read stats: %w", err)
		}
	}
	return counters{}, fmt.Errorf("read stats: more than %d lines", maxStats)
}

// statsParser reads the lines of an answer to stats. Unknown lines are passed
// over. The zero value is ready.
type statsParser struct {
	counters
	seconds uint64 // of uptime
	seen    map[string]bool
}

// line takes one line in; done is set by the last.
func (p *statsParser) line(line []byte) (done bool, err error) {
	rest, ok := bytes.CutPrefix(line, []byte("STAT "))
	if !ok {
		if string(line) == "END" {
			return true, nil
		}
		return false, fmt.Errorf("a line is %s: want STAT or END: is this a memcached?", quoted(line))
	}
	name, value, _ := bytes.Cut(rest, []byte{' '})
	if string(name) == "version" {
		p.version = string(value[:min(len(value), maxBuild)])
		return false, nil
	}
	to := p.field(name)
	if to == nil {
		return false, nil
	}
	n, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil || p.seen[string(name)] {
		return false, fmt.Errorf("%s is %s: want one whole number", name, quoted(value))
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	*to, p.seen[string(name)] = n, true
	return false, nil
}

// required are the names that vitals are made of. Servers before 1.4.31 do not
// have get_expired, and others may be switched off.
var required = []string{"uptime", "get_hits", "get_misses", "evictions", "curr_items"}

func (p *statsParser) field(name []byte) *uint64 {
	switch string(name) {
	case "uptime":
		return &p.seconds
	case "pid":
		return &p.pid
	case "time":
		return &p.clock
	case "get_hits":
		return &p.hits
	case "get_misses":
		return &p.misses
	case "get_expired":
		return &p.expired
	case "get_flushed":
		return &p.flushed
	case "cmd_set":
		return &p.sets
	case "cmd_flush":
		return &p.flushes
	case "evictions":
		return &p.evictions
	case "curr_items":
		return &p.items
	case "log_worker_dropped":
		return &p.logDropped
	case "log_watcher_skipped":
		return &p.logSkipped
	}
	return nil
}

func (p *statsParser) finish() (counters, error) {
	for _, name := range required {
		if !p.seen[name] {
			return counters{}, fmt.Errorf("parse stats: %s is missing: is this a memcached?", name)
		}
	}
	if p.seconds > math.MaxInt64/uint64(time.Second) {
		return counters{}, fmt.Errorf("parse stats: uptime is %d: want less than 292 years", p.seconds)
	}
	p.uptime = time.Duration(p.seconds) * time.Second
	return p.counters, nil
}

// anew reports whether the server was started anew since before. A process may
// have the same number again, as in a container, and one that was brought back at
// once may have been up no less than the one before.
func (n *counters) anew(before *counters) bool {
	return n.uptime < before.uptime || n.pid != before.pid
}

// commands returns how many gets and stores there were.
func (n *counters) commands() uint64 { return n.hits + n.misses + n.sets }
