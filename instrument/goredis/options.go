package goredis

import (
	"fmt"
	"time"
)

// Options configure a [Hook]. The zero value works.
type Options struct {
	// LockKey reports whether key is a lock, and the key whose recompute it
	// guards: what happens to the lock counts as that key's. Locks are no cache
	// keys: their lookups, stores and deletions do not count. It is called for
	// every command on a key, so it must be fast; it must be pure, safe for
	// concurrent use, and must not panic. Default: a guess (see the package's
	// documentation), and a lock guards its own key.
	LockKey func(key string) (guards string, ok bool)

	// HashFields reports whether the hash at key is a cache in itself, each
	// field of it an entry, rather than one entry with fields. Then HGET, HMGET,
	// HSET, HMSET, HSETNX and HDEL count for the entry key + ":" + field, at the
	// cost of one allocation per field, and HGETALL does not count. It is called
	// for commands on hashes, under the same terms as LockKey. Default: never.
	HashFields func(key string) bool

	// MaxLocks bounds how many held locks are followed at once, 1 to 65536;
	// each takes about 100 bytes. If more are held, some are given up: their
	// attempts count, their holds end early. Default 1024.
	MaxLocks int

	// Now is the clock that locks expire by. Default: [time.Now].
	Now func() time.Time
}

const (
	defaultLocks = 1024
	maxLocks     = 1 << 16
)

func (o Options) withDefaults() Options {
	if o.MaxLocks == 0 {
		o.MaxLocks = defaultLocks
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) validate() error {
	if o.MaxLocks < 1 || o.MaxLocks > maxLocks {
		return fmt.Errorf("MaxLocks is %d: want 1 to %d", o.MaxLocks, maxLocks)
	}
	return nil
}
