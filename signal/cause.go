package signal

import "fmt"

// Cause says why a recompute ran.
type Cause uint8

// Causes of a recompute. The numbers travel on the wire and do not change.
const (
	CauseUnknown     Cause = iota // the source cannot tell
	CauseExpired                  // the value reached its expiry
	CauseCold                     // this source has never seen a value for the key
	CauseEvicted                  // the value vanished before its expiry
	CauseInvalidated              // somebody deleted the value
	CauseEarly                    // before expiry on purpose: XFetch, refresh-ahead
	CauseWarmup                   // filled without a reader asking
	CauseNegative                 // the origin had no such thing
	NumCauses
)

var causeNames = [NumCauses]string{"unknown", "expired", "cold", "evicted", "invalidated", "early", "warmup", "negative"}

// String returns the lower-case name of c.
func (c Cause) String() string { return name(causeNames[:], int(c), "cause") }

// MarshalText encodes c by name.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText accepts the names [Cause.String] returns.
func (c *Cause) UnmarshalText(b []byte) error { return parse(causeNames[:], b, "cause", c) }

// Provoked reports whether a reader that found nothing set the recompute off,
// as opposed to one that ran ahead of need. Only provoked recomputes can be
// part of a dogpile.
func (c Cause) Provoked() bool { return c != CauseEarly && c != CauseWarmup && c != CauseNegative }

// Outcome says how a recompute ended.
type Outcome uint8

// Outcomes of a recompute. The numbers travel on the wire and do not change.
const (
	OutcomeUnknown   Outcome = iota // still running, or its end was not seen
	OutcomeOK                       // a value was made
	OutcomeFailed                   // the origin returned an error
	OutcomeTimedOut                 // its deadline passed
	OutcomeCancelled                // its caller went away
	NumOutcomes
)

var outcomeNames = [NumOutcomes]string{"unknown", "ok", "failed", "timed_out", "cancelled"}

// String returns the lower-case name of o.
func (o Outcome) String() string { return name(outcomeNames[:], int(o), "outcome") }

// MarshalText encodes o by name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText accepts the names [Outcome.String] returns.
func (o *Outcome) UnmarshalText(b []byte) error { return parse(outcomeNames[:], b, "outcome", o) }

func name(names []string, i int, kind string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

func parse[T ~uint8](names []string, b []byte, kind string, out *T) error {
	for i, n := range names {
		if string(b) == n {
			*out = T(i)
			return nil
		}
	}
	return fmt.Errorf("parse %s %q: want one of %q", kind, b, names)
}
