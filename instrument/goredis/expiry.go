package goredis

import (
	"math"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/instrument"
)

// expiry is what a command says about a value's life.
type expiry struct {
	instrument.Expiry
	past bool // it ends at once: the server deletes the value
}

// timed reports whether the value ends by itself.
func (x expiry) timed() bool { return x.TTL > 0 || !x.At.IsZero() }

// over reports whether a value with this expiry is gone by now.
func (x expiry) over(now time.Time) bool {
	return x.past || !x.At.IsZero() && !x.At.After(now)
}

// left returns how long the value lives from now; zero if it does not end or
// that is not known.
func (x expiry) left(now time.Time) time.Duration {
	if !x.At.IsZero() {
		return x.At.Sub(now)
	}
	return x.TTL
}

var (
	unknownExpiry = expiry{}
	noExpiry      = expiry{Expiry: instrument.Expiry{None: true}}
	keepExpiry    = expiry{Expiry: instrument.Expiry{Keep: true}}
)

// relative reads a time to live in units.
func relative(arg any, unit time.Duration) expiry {
	n, ok := integer(arg)
	if !ok {
		return unknownExpiry
	}
	if n <= 0 {
		return expiry{past: true}
	}
	return expiry{Expiry: instrument.Expiry{TTL: scale(n, unit)}}
}

// absolute reads an instant in units since the Unix epoch.
func absolute(arg any, unit time.Duration) expiry {
	n, ok := integer(arg)
	if !ok {
		return unknownExpiry
	}
	if n <= 0 {
		return expiry{past: true}
	}
	return expiry{Expiry: instrument.Expiry{At: time.Unix(0, int64(scale(n, unit)))}}
}

// scale returns n units, or the longest duration there is, 292 years: an expiry
// in the year 9999 is common for "never".
func scale(n int64, unit time.Duration) time.Duration {
	if n > math.MaxInt64/int64(unit) {
		return math.MaxInt64
	}
	return time.Duration(n) * unit
}

// option reads the expiry option at the start of args, as SET and GETEX take
// it, and returns how many arguments it is long: zero if there is none.
func option(args []any) (expiry, int) {
	name, ok := text(args[0])
	if !ok {
		return unknownExpiry, 0
	}
	var value any = ""
	if len(args) > 1 {
		value = args[1]
	}
	switch {
	case strings.EqualFold(name, "ex"):
		return relative(value, time.Second), 2
	case strings.EqualFold(name, "px"):
		return relative(value, time.Millisecond), 2
	case strings.EqualFold(name, "exat"):
		return absolute(value, time.Second), 2
	case strings.EqualFold(name, "pxat"):
		return absolute(value, time.Millisecond), 2
	case strings.EqualFold(name, "keepttl"):
		return keepExpiry, 1
	case strings.EqualFold(name, "persist"):
		return noExpiry, 1
	}
	return unknownExpiry, 0
}
