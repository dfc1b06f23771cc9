package goredis

import (
	"hash/maphash"
	"sync/atomic"
)

// role is what a key was last seen as.
type role uint64

const (
	roleValue role = 0 // a reader missed it, or it was written unconditionally
	roleLock  role = 1 // somebody tried to take it
)

// roles remembers the roles of the latest keys, without locks and in 32 KiB: a
// key has one place, by its hash, and the next key of that place drives it out.
// A key that was driven out is taken for a new one, which makes a guess worse
// but nothing wrong.
type roles [4096]atomic.Uint64

// place holds the hash of a key but for its last bit, which is the role.
func (r *roles) place(id uint64) *atomic.Uint64 { return &r[id>>52] }

func (r *roles) is(id uint64, what role) bool {
	return r.place(id).Load() == id&^1|uint64(what)
}

func (r *roles) set(id uint64, what role) {
	// Many readers miss one key at once: do not make them fight for the line.
	if !r.is(id, what) {
		r.place(id).Store(id&^1 | uint64(what))
	}
}

// id stands for a key or a token, so that neither need be kept.
func (h *Hook) id(s string) uint64 { return maphash.String(h.seed, s) }

// remember notes a key's role, if it is not declared.
func (h *Hook) remember(key string, what role) {
	if h.opt.LockKey == nil {
		h.roles.set(h.id(key), what)
	}
}

// declaredLock reports whether key is a lock by [Options.LockKey].
func (h *Hook) declaredLock(key string) bool {
	if h.opt.LockKey == nil {
		return false
	}
	_, ok := h.opt.LockKey(key)
	return ok
}

// isLock reports whether key is a lock as far as is known, and what it guards.
func (h *Hook) isLock(key string) (guards string, ok bool) {
	if h.opt.LockKey != nil {
		return h.opt.LockKey(key)
	}
	return key, h.roles.is(h.id(key), roleLock)
}

// attempts reports whether a SET NX of key tries to take a lock. By guess it
// does if the key would expire by itself and nobody has missed it lately.
func (h *Hook) attempts(key string, timed bool) (guards string, ok bool) {
	if h.opt.LockKey != nil {
		return h.opt.LockKey(key)
	}
	id := h.id(key)
	if !timed || h.roles.is(id, roleValue) {
		return "", false
	}
	h.roles.set(id, roleLock)
	return key, true
}
