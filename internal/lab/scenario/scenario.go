// Package scenario is the format of scenario files: a fleet, its caches and
// origins, the load on them, what happens to them, and what must be found.
//
// docs/scenarios.md describes every field. The names are a public interface:
// they are added to, and not changed.
package scenario

import "time"

// Scenario is one file. Values come from [Load] or [Parse], with defaults filled
// in and checked; treat them as read-only.
type Scenario struct {
	Name     string            `yaml:"name"`     // of letters, digits, "-", "_" and "."
	About    string            `yaml:"about"`    // one line, for reports
	Source   string            `yaml:"source"`   // where its figures come from
	Seed     uint64            `yaml:"seed"`     // same seed, same run; default 1
	Duration time.Duration     `yaml:"duration"` // virtual time, 1 s to 32 days
	Fleet    Fleet             `yaml:"fleet"`
	Origins  map[string]Origin `yaml:"origins"`
	Caches   map[string]Cache  `yaml:"caches"`
	// Workloads are the readers, at least one.
	Workloads []Workload `yaml:"workloads"`
	Events    []Event    `yaml:"events"`
	// Expect lists findings that must come; Forbid those that must not.
	Expect []Expectation `yaml:"expect"`
	Forbid Forbid        `yaml:"forbid"`
	// Truth lists figures that the run itself must come to; see [TruthNames].
	Truth map[string]Figure `yaml:"truth"`
}

// Fleet is the application: processes that are alike.
type Fleet struct {
	Instances int    `yaml:"instances"` // 1 to 10,000; default 1
	Build     string `yaml:"build"`     // version; default "v1"
	// ClockSkew: each instance's clock is off by up to this much, either way;
	// at most 1 h.
	ClockSkew time.Duration `yaml:"clock_skew"`
}

// Origin is what recomputes spend.
type Origin struct {
	// Concurrency is how many recomputes run at once; 0 is no bound.
	Concurrency int `yaml:"concurrency"`
	// Queue says what happens to those that find no slot: [QueueFIFO] (the
	// default), [QueueLIFO] or [QueueShed].
	Queue string `yaml:"queue"`
	// QueueLimit bounds how many wait under [QueueShed]; default twice
	// Concurrency.
	QueueLimit int `yaml:"queue_limit"`
	// Recheck: who gets a slot looks in the cache once more before it
	// recomputes.
	Recheck bool `yaml:"recheck"`
	// Cancel: a caller who gives up takes its work along. What waits leaves the
	// queue, and what runs stops.
	Cancel bool `yaml:"cancel"`
	// Declared says whether the application declares Concurrency as its
	// budget to the exporter; default true.
	Declared bool `yaml:"declared"`
}

// What an origin does with work it has no slot for.
const (
	QueueFIFO = "fifo" // oldest first
	QueueLIFO = "lifo" // youngest first
	QueueShed = "shed" // refuse what exceeds QueueLimit or whose caller has gone
)

// Cache is one cache in front of one origin, shared by the fleet.
type Cache struct {
	Origin    string        `yaml:"origin"`
	TTL       time.Duration `yaml:"ttl"` // 10 ms or more
	Jitter    Jitter        `yaml:"jitter"`
	Sweep     Sweep         `yaml:"sweep"`
	Recompute Recompute     `yaml:"recompute"`
	Protect   Protections   `yaml:"protect"`
	// SingleFlight is for [ProtectSingleFlight].
	SingleFlight SingleFlight `yaml:"singleflight"`
	XFetch       XFetch       `yaml:"xfetch"`
	// RefreshAhead is for [ProtectRefreshAhead].
	RefreshAhead RefreshAhead `yaml:"refresh_ahead"`
	Lock         Lock         `yaml:"lock"`
	Lease        Lease        `yaml:"lease"`
	// StaleGrace is how long past its expiry a value may be served.
	StaleGrace time.Duration `yaml:"stale_grace"`
	Client     Client        `yaml:"client"`
	// Negative is the share of keys the origin does not have, 0 to 1.
	Negative float64 `yaml:"negative"`
	// Declared says whether the application tells the exporter how it uses the
	// cache: protection, timeouts, beta and the like; default true.
	Declared bool `yaml:"declared"`
	// Versioned says whether the application tells the version of what it
	// stores, which is when the recompute that made it began; default false.
	Versioned bool `yaml:"versioned"`
}

// Jitter spreads the times to live of stored values.
type Jitter struct {
	Spread time.Duration `yaml:"spread"`
	Shape  string        `yaml:"shape"` // [JitterAdditive] (default) or [JitterSymmetric]
}

// Shapes of a jitter; both uniform.
const (
	JitterAdditive  = "additive"  // over [0, spread)
	JitterSymmetric = "symmetric" // over (-spread, +spread)
)

// Sweep is how values vanish: those past their time to live stay, and are served
// as if fresh, until the cache is next swept. The application is told when.
type Sweep struct {
	Every time.Duration `yaml:"every"` // 0: values vanish when their time is over
	Phase time.Duration `yaml:"phase"` // of the first sweep, below Every
}

// SingleFlight lets one reader per instance and key recompute, and others wait.
type SingleFlight struct {
	// Waiters is how many may wait for one recompute. Who comes after them
	// recomputes as well; 0 is no bound.
	Waiters int `yaml:"waiters"`
}

// Recompute is how long one takes once it runs: Fixed, or lognormal with the
// given median and 99th percentile.
type Recompute struct {
	Fixed time.Duration `yaml:"fixed"`
	P50   time.Duration `yaml:"p50"`
	P99   time.Duration `yaml:"p99"`
}

// XFetch is probabilistic early expiration.
type XFetch struct {
	Beta  float64       `yaml:"beta"`  // default 1
	Clamp time.Duration `yaml:"clamp"` // bound on the recompute time acted on; 0 is none
}

// RefreshAhead refreshes a value that is read late in its life, in the
// background, once per instance at a time.
type RefreshAhead struct {
	Ratio float64 `yaml:"ratio"` // the last part of its life, above 0 to 1; default 0.2
}

// Lock guards recomputes of one key in the whole fleet.
type Lock struct {
	TTL    time.Duration `yaml:"ttl"`    // default 5 s
	Wait   string        `yaml:"wait"`   // what others do; default [WaitBlock]
	Fenced bool          `yaml:"fenced"` // who lost the lock does not write
	// Recheck: who waits looks in the cache again, and is served as soon as
	// there is a value; default true. Else all take the lock, one after another.
	Recheck bool `yaml:"recheck"`
	// Release says when a holder that is done gives the lock back; default
	// [ReleaseAlways]. One that is not given back lasts for TTL, though its
	// holder believes it is free.
	Release string `yaml:"release"`
}

// When a holder that is done gives back its lock.
const (
	ReleaseAlways    = "always"     // however it ended
	ReleaseOnSuccess = "on_success" // if it stored a value: a fill that failed or was cancelled leaves its lock
	ReleaseNever     = "never"      // it leaves it
)

// What readers do who do not get the lock.
const (
	WaitBlock    = "block"     // wait until it is free
	WaitStale    = "stale"     // take the old value if it may be served, else wait
	WaitNotFound = "not_found" // do without
)

// Lease hands out the right to recompute a key at a bounded rate. Who has none
// takes the old value if it may be served, else waits.
type Lease struct {
	Every time.Duration `yaml:"every"` // default 10 s
}

// Client is how recomputes call the origin.
type Client struct {
	Timeout  time.Duration `yaml:"timeout"`  // of one attempt, and of a wait for somebody else; default 5 s
	Attempts int           `yaml:"attempts"` // the first included, 1 to 100; default 1
	Backoff  time.Duration `yaml:"backoff"`  // before the second, doubled each time, times 0.5 to 1.5; default 100 ms
	FillLate bool          `yaml:"fill_late"`
	// DeleteOnError: an attempt that failed, or timed out, deletes the key.
	DeleteOnError bool `yaml:"delete_on_error"`
	// CacheErrors: a request that failed stores its failure in place of the
	// value, and readers get that for so long; 0: it stores nothing.
	CacheErrors time.Duration `yaml:"cache_errors"`
	// Hedge: a call that has no answer after so long is sent once more, and the
	// first answer counts; the other call is cancelled. 0: never.
	Hedge time.Duration `yaml:"hedge"`
}

// Workload reads keys of one cache.
type Workload struct {
	Cache string  `yaml:"cache"`
	Keys  int     `yaml:"keys"`  // how many, 1 to 5 million; default 1
	First int     `yaml:"first"` // the number of the first; key n of cache c is called "c:n"
	Zipf  float64 `yaml:"zipf"`  // key i is read in proportion to 1/(i+1)^zipf; 0 is uniform
	Rate  float64 `yaml:"rate"`  // reads per second of the whole fleet
	// Arrivals is how reads are spaced: [ArrivalsPoisson] (default),
	// [ArrivalsEven] or [ArrivalsBurst].
	Arrivals string `yaml:"arrivals"`
	Size     int    `yaml:"size"` // reads of one burst; default 10
}

// How reads are spaced.
const (
	ArrivalsPoisson = "poisson"
	ArrivalsEven    = "even"
	ArrivalsBurst   = "burst" // Size at one instant, by one instance; bursts are Poisson
)

// Expectation is a finding that must come.
type Expectation struct {
	Detector string `yaml:"detector"` // see [DetectorNames]
	Cache    string `yaml:"cache"`
	Key      string `yaml:"key"`      // as it is read, such as "feed:0"; empty: any
	Severity string `yaml:"severity"` // at least this; default info
	// Priority of the page, at most this: 1 or 2. 0: any.
	Priority int `yaml:"priority"`
	// Within is how long after the true onset it may come. 0: until the end.
	Within time.Duration `yaml:"within"`
	// After: onsets, and findings, before this do not count.
	After time.Duration `yaml:"after"`
}

// Forbid is what must not be found.
type Forbid struct {
	Pages     bool     // no page at all
	Detectors []string // none of these, at any severity above info
}

// Figure is what a figure of the truth must be: Mean, give or take Tolerance as
// a share of it (of 1, if Mean is 0), or Min to Max.
type Figure struct {
	Mean      *float64 `yaml:"mean"`
	Tolerance float64  `yaml:"tolerance"`
	Min       *float64 `yaml:"min"`
	Max       *float64 `yaml:"max"`
}
