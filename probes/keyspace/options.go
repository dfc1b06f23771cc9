package keyspace

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/keyname"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Options configure a [Ledger]. Source and Cache are required.
type Options struct {
	// Source and Cache name what windows are about.
	Source signal.Source
	Cache  string
	// Group names the family a key belongs to. It gets at most the first 256
	// bytes of the key; its result is escaped and cut to 64 bytes. Default:
	// the convention instrumented services use.
	Group func(key string) string
	// Salt is mixed into every hash of a key, as in an instrumented service:
	// with the same salt, both give a key the same id.
	Salt string
	// RawKeys adds the key itself to windows, cut to 256 bytes. Default: only
	// its group and the 64-bit id leave the probe.
	RawKeys bool
	// Locks says which keys are locks, and what they guard.
	Locks []LockPattern
	// MaxKeys bounds how many keys are remembered, at least 64; one takes
	// about half a kilobyte. Default 65,536. Beyond it those that are idle
	// are forgotten, and if none is, events on further keys are counted and
	// left out.
	MaxKeys int
	// MaxMisses bounds how many open misses of one key are told apart, at
	// least 16. Default 4096. Further ones are counted, and are not
	// matched with stores.
	MaxMisses int
	// MaxWindows bounds how many keys one flush reports singly, at least 16.
	// Default 4096. Beyond it, keys on which nothing happened twice are only
	// counted, as overflow.
	MaxWindows int
	// Removals says that the server tells whenever a value goes: deleted,
	// expired or evicted. Then one that is gone without a word was dropped
	// with all others, as by FLUSHALL, and counts as evicted. Default: it does
	// not, and nothing is known of such a value.
	Removals bool
	// GiveUp is how long a miss waits for the store that makes it a
	// recompute, 1s to 1h. Default 60s. A miss that no store followed says
	// that there was nothing to be had: see [signal.CauseNegative].
	GiveUp time.Duration
}

const (
	minKeys, defaultKeys     = 64, 1 << 16
	minMisses, defaultMisses = 16, 4096
	minWindows, defWindows   = 16, 4096
	minGiveUp, maxGiveUp     = time.Second, time.Hour
	defaultGiveUp            = time.Minute
)

func (o Options) withDefaults() Options {
	if o.Group == nil {
		o.Group = keyname.Pattern
	}
	o.MaxKeys = cmp.Or(o.MaxKeys, defaultKeys)
	o.MaxMisses = cmp.Or(o.MaxMisses, defaultMisses)
	o.MaxWindows = cmp.Or(o.MaxWindows, defWindows)
	o.GiveUp = cmp.Or(o.GiveUp, defaultGiveUp)
	return o
}

func (o Options) validate() error {
	switch {
	case o.Cache == "":
		return fmt.Errorf("ledger of %q: Cache is empty", o.Source.Instance)
	case o.Source.Service == "" || o.Source.Instance == "":
		return fmt.Errorf("ledger of cache %q: Source is %q, %q: want a service and an instance", o.Cache, o.Source.Service, o.Source.Instance)
	case o.MaxKeys < minKeys:
		return fmt.Errorf("ledger of cache %q: MaxKeys is %d: want at least %d", o.Cache, o.MaxKeys, minKeys)
	case o.MaxMisses < minMisses:
		return fmt.Errorf("ledger of cache %q: MaxMisses is %d: want at least %d", o.Cache, o.MaxMisses, minMisses)
	case o.MaxWindows < minWindows:
		return fmt.Errorf("ledger of cache %q: MaxWindows is %d: want at least %d", o.Cache, o.MaxWindows, minWindows)
	case o.GiveUp < minGiveUp || o.GiveUp > maxGiveUp:
		return fmt.Errorf("ledger of cache %q: GiveUp is %v: want %v to %v", o.Cache, o.GiveUp, minGiveUp, maxGiveUp)
	}
	return nil
}
