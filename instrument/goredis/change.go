package goredis

import "time"

// change takes a command that changes a value's life, deletes it, or is a
// script.
func (h *Hook) change(o op, c *call) {
	switch o {
	case opDel:
		h.deleted(c)
	case opDelEx:
		h.deletedIf(c)
	case opScript:
		h.script(c)
	default:
		if x, ok := c.newLife(o); ok && succeeded(c.cmd, c.err) {
			h.touched(c.key, x)
		}
	}
}

// newLife returns what a command of the EXPIRE family asks for.
func (c *call) newLife(o op) (expiry, bool) {
	if o == opPersist {
		return noExpiry, true
	}
	if len(c.args) < 3 {
		return unknownExpiry, false
	}
	switch o {
	case opExpire:
		return relative(c.args[2], time.Second), true
	case opPExpire:
		return relative(c.args[2], time.Millisecond), true
	case opExpireAt:
		return absolute(c.args[2], time.Second), true
	case opPExpireAt:
		return absolute(c.args[2], time.Millisecond), true
	}
	return unknownExpiry, false
}

// touched notes that a value's life was changed.
func (h *Hook) touched(key string, x expiry) {
	switch _, lock := h.isLock(key); {
	case lock:
		h.locks.renew(h.id(key), x, h.opt.Now())
	case h.over(x):
		h.m.Invalidate(key)
	default:
		h.m.Touch(key, x.Expiry)
	}
}

// deleted takes DEL, UNLINK and GETDEL.
func (h *Hook) deleted(c *call) {
	n, counted := number(c.cmd, c.err)
	if c.err != nil && !counted {
		return
	}
	none := counted && n == 0
	for _, arg := range c.args[1:] {
		key, ok := text(arg)
		if !ok {
			continue
		}
		if _, lock := h.isLock(key); lock {
			h.locks.drop(h.id(key), none, h.opt.Now())
		} else if !none {
			h.m.Invalidate(key)
		}
	}
}

// deletedIf takes DELEX, whose condition can be the token of a lock.
func (h *Hook) deletedIf(c *call) {
	if len(c.args) < 4 {
		h.deleted(c)
		return
	}
	n, ok := number(c.cmd, c.err)
	if !ok {
		return
	}
	if _, lock := h.isLock(c.key); !lock {
		if n > 0 {
			h.m.Invalidate(c.key)
		}
		return
	}
	if token, ok := text(c.args[3]); ok {
		h.locks.release(h.id(c.key), h.id(token), n <= 0)
	}
}
