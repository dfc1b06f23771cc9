package memcached

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// item is one line of the list of a server's keys.
type item struct {
	key    []byte       // only lent
	expiry signal.Nanos // on the server's clock; zero if it never expires
}

// parseItem reads a line of the list. It returns false for a line that no
// memcached would write. The key is kept in buf, which grows as needed.
func parseItem(line []byte, buf *[]byte) (item, bool) {
	var it item
	var hasExpiry bool
	for rest := line; len(it.key) == 0 || !hasExpiry; {
		name, text, more, ok := field(rest)
		if !ok {
			return item{}, false
		}
		switch string(name) {
		case "key":
			if *buf, ok = appendKey((*buf)[:0], text); !ok {
				return item{}, false
			}
			it.key = *buf
		case "exp":
			if it.expiry, ok = expiry(text); !ok {
				return item{}, false
			}
			hasExpiry = true
		}
		rest = more
	}
	return it, true
}

// expiry reads an instant in seconds; -1 is never.
func expiry(text []byte) (signal.Nanos, bool) {
	n, ok := number(text)
	switch {
	case !ok || n < -1 || n > maxSeconds:
		return 0, false
	case n == -1:
		return 0, true
	}
	return signal.Nanos(n) * signal.Nanos(time.Second), true
}
