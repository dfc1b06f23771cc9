package signal

import (
	"slices"
	"time"
)

// Vitals is a source's account of one cache, once a second, whether or not
// anything happened: it is the heartbeat. Silence is never read as health.
// Counts are cumulative since the process started, so a lost record loses
// nothing.
type Vitals struct {
	Source
	Cache string `json:"cache"`
	// At is when the record was made, on the source's clock. Against its time
	// of arrival it gives the offset between the two clocks.
	At     Nanos         `json:"at"`
	Uptime time.Duration `json:"uptime"`

	Lookups Lookups `json:"lookups"`
	Work
	// Running and Waiting are provoked recomputes that run, and readers that
	// wait, at At; of all keys.
	Running uint32 `json:"running,omitempty"`
	Waiting uint32 `json:"waiting,omitempty"`
	// Expiries bins the values this source stored that are still to expire; of
	// a probe, those the server holds, scaled up from Sample.
	Expiries []ExpiryBin `json:"expiries,omitempty"`
	Sample   Sample      `json:"sample,omitzero"`

	Tracked    uint64 `json:"tracked"`    // keys in the table now
	Overflowed uint64 `json:"overflowed"` // events on keys there was no room for
	Dropped    uint64 `json:"dropped"`    // records that could not be sent

	Expired uint64 `json:"expired,omitempty"` // by the server's own count (probes)
	Evicted uint64 `json:"evicted,omitempty"` // by the server's own count (probes)
	// Server is what else a cache server says of itself (probes).
	Server Server `json:"server,omitzero"`
	// Hot are the keys that the server says are used most, at most
	// [MaxHotKeys], those used most first (probes).
	Hot []HotKey `json:"hot,omitempty"`
	// Probe is set if the source looks at a cache server from outside: it is
	// no instance of an application, and Uptime is the server's.
	Probe bool `json:"probe,omitempty"`
	// Watch is set if a probe is told of what happens to single keys: while it
	// reports, silence about a key means that nothing happened to it.
	Watch bool `json:"watch,omitempty"`
	// Unknown lists what the source cannot see at all.
	Unknown Unknown `json:"unknown,omitempty"`

	Origin Origin `json:"origin,omitzero"`
	Claims Claims `json:"claims,omitzero"`
	// Closing is set in the last record of a source that stops in order.
	Closing bool `json:"closing,omitempty"`
}

// Server is a cache server's account of itself. What is zero did not happen, or
// the server does not tell.
type Server struct {
	Flushes uint64 `json:"flushes,omitempty"` // commands that dropped all keys, since the server started
	Sets    uint64 `json:"sets,omitempty"`    // commands that store one value, those that were refused (SET NX) included
	Blocked uint32 `json:"blocked,omitempty"` // clients that wait in a blocking command now
	Keys    uint64 `json:"keys,omitempty"`    // it holds now
}

// IsZero reports whether the server says nothing.
func (s Server) IsZero() bool { return s == Server{} }

// Origin is what a cache's recomputes spend, as its application declared it.
type Origin struct {
	Name string `json:"name,omitempty"`
	// Budget is how many recomputes the origin can run at once for all caches
	// that share it; zero if not declared.
	Budget int `json:"budget,omitempty"`
	// Recompute is how long it takes for one recompute when nobody else is in
	// the way, for as long as nobody has measured it; zero if not declared.
	Recompute time.Duration `json:"recompute,omitempty"`
}

// IsZero reports whether nothing is known of the origin.
func (o Origin) IsZero() bool { return o == Origin{} }

// Work is what was done about one cache: recomputes, and what spared them. In
// [Vitals] it is cumulative, in a [CacheState] it is of one tick.
type Work struct {
	Recomputes Recomputes    `json:"recomputes,omitzero"`
	Busy       time.Duration `json:"busy,omitempty"` // of recomputes that ended
	// Durations are those of recomputes that ended well.
	Durations  Durations `json:"durations,omitzero"`
	Duplicates uint64    `json:"duplicates,omitempty"` // within one process
	WhileFresh uint64    `json:"while_fresh,omitempty"`
	Coalesced  uint64    `json:"coalesced,omitempty"`
	Stores     uint64    `json:"stores,omitempty"`
	Early      uint64    `json:"early,omitempty"`
	Retries    Retries   `json:"retries,omitzero"`
}

// IsZero reports whether nothing was counted in h.
func (h Durations) IsZero() bool { return h == Durations{} }

// Add adds o to w.
func (w *Work) Add(o *Work) {
	w.Recomputes.Add(&o.Recomputes)
	w.Busy += o.Busy
	w.Durations.Add(&o.Durations)
	w.Duplicates += o.Duplicates
	w.WhileFresh += o.WhileFresh
	w.Coalesced += o.Coalesced
	w.Stores += o.Stores
	w.Early += o.Early
	w.Retries.Requests += o.Retries.Requests
	w.Retries.Attempts += o.Retries.Attempts
}

// Claims are what an application says of how it uses a cache. They cannot be
// observed; what is empty was not said.
type Claims struct {
	// Protection names what keeps readers from recomputing at once, from
	// ProtectSingleFlight and its like.
	Protection []string `json:"protection,omitempty"`
	// Timeout is how long a caller waits for a recompute, and Attempts how
	// often it tries, the first included.
	Timeout  time.Duration `json:"timeout,omitempty"`
	Attempts int           `json:"attempts,omitempty"`
	// Beta is XFetch's.
	Beta float64 `json:"beta,omitempty"`
	// RefreshAhead is the last part of a value's life, up to 1, in which
	// refresh-ahead renews it.
	RefreshAhead float64 `json:"refresh_ahead,omitempty"`
	// Clamp is the longest recompute time that XFetch acts on, whatever was
	// measured.
	Clamp time.Duration `json:"clamp,omitempty"`
	// LockTTL is how long a lock is held at most.
	LockTTL time.Duration `json:"lock_ttl,omitempty"`
	// StaleFor is how long an old value may be served.
	StaleFor time.Duration `json:"stale_for,omitempty"`
}

// Names of protections.
const (
	ProtectSingleFlight = "singleflight"
	ProtectXFetch       = "xfetch"
	ProtectRefreshAhead = "refresh_ahead"
	ProtectLock         = "lock"
	ProtectLease        = "lease"
	ProtectStale        = "swr"
)

// IsZero reports whether nothing was said.
func (c Claims) IsZero() bool {
	return len(c.Protection) == 0 && c.Timeout == 0 && c.Attempts == 0 && c.Beta == 0 && c.RefreshAhead == 0 && c.Clamp == 0 && c.LockTTL == 0 && c.StaleFor == 0
}

// Equal reports whether both say the same, with protections in the same order.
func (c Claims) Equal(o Claims) bool {
	return slices.Equal(c.Protection, o.Protection) && c.Timeout == o.Timeout && c.Attempts == o.Attempts && c.Beta == o.Beta &&
		c.RefreshAhead == o.RefreshAhead && c.Clamp == o.Clamp && c.LockTTL == o.LockTTL && c.StaleFor == o.StaleFor
}

// Says reports whether the application claims a protection.
func (c Claims) Says(protection string) bool { return slices.Contains(c.Protection, protection) }
