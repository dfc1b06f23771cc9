package keyspace

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Kind says what happened to a key.
type Kind uint8

// Kinds of event.
const (
	Miss    Kind = iota + 1 // a reader found nothing
	Store                   // a value was written, whole
	Change                  // a value was made or changed in a way that may be one step of many, as of a list
	Delete                  // somebody removed the value
	Expire                  // the value's time to live was set, or set anew
	Expired                 // the server dropped the value for its age: at its expiry, or some time after
	Evicted                 // the server dropped the value for want of memory
	Left                    // nothing: somebody asked how much of the value's life is left, and TTL is the answer
)

// Event is one thing that happened to one key.
type Event struct {
	// At is when, on the clock of the probe: events of one server must be
	// told in the order they happened, and At must not run backwards by more
	// than the probe's own jitter.
	At signal.Nanos
	// Key is the key, of any bytes. It is only lent.
	Key []byte
	// Kind says what happened.
	Kind Kind
	// TTL is the time to live a Store or an Expire gave the value, or what is
	// Left of it; zero if it is not known, below zero if it never expires.
	TTL time.Duration
}
