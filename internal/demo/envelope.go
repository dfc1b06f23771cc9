package demo

import (
	"fmt"
	"math"
	"time"
)

// envelope is what XFetch keeps beside a value: when it expires, and how long
// it took to make. The value itself is left out; nobody reads it.
type envelope struct {
	expiry time.Time
	delta  time.Duration
}

// String encodes e.
func (e envelope) String() string { return fmt.Sprintf("%d %d", e.expiry.UnixNano(), e.delta) }

func parseEnvelope(s string) (envelope, error) {
	var at, delta int64
	if _, err := fmt.Sscanf(s, "%d %d", &at, &delta); err != nil {
		return envelope{}, fmt.Errorf("parse envelope %q: %w", s, err)
	}
	return envelope{expiry: time.Unix(0, at), delta: time.Duration(delta)}, nil
}

// volunteers reports whether a reader with that luck, uniform in (0, 1],
// recomputes v at now: the rule of XFetch, now - delta*beta*ln(luck) >= expiry,
// with beta 1 (Vattani, Chierichetti, Lowenstein: Optimal Probabilistic Cache
// Stampede Prevention, VLDB 2015).
func volunteers(v envelope, now time.Time, luck float64) bool {
	ahead := time.Duration(-float64(v.delta) * math.Log(luck))
	return !now.Add(ahead).Before(v.expiry)
}
