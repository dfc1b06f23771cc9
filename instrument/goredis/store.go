package goredis

import (
	"strings"
	"time"
)

// store takes a command that writes values.
func (h *Hook) store(o op, c *call) {
	switch o {
	case opSet:
		h.set(c)
	case opSetEx, opPSetEx:
		h.setEx(o, c)
	case opSetNX:
		h.setNX(c)
	case opGetSet: // nil says that there was no old value
		if c.err == nil || isNil(c.err) {
			h.stored(c, c.key, noExpiry)
		}
	case opMSet, opMSetNX:
		if succeeded(c.cmd, c.err) {
			h.storedPairs(c, c.args[1:], noExpiry)
		}
	case opMSetEx:
		h.mSetEx(c)
	default:
		h.storeHash(o, c)
	}
}

// stored counts a value that was written.
func (h *Hook) stored(c *call, key string, x expiry) {
	switch {
	case h.declaredLock(key):
		h.locks.renew(h.id(key), x, h.opt.Now())
	case h.over(x):
		h.m.Invalidate(key)
	default:
		h.remember(key, roleValue)
		h.m.ObserveStore(c.ctx, key, x.Expiry)
		h.sweep()
	}
}

// over reports whether x is in the past. It reads the clock only if x is an
// instant.
func (h *Hook) over(x expiry) bool {
	return x.past || !x.At.IsZero() && x.over(h.opt.Now())
}

// storedPairs counts pairs of a key and its value.
func (h *Hook) storedPairs(c *call, pairs []any, x expiry) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if key, ok := text(pairs[i]); ok {
			h.stored(c, key, x)
		}
	}
}

// setOptions is what follows SET's key and value.
type setOptions struct {
	expiry
	nx, xx, get bool
	compare     bool // it has a condition on the old value
}

func parseSet(args []any) setOptions {
	o := setOptions{expiry: noExpiry}
	for i := 0; i < len(args); {
		if x, n := option(args[i:]); n > 0 {
			o.expiry = x
			i += n
			continue
		}
		name, _ := text(args[i])
		switch {
		case strings.EqualFold(name, "nx"):
			o.nx = true
		case strings.EqualFold(name, "xx"):
			o.xx = true
		case strings.EqualFold(name, "get"):
			o.get = true
		case len(name) > 3 && strings.EqualFold(name[:2], "if"): // IFEQ, IFNE, IFDEQ, IFDNE
			o.compare = true
			i++ // what to compare with
		}
		i++
	}
	return o
}

// set takes SET in every form.
func (h *Hook) set(c *call) {
	if len(c.args) < 3 {
		return
	}
	o := parseSet(c.args[3:])
	done := c.written(o)
	if o.nx {
		if guards, lock := h.attempts(c.key, o.timed()); lock {
			h.attempted(c, guards, done, o.expiry)
			return
		}
	}
	if done {
		h.stored(c, c.key, o.expiry)
	}
}

// written reports whether SET wrote the value. With GET the reply is the old
// value, nil if there was none, and it takes the condition to tell.
func (c *call) written(o setOptions) bool {
	switch {
	case !o.get:
		return succeeded(c.cmd, c.err)
	case o.compare:
		return false // the old value does not say how it compared
	case o.nx:
		return isNil(c.err)
	case o.xx:
		return c.err == nil
	}
	return c.err == nil || isNil(c.err)
}

func (h *Hook) setEx(o op, c *call) {
	if len(c.args) < 4 || !succeeded(c.cmd, c.err) {
		return
	}
	unit := time.Second
	if o == opPSetEx {
		unit = time.Millisecond
	}
	h.stored(c, c.key, relative(c.args[2], unit))
}

func (h *Hook) setNX(c *call) {
	if len(c.args) < 3 {
		return
	}
	done := succeeded(c.cmd, c.err)
	if guards, lock := h.attempts(c.key, false); lock {
		h.attempted(c, guards, done, noExpiry)
		return
	}
	if done {
		h.stored(c, c.key, noExpiry)
	}
}

// mSetEx takes MSETEX numkeys key value ... and the options of SET.
func (h *Hook) mSetEx(c *call) {
	n, ok := integer(c.args[1])
	if !ok || n < 1 || n > int64(len(c.args)-2)/2 || !succeeded(c.cmd, c.err) {
		return
	}
	pairs := c.args[2 : 2+2*n]
	h.storedPairs(c, pairs, parseSet(c.args[2+2*n:]).expiry)
}

// storeHash takes HSET, HMSET, HSETNX, and HDEL on a hash whose fields are
// entries.
func (h *Hook) storeHash(o op, c *call) {
	if c.err != nil || o == opHSetNX && !succeeded(c.cmd, c.err) {
		return
	}
	switch fieldwise := h.fieldwise(c.key); {
	case o == opHDel && fieldwise:
		h.deleteFields(c)
	case o == opHDel: // the entry lost a field, not its life
	case fieldwise:
		h.storeFields(c)
	default:
		h.stored(c, c.key, unknownExpiry)
	}
}

func (h *Hook) storeFields(c *call) {
	for i := 2; i+1 < len(c.args); i += 2 {
		if field, ok := text(c.args[i]); ok {
			h.stored(c, entryOf(c.key, field), unknownExpiry)
		}
	}
}

func (h *Hook) deleteFields(c *call) {
	if !succeeded(c.cmd, c.err) {
		return
	}
	for _, arg := range c.args[2:] {
		if field, ok := text(arg); ok {
			h.m.Invalidate(entryOf(c.key, field))
		}
	}
}
