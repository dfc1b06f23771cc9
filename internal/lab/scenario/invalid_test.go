package scenario_test

// invalid says what is wrong with each of testdata/invalid-*.yml.
var invalid = map[string]string{
	"cache-of-workload":     `:8: workloads.0.cache: "fed" is not one of caches`,
	"detector":              `:10: expect.0.detector: "hot-key" is not known: want one of budget-exceeded, coalescing-bypass, delta-poisoning, early-refresh-excess, early-refresh-ineffective, expiry-forecast, hot-key-expiry, lock-convoy, lock-lost, mass-invalidation, metastable-loop, orphaned-lock, overload, penetration, process-local-coalescing, retry-storm, stale-overwrite, synchronized-expiry, underdosed-jitter, vulnerable`,
	"duration-out-of-range": `:2: duration: 1ms is out of range: want 1s to 768h0m0s`,
	"duration-without-unit": `:6: caches.feed.ttl: "60" is not a duration: want a number with a unit, such as 500ms, 30s or 5m`,
	"event":                 `:10: events.0.do: "explode" is not known: want one of counter_reset, deploy, drop_reports, evict, fail, flush, invalidate, kill_holder, load, node_loss, restart, shed, slow, warm`,
	"event-field-missing":   `:10: events.0.share: is missing: evict needs it`,
	"event-field-unused":    `:10: events.0.factor: means nothing to flush`,
	"event-key":             `:10: events.0.key: "feed:1" is not read: want the name of a cache, a colon and the number of a key that a workload reads, such as "feed:0"`,
	"event-too-late":        `:10: events.0.at: 2m0s is out of range: want 0s to 1m0s`,
	"forbid":                `:9: forbid: want a list of detectors, or the word pages`,
	"forbid-detector":       `:9: forbid.1: "nonsense" is not known: want one of budget-exceeded, coalescing-bypass, delta-poisoning, early-refresh-excess, early-refresh-ineffective, expiry-forecast, hot-key-expiry, lock-convoy, lock-lost, mass-invalidation, metastable-loop, orphaned-lock, overload, penetration, process-local-coalescing, retry-storm, stale-overwrite, synchronized-expiry, underdosed-jitter, vulnerable`,
	"fraction":              `:8: workloads.0.keys: 1.5 is a fraction: want a whole number`,
	"jitter":                `:6: caches.feed.jitter.spread: 1m0s would make values that are expired when written: want less than ttl (1m0s)`,
	"list":                  `:1: a list is not a group of fields`,
	"lock-and-lease":        `:6: caches.feed.protect: has both lock and lease: want one of them`,
	"name":                  `:1: name: "a b" is not a name: want 1 to 64 letters, digits, dots, dashes and underscores`,
	"number-not-finite":     `:8: workloads.0.rate: NaN is out of range: want 0.0001 to 1e+06`,
	"origin-of-cache":       `:6: caches.feed.origin: "database" is not one of origins`,
	"percentiles":           `:6: caches.feed.recompute.p99: 400ms is out of range: want 1s to 1h0m0s`,
	"protection":            `:6: protect: "mutex" is not known: want none, or one or a list of singleflight, xfetch, refresh_ahead, lock, lease, swr`,
	"queue":                 `:4: origins.db.queue: "random" is not known: want one of fifo, lifo, shed`,
	"recompute-missing":     `:6: caches.feed.recompute: is missing: want fixed, or p50 and p99`,
	"recompute-twice":       `:6: caches.feed.recompute: has both fixed and p50 or p99: want fixed, or p50 and p99`,
	"several": `:2: duration: 0s is out of range: want 1s to 768h0m0s
:8: workloads.0.rate: 0 is out of range: want 0.0001 to 1e+06`,
	"severity":          `:10: expect.0.severity: "alarm" is not known: want one of info, ticket, page`,
	"swr-without-grace": `:6: caches.feed.stale_grace: is zero, so swr has nothing to serve: want how long an old value may be served`,
	"syntax":            `:2: could not find expected ':'`,
	"truth-figure":      `:10: truth.attempts: want mean and tolerance, or min, max or both`,
	"truth-name":        `:10: truth.recompute_per_cycle: "recompute_per_cycle" is not known: want one of attempts, attempts_per_request, bursts, coefficient, deduplicated_share, duplicates, early, expired_miss_share, goodput, goodput_end, hit_ratio, late_fills, lead_max_seconds, locks_lost, mean_lead_seconds, metastable, misses, negative, origin_busy_seconds, parked_at_release, parked_peak, peak_concurrency, queue_peak, reads, recomputes, recomputes_per_cycle, recomputes_per_cycle_max, refill_seconds, refused, stale_served, stale_writes, starters_share_le_3, wait_max_seconds, wasted_seconds`,
	"two-documents":     `: a second document follows: want one`,
	"unknown-field":     `:4: origins.db.concurency: unknown field`,
	"unknown-section":   `:9: fleets: unknown field`,
	"without-sections": `:1: origins: is missing or empty: want at least one
:1: caches: is missing or empty: want at least one
:1: workloads: is missing or empty: want at least one`,
}
