package memcached

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stampede-exporter/stampede-exporter/probes/keyspace"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// WatchOptions say what of a server's log to read, and what becomes of it. The
// zero value reads all of it, as long as that is not too much.
type WatchOptions struct {
	// Locks says which keys are locks: see [keyspace.ParseLockPattern].
	// Default: none is known to be one.
	Locks []string
	// MaxLinesPerSecond is how many lines of the log are read a second, on
	// average, 100 to 1,000,000. The log has a line for each get, one for each
	// store and one more for the get in it. Beyond it the probe hangs up, so
	// that the server stops writing, and listens again after a while: what it
	// sees then is stretches of time. A line costs the server a little more
	// than a microsecond, and the probe about 100 bytes for two seconds.
	// Default 10,000.
	MaxLinesPerSecond int
	// MaxKeys bounds how many keys are remembered, 64 to 10 million, at about
	// half a kilobyte each. Default 65,536.
	MaxKeys int
	// GiveUp is how long a miss waits for a store, 1s to 1h. Default 60s.
	GiveUp time.Duration
	// RawKeys adds keys themselves to the evidence. Default: only their group
	// and a hash.
	RawKeys bool
	// Salt is mixed into the hash of a key. Default: none.
	Salt string
}

const (
	defaultLines       = 10_000
	minLines, maxLines = 100, 1_000_000
	maxWatchKeys       = 10_000_000
)

func (o WatchOptions) withDefaults() WatchOptions {
	o.MaxLinesPerSecond = cmp.Or(o.MaxLinesPerSecond, defaultLines)
	return o
}

func (o WatchOptions) validate() error {
	switch {
	case o.MaxLinesPerSecond < minLines || o.MaxLinesPerSecond > maxLines:
		return fmt.Errorf("MaxLinesPerSecond is %d: want %d to %d", o.MaxLinesPerSecond, minLines, maxLines)
	case o.MaxKeys > maxWatchKeys:
		return fmt.Errorf("MaxKeys is %d: want at most %d", o.MaxKeys, maxWatchKeys)
	}
	return nil
}

// events returns what tells a ledger of a server's log.
func (o WatchOptions) events(source signal.Source, cache string) (*events, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	// The log does not tell when the server drops what has expired, and not
	// every version tells of deletions, so what is gone without a word may be
	// gone for any reason.
	l := keyspace.Options{
		Source: source, Cache: cache,
		MaxKeys: o.MaxKeys, GiveUp: o.GiveUp, RawKeys: o.RawKeys, Salt: o.Salt,
	}
	for _, text := range o.Locks {
		p, err := keyspace.ParseLockPattern(text)
		if err != nil {
			return nil, err
		}
		l.Locks = append(l.Locks, p)
	}
	keys, err := keyspace.New(l)
	if err != nil {
		return nil, err
	}
	return newEvents(keys, l.Locks), nil
}
