package memcached

import (
	"bytes"
	"math"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// kind says what a line of the server's log tells of.
type kind uint8

const (
	ignored kind = iota // something else
	got                 // a command looked for the key
	stored              // a command wrote the key
	refused             // a command wrote, and made no new value: an add on a key that is there, an append
	failed              // a value was too large, or there was no memory
	deleted             // a command deleted the key
	evicted             // the server dropped the key for want of memory
	skipped             // the server left out lines: count says how many
)

// found says what a command that looked for a key found.
type found uint8

const (
	nothing  found = iota
	value          // one that is good
	outdated       // one past its expiry, which it dropped
	flushed        // one from before a flush, which it dropped
)

// record is one line of the server's log.
type record struct {
	gid   uint64       // order of events in the server
	at    signal.Nanos // when, on the server's clock
	conn  int64        // the client's connection; the server reuses numbers
	ttl   int32        // seconds a stored value lives; 0: for ever; less: it is past its expiry
	count uint64       // lines that were skipped
	kind  kind
	found found
	key   []byte // only lent
}

// parseRecord reads a line of the log. Lines it does not know are ignored
// records; it returns false for a line that no memcached would write. The key is
// kept in buf, which grows as needed.
func parseRecord(line []byte, buf *[]byte) (record, bool) {
	var r record
	if n, ok := bytes.CutPrefix(line, []byte("skipped=")); ok {
		count, ok := number(n)
		r.kind, r.count = skipped, uint64(count)
		return r, ok && count > 0
	}
	p := recordParser{record: &r, buf: buf}
	for rest := line; ; {
		name, text, more, ok := field(rest)
		if !ok {
			break
		}
		if !p.field(name, text) {
			return record{}, false
		}
		if p.other {
			return record{}, true
		}
		rest = more
	}
	return r, p.finish()
}

// recordParser holds what fields say until all of them are known.
type recordParser struct {
	*record
	buf            *[]byte
	status, cmd    []byte
	hasTime, hasID bool
	other          bool // of a type that is of no interest
}

// field takes one field in and reports whether it is as it should be.
func (p *recordParser) field(name, text []byte) (ok bool) {
	ok = true
	switch string(name) {
	case "ts":
		p.at, ok = instant(text)
		p.hasTime = true
	case "gid":
		var n int64
		n, ok = number(text)
		p.gid, p.hasID = uint64(n), true
		ok = ok && n >= 0
	case "type":
		p.kind = kindOf(text)
		p.other = p.kind == ignored
	case "key":
		*p.buf, ok = appendKey((*p.buf)[:0], text)
		p.key = *p.buf
	case "status":
		p.status = text
	case "cmd":
		p.cmd = text
	case "cfd":
		p.conn, ok = number(text)
	case "ttl":
		p.ttl, ok = seconds(text)
	}
	return ok
}

// finish draws conclusions from all fields.
func (p *recordParser) finish() bool {
	if !p.hasTime || !p.hasID {
		return false
	}
	switch p.kind {
	case got:
		p.found = foundOf(p.status)
	case stored:
		p.kind = storedOf(p.status, p.cmd)
	}
	return p.kind != ignored && len(p.key) > 0
}

func kindOf(text []byte) kind {
	switch string(text) {
	case "item_get":
		return got
	case "item_store":
		return stored
	case "deleted":
		return deleted
	case "eviction":
		return evicted
	}
	return ignored
}

func storedOf(status, cmd []byte) kind {
	switch string(status) {
	case "stored":
		if c := string(cmd); c != "append" && c != "prepend" {
			return stored
		}
	case "too_large", "no_memory":
		return failed
	}
	return refused
}

func foundOf(status []byte) found {
	switch string(status) {
	case "found":
		return value
	case "expired":
		return outdated
	case "flushed":
		return flushed
	}
	return nothing
}

// maxSeconds is the last whole second an instant can have.
const maxSeconds = math.MaxInt64/int64(time.Second) - 1

// instant reads seconds, a dot and microseconds. The server does not pad the
// latter with zeros: 7.42 is 42 microseconds past 7.
func instant(text []byte) (signal.Nanos, bool) {
	whole, part, ok := bytes.Cut(text, []byte{'.'})
	if !ok {
		return 0, false
	}
	s, okSeconds := number(whole)
	us, okMicros := number(part)
	if !okSeconds || !okMicros || s < 1 || s > maxSeconds || us < 0 || us > 999_999 {
		return 0, false
	}
	return signal.Nanos(s)*signal.Nanos(time.Second) + signal.Nanos(us)*signal.Nanos(time.Microsecond), true
}

// seconds reads a time to live. The server writes one that is over as an
// unsigned number: -64 comes as 4294967232.
func seconds(text []byte) (int32, bool) {
	n, ok := number(text)
	if !ok || n < math.MinInt32 || n > math.MaxUint32 {
		return 0, false
	}
	return int32(uint32(n)), true
}
