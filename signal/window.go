package signal

import "time"

// MaxSpan is the longest span one source's window covers.
const MaxSpan = time.Second

// Window is what one source saw of one key of one cache between Start and End.
// Only active keys have windows: a miss, a recompute (one still running counts),
// a store, an invalidation, an early refresh or a lock. A key that is only hit
// has none.
//
// Windows of one key merge ([Window.Merge]) into a window of all the sources
// they came from.
type Window struct {
	Source
	Cache string `json:"cache"`
	Key   Key    `json:"key"`
	// Generation identifies the life of the stored value this window is
	// about, if the source knows a name for it that every instance agrees
	// on: the writer's id or the expiry instant kept with the value.
	Generation string `json:"generation,omitempty"`
	Start      Nanos  `json:"start"`
	End        Nanos  `json:"end"`
	// Unknown lists what the source could not see or had to infer.
	Unknown Unknown `json:"unknown,omitempty"`

	Lookups Lookups `json:"lookups,omitzero"`
	// MissPeak is the most readers that were, at one instant, between their
	// miss and having a value (or giving up).
	MissPeak uint32 `json:"miss_peak,omitempty"`

	// Recomputes counts by cause; see [NumCauses].
	Recomputes Recomputes `json:"recomputes,omitzero"`
	// InFlightPeak is the most provoked recomputes (see [Cause.Provoked])
	// running at one instant in one process.
	InFlightPeak uint32 `json:"in_flight_peak,omitempty"`
	// Duplicates counts recomputes whose work was wasted: they started while
	// another of the same key was running, or while a value stored after
	// their own lookup was fresh. It counts within one process.
	Duplicates uint64 `json:"duplicates,omitempty"`
	// WhileFresh counts recomputes that started although a value stored after
	// their own lookup was fresh. They are in Duplicates too.
	WhileFresh uint64 `json:"while_fresh,omitempty"`
	// Coalesced counts callers that waited for somebody else's recompute:
	// followers only, not the leader.
	Coalesced uint64 `json:"coalesced,omitempty"`

	// Busy sums the durations of recomputes that ended here.
	Busy    time.Duration `json:"busy,omitempty"`
	BusyMax time.Duration `json:"busy_max,omitempty"`
	// Intervals are individual recomputes that were running in this window,
	// at most [MaxIntervals], in order of Start, then ID.
	Intervals []Interval `json:"intervals,omitempty"`
	// Sampled is set if there were more recomputes than Intervals could hold.
	Sampled bool `json:"sampled,omitempty"`

	Stores        Stores `json:"stores,omitzero"`
	Invalidations uint64 `json:"invalidations,omitempty"`
	// InvalidatedAt is when the latest of them was; zero if there was none.
	InvalidatedAt Nanos   `json:"invalidated_at,omitempty"`
	Early         Early   `json:"early,omitzero"`
	Locks         Locks   `json:"locks,omitzero"`
	Retries       Retries `json:"retries,omitzero"`

	// Shares break a merged window down by instance, sorted by service and
	// instance. A window of one source has none: it is its own only share.
	Shares []Share `json:"shares,omitempty"`
}

// Unknown is a set of things a source could not see.
type Unknown uint16

// What a source may not know.
const (
	// UnknownRecomputes: recomputes are not visible at all (a probe).
	UnknownRecomputes Unknown = 1 << iota
	// UnknownStarts: recomputes were inferred from a miss that was followed
	// by a store of the same key, so they are seen only once they end well.
	UnknownStarts
	// UnknownCoalesced: followers are not visible.
	UnknownCoalesced
	// UnknownEarly: early refreshes cannot be told from other stores.
	UnknownEarly
	// UnknownLocks: lock waits and holds are not visible.
	UnknownLocks
	// UnknownRetries: attempts per logical request are not visible.
	UnknownRetries
	// UnknownHits: misses are visible, and hits are not.
	UnknownHits
)

// Has reports whether everything in f is unknown.
func (u Unknown) Has(f Unknown) bool { return u&f == f }

// Lookups counts reads of a key, or of a cache, by result.
type Lookups struct {
	Hits   uint64 `json:"hits,omitempty"`
	Misses uint64 `json:"misses,omitempty"`
	Stale  uint64 `json:"stale,omitempty"` // an old value served on purpose
	Errors uint64 `json:"errors,omitempty"`
}

// Total returns the number of reads.
func (l Lookups) Total() uint64 { return l.Hits + l.Misses + l.Stale + l.Errors }

// IsZero reports whether nothing was read.
func (l Lookups) IsZero() bool { return l == Lookups{} }

// Add adds o to l.
func (l *Lookups) Add(o Lookups) {
	l.Hits += o.Hits
	l.Misses += o.Misses
	l.Stale += o.Stale
	l.Errors += o.Errors
}

// Recomputes counts recomputes by cause: how many started in the window, and
// how many ended in it with each outcome.
type Recomputes struct {
	Started [NumCauses]uint64              `json:"started"`
	Ended   [NumCauses][NumOutcomes]uint64 `json:"ended"`
}

// Starts returns how many recomputes started, of any cause.
func (r *Recomputes) Starts() uint64 {
	var n uint64
	for _, v := range r.Started {
		n += v
	}
	return n
}

// Provoked returns how many recomputes started because a reader found nothing.
func (r *Recomputes) Provoked() uint64 {
	var n uint64
	for c, v := range r.Started {
		if Cause(c).Provoked() {
			n += v
		}
	}
	return n
}

// Ends returns how many recomputes ended with outcome o, of any cause.
func (r *Recomputes) Ends(o Outcome) uint64 {
	var n uint64
	for c := range r.Ended {
		n += r.Ended[c][o]
	}
	return n
}

// IsZero reports whether nothing started or ended.
func (r Recomputes) IsZero() bool { return r == Recomputes{} }

// Add adds o to r.
func (r *Recomputes) Add(o *Recomputes) {
	for c := range r.Started {
		r.Started[c] += o.Started[c]
		for e := range r.Ended[c] {
			r.Ended[c][e] += o.Ended[c][e]
		}
	}
}

// Stores counts values written, with the bounds of their lives.
type Stores struct {
	Count    uint64 `json:"count,omitempty"`
	NoExpiry uint64 `json:"no_expiry,omitempty"` // of Count, those that never expire
	// ExpiryMin and ExpiryMax bound the expiry instants of values written
	// with one; zero if there was none.
	ExpiryMin Nanos `json:"expiry_min,omitempty"`
	ExpiryMax Nanos `json:"expiry_max,omitempty"`
	// TTLMin and TTLMax bound the time to live they were written with.
	TTLMin time.Duration `json:"ttl_min,omitempty"`
	TTLMax time.Duration `json:"ttl_max,omitempty"`
	// Stale counts, of Count, values whose recompute began before an
	// invalidation of the key that came before the store: what was written
	// was out of date. It counts within one process.
	Stale uint64 `json:"stale,omitempty"`
	// Versions are those of values whose version the application told.
	Versions Versions `json:"versions,omitzero"`
}

// IsZero reports whether nothing was stored.
func (s Stores) IsZero() bool { return s == Stores{} }

// Early counts refreshes that ran before their value expired.
type Early struct {
	Count    uint64        `json:"count,omitempty"`
	LeadSum  time.Duration `json:"lead_sum,omitempty"` // how long before expiry, summed
	LeadMax  time.Duration `json:"lead_max,omitempty"`
	DeltaMax time.Duration `json:"delta_max,omitempty"` // the longest recompute time a reader acted on
}

// IsZero reports whether there was no early refresh.
func (e Early) IsZero() bool { return e == Early{} }

// Locks counts what happened on the lock that guards a key's recompute.
type Locks struct {
	Attempts uint64        `json:"attempts,omitempty"`
	Acquired uint64        `json:"acquired,omitempty"`
	Waits    uint64        `json:"waits,omitempty"` // waits that ended
	WaitSum  time.Duration `json:"wait_sum,omitempty"`
	WaitMax  time.Duration `json:"wait_max,omitempty"`
	WaitPeak uint32        `json:"wait_peak,omitempty"` // waiting at one instant in one process
	Holds    uint64        `json:"holds,omitempty"`     // holds that ended
	HoldSum  time.Duration `json:"hold_sum,omitempty"`
	HoldMax  time.Duration `json:"hold_max,omitempty"`
	Lost     uint64        `json:"lost,omitempty"` // expired, or somebody else's, before it was released
	// Waiting and Held are callers that wait for the lock, and locks held,
	// when the window ends; HeldSince is when the oldest of those was taken.
	Waiting   uint32 `json:"waiting,omitempty"`
	Held      uint32 `json:"held,omitempty"`
	HeldSince Nanos  `json:"held_since,omitempty"`
}

// IsZero reports whether no lock was seen.
func (l Locks) IsZero() bool { return l == Locks{} }

// Retries relates attempts on the origin to the logical requests behind them.
type Retries struct {
	Requests uint64 `json:"requests,omitempty"` // first attempts
	Attempts uint64 `json:"attempts,omitempty"` // all attempts, the first included
}

// IsZero reports whether no attempt was seen.
func (r Retries) IsZero() bool { return r == Retries{} }

// Share is one instance's part of a merged window.
type Share struct {
	Source
	Recomputes   uint64 `json:"recomputes,omitempty"` // provoked recomputes started
	InFlightPeak uint32 `json:"in_flight_peak,omitempty"`
	MissPeak     uint32 `json:"miss_peak,omitempty"`
	Coalesced    uint64 `json:"coalesced,omitempty"` // followers it spared a recompute
}

// Shift moves every instant in w by d, from its source's clock to another. The
// generation is a name, not an instant, and stays.
func (w *Window) Shift(d time.Duration) {
	w.Start = w.Start.Add(d)
	w.End = w.End.Add(d)
	w.InvalidatedAt = w.InvalidatedAt.Add(d)
	w.Locks.HeldSince = w.Locks.HeldSince.Add(d)
	w.Stores.ExpiryMin = w.Stores.ExpiryMin.Add(d)
	w.Stores.ExpiryMax = w.Stores.ExpiryMax.Add(d)
	w.Stores.Versions.OldestAt = w.Stores.Versions.OldestAt.Add(d)
	w.Stores.Versions.NewestAt = w.Stores.Versions.NewestAt.Add(d)
	for i := range w.Intervals {
		w.Intervals[i].Start = w.Intervals[i].Start.Add(d)
		w.Intervals[i].End = w.Intervals[i].End.Add(d)
	}
}
