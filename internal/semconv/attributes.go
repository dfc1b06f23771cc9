package semconv

// Scope is the OpenTelemetry instrumentation scope of everything sent.
const Scope = "github.com/stampede-exporter/stampede-exporter/instrument"

// Resource attributes, from OpenTelemetry's own conventions.
const (
	ServiceName       = "service.name"
	ServiceInstanceID = "service.instance.id"
	ServiceVersion    = "service.version"
)

// Events: the names of OTLP log records.
const (
	EventWindow = "stampede.window"
	EventVitals = "stampede.vitals"
)

// Attributes of both events.
const (
	AttrCache = "cache.name" // string
)

// Attributes of stampede.window. Absent means zero, except where the window's
// stampede.unknown says the source could not see it.
const (
	AttrKeyID      = "stampede.key.id"     // string: 16 hexadecimal digits
	AttrKeyGroup   = "stampede.key.group"  // string
	AttrKeyText    = "stampede.key.text"   // bytes, opt-in
	AttrGeneration = "stampede.generation" // string
	AttrStart      = "stampede.start"      // int, Unix nanoseconds
	AttrEnd        = "stampede.end"        // int, Unix nanoseconds
	AttrUnknown    = "stampede.unknown"    // int, bits of signal.Unknown

	AttrHits   = "stampede.lookups.hits"
	AttrMisses = "stampede.lookups.misses"
	AttrStale  = "stampede.lookups.stale"
	AttrErrors = "stampede.lookups.errors"

	AttrMissPeak     = "stampede.miss.peak"
	AttrInFlightPeak = "stampede.recompute.in_flight.peak"
	// AttrStarted and AttrEnded are prefixes: ".<cause>" follows the first,
	// ".<cause>.<outcome>" the second.
	AttrStarted    = "stampede.recompute.started"
	AttrEnded      = "stampede.recompute.ended"
	AttrDuplicates = "stampede.recompute.duplicates"
	AttrWhileFresh = "stampede.recompute.while_fresh"
	AttrCoalesced  = "stampede.coalesced"
	AttrBusy       = "stampede.recompute.busy.sum"  // int, ns
	AttrBusyMax    = "stampede.recompute.busy.max"  // int, ns
	AttrIntervals  = "stampede.recompute.intervals" // bytes; docs/wire.md
	AttrSampled    = "stampede.recompute.sampled"   // bool

	AttrStores         = "stampede.stores.count"
	AttrStoresNoExpiry = "stampede.stores.no_expiry"
	AttrExpiryMin      = "stampede.stores.expiry.min" // int, Unix nanoseconds
	AttrExpiryMax      = "stampede.stores.expiry.max" // int, Unix nanoseconds
	AttrTTLMin         = "stampede.stores.ttl.min"    // int, ns
	AttrTTLMax         = "stampede.stores.ttl.max"    // int, ns
	AttrStoresStale    = "stampede.stores.stale"
	AttrVersionOldest  = "stampede.stores.version.oldest"
	AttrVersionOldAt   = "stampede.stores.version.oldest_at" // int, Unix nanoseconds
	AttrVersionNewest  = "stampede.stores.version.newest"
	AttrVersionNewAt   = "stampede.stores.version.newest_at" // int, Unix nanoseconds
	AttrInvalidations  = "stampede.invalidations.count"
	AttrInvalidatedAt  = "stampede.invalidations.last" // int, Unix nanoseconds

	AttrEarly         = "stampede.early.count"
	AttrEarlyLeadSum  = "stampede.early.lead.sum"  // int, ns
	AttrEarlyLeadMax  = "stampede.early.lead.max"  // int, ns
	AttrEarlyDeltaMax = "stampede.early.delta.max" // int, ns

	AttrLockAttempts = "stampede.lock.attempts"
	AttrLockAcquired = "stampede.lock.acquired"
	AttrLockWaits    = "stampede.lock.waits"
	AttrLockWaitSum  = "stampede.lock.wait.sum" // int, ns
	AttrLockWaitMax  = "stampede.lock.wait.max" // int, ns
	AttrLockWaitPeak = "stampede.lock.wait.peak"
	AttrLockHolds    = "stampede.lock.holds"
	AttrLockHoldSum  = "stampede.lock.hold.sum" // int, ns
	AttrLockHoldMax  = "stampede.lock.hold.max" // int, ns
	AttrLockLost     = "stampede.lock.lost"
	AttrLockWaiting  = "stampede.lock.waiting"
	AttrLockHeld     = "stampede.lock.held"
	AttrLockSince    = "stampede.lock.held.since" // int, Unix nanoseconds

	AttrRequests = "stampede.origin.requests"
	AttrAttempts = "stampede.origin.attempts"

	AttrShares = "stampede.shares" // string, JSON; in merged windows only, docs/wire.md
)

// Attributes of stampede.vitals; lookups as above, but cumulative.
const (
	AttrAt           = "stampede.at"                  // int, Unix nanoseconds
	AttrUptime       = "stampede.uptime"              // int, ns
	AttrDurations    = "stampede.recompute.durations" // bytes; docs/wire.md
	AttrExpiries     = "stampede.expiries"            // bytes; docs/wire.md
	AttrExpirySample = "stampede.expiries.sampled"
	AttrExpiryOf     = "stampede.expiries.population"
	AttrExpiryWeight = "stampede.expiries.weight" // double
	AttrHotKeys      = "stampede.keys.hot"        // string, JSON; docs/wire.md
	AttrFlushes      = "stampede.server.flushes"
	AttrSets         = "stampede.server.sets"
	AttrBlocked      = "stampede.server.blocked"
	AttrServerKeys   = "stampede.server.keys"
	AttrProbe        = "stampede.probe"       // bool
	AttrProbeWatch   = "stampede.probe.watch" // bool
	AttrRunning      = "stampede.recompute.running"
	AttrWaiting      = "stampede.miss.waiting"
	AttrTracked      = "stampede.keys.tracked"
	AttrOverflowed   = "stampede.keys.overflowed"
	AttrDropped      = "stampede.records.dropped"
	AttrExpiredKeys  = "stampede.keys.expired"
	AttrEvictedKeys  = "stampede.keys.evicted"
	AttrOrigin       = "stampede.origin.name" // string
	AttrOriginBudget = "stampede.origin.budget"
	AttrOriginTakes  = "stampede.origin.recompute" // int, ns
	AttrClosing      = "stampede.closing"          // bool

	AttrProtection    = "stampede.claims.protection" // string, names with commas between
	AttrClaimTimeout  = "stampede.claims.timeout"    // int, ns
	AttrClaimAttempts = "stampede.claims.attempts"
	AttrClaimBeta     = "stampede.claims.beta"          // double
	AttrClaimAhead    = "stampede.claims.refresh_ahead" // double
	AttrClaimClamp    = "stampede.claims.clamp"         // int, ns
	AttrClaimLockTTL  = "stampede.claims.lock_ttl"      // int, ns
	AttrClaimStaleFor = "stampede.claims.stale_for"     // int, ns
)
