package signal

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// Source names who saw something. Two records with equal Service and Instance
// come from one process.
type Source struct {
	Service  string `json:"service"`            // service.name
	Instance string `json:"instance,omitempty"` // service.instance.id; empty after a merge of several instances
	Build    string `json:"build,omitempty"`    // service.version; empty after a merge of several builds
}

// Key names a cache key without giving it away.
type Key struct {
	// ID is the same on every instance of a fleet for the same key, and is
	// what records are joined by. It is a truncated keyed hash, not the key.
	ID KeyID `json:"id"`
	// Group is a bounded, printable name for the family the key belongs to,
	// such as "feed:*". It is the only part that may become a metric label.
	Group string `json:"group"`
	// Text is the key itself, or a longer hash of it, and only there if the
	// application asked for that. It is untrusted: it may hold any bytes.
	Text string `json:"text,omitempty"`
}

// KeyID is 64 bits of a hash of a key; it prints as 16 hexadecimal digits.
type KeyID uint64

// String returns id as 16 lower-case hexadecimal digits.
func (id KeyID) String() string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return hex.EncodeToString(b[:])
}

// MarshalText encodes id as [KeyID.String] does.
func (id KeyID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText accepts what [KeyID.MarshalText] writes.
func (id *KeyID) UnmarshalText(b []byte) error {
	if len(b) != 16 {
		return fmt.Errorf("parse key id %q: want 16 hexadecimal digits", b)
	}
	v, err := strconv.ParseUint(string(b), 16, 64)
	if err != nil {
		return fmt.Errorf("parse key id %q: want 16 hexadecimal digits", b)
	}
	*id = KeyID(v)
	return nil
}

// Nanos is an instant: nanoseconds since the Unix epoch. Zero means unknown.
type Nanos int64

// At returns t as Nanos; the zero [time.Time] gives zero.
func At(t time.Time) Nanos {
	if t.IsZero() {
		return 0
	}
	return Nanos(t.UnixNano())
}

// Time returns n as a UTC time; zero gives the zero [time.Time].
func (n Nanos) Time() time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(n)).UTC()
}

// Add returns n moved by d. An unknown instant stays unknown.
func (n Nanos) Add(d time.Duration) Nanos {
	if n == 0 {
		return 0
	}
	return n + Nanos(d)
}

// Sub returns the time from m to n.
func (n Nanos) Sub(m Nanos) time.Duration { return time.Duration(n - m) }
