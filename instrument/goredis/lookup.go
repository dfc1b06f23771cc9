package goredis

import "context"

// lookup takes a command that reads values.
func (h *Hook) lookup(o op, c *call) {
	switch o {
	case opGet:
		h.found(c.ctx, c.key, resultOf(c.err))
	case opGetEx:
		h.getEx(c)
	case opMGet:
		values, _ := elements(c.cmd)
		for i, arg := range c.args[1:] {
			if key, ok := text(arg); ok {
				h.found(c.ctx, key, c.resultAt(values, i))
			}
		}
	default:
		h.lookupHash(o, c)
	}
}

// resultAt returns how the lookup of the i-th of several values ended.
func (c *call) resultAt(values []any, i int) result {
	if c.err != nil && !isNil(c.err) {
		return failed
	}
	return resultAt(values, i)
}

// getEx takes a lookup that may change the value's life.
func (h *Hook) getEx(c *call) {
	h.found(c.ctx, c.key, resultOf(c.err))
	if c.err != nil || len(c.args) < 3 {
		return
	}
	if x, n := option(c.args[2:]); n > 0 {
		h.touched(c.key, x)
	}
}

func (h *Hook) lookupHash(o op, c *call) {
	if h.fieldwise(c.key) {
		if o != opHGetAll {
			h.lookupFields(o, c)
		}
		return
	}
	r := resultOf(c.err)
	if r == hit {
		switch o {
		case opHMGet:
			values, _ := elements(c.cmd)
			r = resultOfAny(values)
		case opHGetAll:
			r = resultOfAll(c.cmd)
		}
	}
	h.found(c.ctx, c.key, r)
}

// lookupFields takes HGET or HMGET on a hash whose fields are entries.
func (h *Hook) lookupFields(o op, c *call) {
	values, _ := elements(c.cmd)
	for i, arg := range c.args[2:] {
		field, ok := text(arg)
		if !ok {
			continue
		}
		r := resultOf(c.err)
		if o == opHMGet {
			r = c.resultAt(values, i)
		}
		h.found(c.ctx, entryOf(c.key, field), r)
	}
}

// found counts one lookup.
func (h *Hook) found(ctx context.Context, key string, r result) {
	if r == unseen || h.declaredLock(key) {
		return
	}
	switch r {
	case hit:
		h.m.Hit(key)
	case failed:
		h.m.LookupError(key)
	case miss:
		h.remember(key, roleValue)
		h.m.ObserveMiss(ctx, key)
		h.sweep()
	}
}

// fieldwise reports whether the fields of the hash at key are entries.
func (h *Hook) fieldwise(key string) bool {
	return h.opt.HashFields != nil && h.opt.HashFields(key)
}

func entryOf(key, field string) string { return key + ":" + field }
