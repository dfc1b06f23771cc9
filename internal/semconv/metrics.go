package semconv

import "strings"

// Kind is what a metric is.
type Kind string

// Kinds of metric.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric is one metric's definition.
type Metric struct {
	Name   string   // Prometheus name
	Kind   Kind     //
	Unit   string   // UCUM, as OpenTelemetry writes it
	Labels []string // in the order they are given
	Help   string   // one sentence
}

// OTel returns the OpenTelemetry name: dotted, with neither unit nor _total.
func (m Metric) OTel() string {
	n := strings.TrimSuffix(strings.TrimSuffix(m.Name, "_total"), "_seconds")
	n = strings.Replace(n, "stampede_", "stampede.", 1)
	return n
}

// Label names.
const (
	LabelCache     = "cache"
	LabelKeyGroup  = "key_group"
	LabelResult    = "result"
	LabelCause     = "cause"
	LabelOutcome   = "outcome"
	LabelOrigin    = "origin"
	LabelService   = "service"
	LabelDetector  = "detector"
	LabelSeverity  = "severity"
	LabelTransport = "transport"
	LabelReason    = "reason"
	LabelNotifier  = "notifier"
	LabelProbe     = "probe"
	LabelTarget    = "target"
	LabelWithin    = "within"
)

// OtherGroup is the key group of keys beyond the bound on groups.
const OtherGroup = "other"

var perGroup = []string{LabelCache, LabelKeyGroup}

func with(l []string, more ...string) []string { return append(append([]string(nil), l...), more...) }

// Metrics of an instrumented application (instrument/prom).
var (
	Lookups = Metric{"stampede_lookups_total", Counter, "{lookup}", with(perGroup, LabelResult),
		"Reads by result: hit, miss, stale (an old value served on purpose) or error."}
	MissConcurrency = Metric{"stampede_miss_concurrency", Gauge, "{reader}", perGroup,
		"Readers of one key between their miss and having a value, now; the worst key of the group."}
	MissConcurrencyPeak = Metric{"stampede_miss_concurrency_peak", Gauge, "{reader}", perGroup,
		"Most readers of one key waiting at one instant in the last 20 to 30 seconds, in fixed 10 s windows that no scrape resets."}
	InFlight = Metric{"stampede_recomputes_in_flight", Gauge, "{recompute}", perGroup,
		"Recomputes of one key running now; the worst key of the group."}
	InFlightPeak = Metric{"stampede_recomputes_in_flight_peak", Gauge, "{recompute}", perGroup,
		"Most recomputes of one key running at one instant in the last 20 to 30 seconds, in fixed 10 s windows that no scrape resets."}
	RecomputesStarted = Metric{"stampede_recomputes_started_total", Counter, "{recompute}", with(perGroup, LabelCause),
		"Recomputes that started, by cause."}
	Recomputes = Metric{"stampede_recomputes_total", Counter, "{recompute}", with(perGroup, LabelCause, LabelOutcome),
		"Recomputes that ended, by cause and outcome."}
	Duplicates = Metric{"stampede_duplicate_recomputes_total", Counter, "{recompute}", perGroup,
		"Recomputes whose work was wasted, within this process: another of the same key was running, or a fresh value was there."}
	WhileFresh = Metric{"stampede_recompute_started_while_fresh_total", Counter, "{recompute}", perGroup,
		"Recomputes that started although a value stored after their own lookup was fresh."}
	Coalesced = Metric{"stampede_coalesced_total", Counter, "{caller}", perGroup,
		"Callers that waited for somebody else's recompute: followers only, work spared."}
	RecomputeDuration = Metric{"stampede_recompute_duration_seconds", Histogram, "s", perGroup,
		"How long recomputes took."}
	EarlyRefreshes = Metric{"stampede_early_refreshes_total", Counter, "{refresh}", perGroup,
		"Refreshes that ran before their value expired: XFetch, refresh-ahead."}
	EarlyLead = Metric{"stampede_early_refresh_lead_seconds", Histogram, "s", perGroup,
		"How long before expiry early refreshes ran."}
	LockAttempts = Metric{"stampede_lock_attempts_total", Counter, "{attempt}", with(perGroup, LabelResult),
		"Attempts to take the lock that guards a recompute: acquired or refused."}
	LockWait = Metric{"stampede_lock_wait_seconds", Histogram, "s", perGroup,
		"How long callers waited for the lock that guards a recompute."}
	LockHold = Metric{"stampede_lock_hold_seconds", Histogram, "s", perGroup,
		"How long the lock that guards a recompute was held."}
	LocksLost = Metric{"stampede_locks_lost_total", Counter, "{lock}", perGroup,
		"Locks that expired, or were somebody else's, before their holder released them."}
	Stores = Metric{"stampede_stores_total", Counter, "{store}", perGroup,
		"Values written to the cache."}
	StoreTTL = Metric{"stampede_store_ttl_seconds", Histogram, "s", perGroup,
		"Time to live that values were written with."}
	Invalidations = Metric{"stampede_invalidations_total", Counter, "{invalidation}", perGroup,
		"Keys deleted on purpose."}
	OriginRequests = Metric{"stampede_origin_requests_total", Counter, "{request}", []string{LabelCache},
		"Logical requests to the origin: first attempts."}
	OriginAttempts = Metric{"stampede_origin_attempts_total", Counter, "{attempt}", []string{LabelCache},
		"Attempts on the origin, the first included."}
	TrackedKeys = Metric{"stampede_tracked_keys", Gauge, "{key}", []string{LabelCache},
		"Keys the monitor tracks now."}
	OverflowedEvents = Metric{"stampede_overflowed_events_total", Counter, "{event}", []string{LabelCache},
		"Events on keys the bounded table had no room for; they count for the cache, not for a key."}
	DroppedRecords = Metric{"stampede_dropped_records_total", Counter, "{record}", []string{LabelCache},
		"Windows and vitals that could not be sent to an exporter."}
)

// Metrics of the exporter itself (cmd/stampede-exporter, its /metrics).
var (
	Incidents = Metric{"stampede_incidents", Gauge, "{incident}", []string{LabelDetector, LabelService, LabelCache, LabelSeverity},
		"Incidents open now."}
	IncidentsOpened = Metric{"stampede_incidents_opened_total", Counter, "{incident}", []string{LabelDetector, LabelService, LabelCache, LabelSeverity},
		"Incidents opened since the exporter started."}
	FleetInFlightPeak = Metric{"stampede_fleet_recomputes_in_flight_peak", Gauge, "{recompute}", []string{LabelCache},
		"Most recomputes of one key running at one instant across the fleet in the last 20 to 30 seconds (proven lower bound)."}
	FleetMissPeak = Metric{"stampede_fleet_miss_concurrency_peak", Gauge, "{reader}", []string{LabelCache},
		"Most readers of one key waiting at one instant across the fleet in the last 20 to 30 seconds (sum of each process's worst)."}
	FleetRecomputes = Metric{"stampede_fleet_recomputes_total", Counter, "{recompute}", []string{LabelCache},
		"Recomputes provoked by a miss, across the fleet."}
	FleetDuplicates = Metric{"stampede_fleet_duplicate_recomputes_total", Counter, "{recompute}", []string{LabelCache},
		"Recomputes that served nobody, across the fleet: all of a burst but one."}
	FleetEarly = Metric{"stampede_fleet_early_recomputes_total", Counter, "{recompute}", []string{LabelCache},
		"Recomputes that ran ahead of expiry, across the fleet: XFetch, refresh-ahead."}
	FleetWasted = Metric{"stampede_fleet_wasted_origin_seconds_total", Counter, "s", []string{LabelCache},
		"Origin time spent on duplicate recomputes, across the fleet."}
	FleetBusy = Metric{"stampede_fleet_recompute_seconds_total", Counter, "s", []string{LabelCache},
		"Origin time spent on recomputes, across the fleet."}
	OriginBudget = Metric{"stampede_origin_budget", Gauge, "{recompute}", []string{LabelOrigin},
		"Recomputes the origin can run at once, as declared."}
	OriginUse = Metric{"stampede_origin_budget_use_ratio", Gauge, "1", []string{LabelOrigin},
		"Most recomputes of one key running at one instant in the last 20 to 30 seconds over the origin's budget."}
	OriginLoad = Metric{"stampede_origin_load", Gauge, "{lookup}/s", []string{LabelOrigin},
		"Reads per second by users of the origin's caches in the last ten seconds, those of retries left out."}
	OriginHitRatio = Metric{"stampede_origin_hit_ratio", Gauge, "1", []string{LabelOrigin},
		"Share of those reads that the caches answered."}
	OriginSaturation = Metric{"stampede_origin_saturation_ratio", Gauge, "1", []string{LabelOrigin},
		"Recomputes that ran or waited in the last ten seconds, on average, over the origin's budget."}
	OriginAmplification = Metric{"stampede_origin_amplification_ratio", Gauge, "1", []string{LabelOrigin},
		"Attempts on the origin for each first one in the last ten seconds."}
	OriginGoodput = Metric{"stampede_origin_goodput_ratio", Gauge, "1", []string{LabelOrigin},
		"Share of reads by users of the origin's caches that got an answer in the last ten seconds."}
	OriginCeiling = Metric{"stampede_origin_ceiling", Gauge, "{recompute}/s", []string{LabelOrigin},
		"Recomputes per second the origin can do: its budget over the usual time of a recompute."}
	OriginDemand = Metric{"stampede_origin_demand_ratio", Gauge, "1", []string{LabelOrigin},
		"Recomputes per second that misses asked for in the last minute, over the origin's ceiling; retries left out."}
	OriginCounterfactual = Metric{"stampede_origin_counterfactual_ratio", Gauge, "1", []string{LabelOrigin},
		"Share of the origin's ceiling that the load of the last ten seconds would take with a cache as warm as usual and no retries."}
	OriginBacklogAhead = Metric{"stampede_origin_expiry_backlog_seconds", Gauge, "s", []string{LabelOrigin},
		"Work of the origin that will have piled up at the worst moment of the expiries of the next hour."}
	ExpiringKeys = Metric{"stampede_expiring_keys", Gauge, "{key}", []string{LabelCache, LabelWithin},
		"Values that are to expire within that time, as far as reported."}
	InstancesReporting = Metric{"stampede_instances_reporting", Gauge, "{instance}", []string{LabelCache},
		"Instances that reported within the last five seconds."}
	ProbesReporting = Metric{"stampede_probes_reporting", Gauge, "{probe}", []string{LabelCache},
		"Probes of single servers of the cache that reported within the last five seconds. They are not instances."}
	ExpirySampleWeight = Metric{"stampede_expiry_sample_weight", Gauge, "{key}", []string{LabelCache},
		"Keys that one whose expiry a probe looked at stands for, at most: 1 if it looked at all of them. A count of n expiring keys is certain to within 1.96 * sqrt((weight - 1) * n), at 95 %."}
	HotKeyShare = Metric{"stampede_hot_key_share_ratio", Gauge, "1", []string{LabelCache, LabelKeyGroup},
		"Share of a cache server's use that the most used key of the group has, as the server estimates it."}
	InstancesSilent = Metric{"stampede_instances_silent", Gauge, "{instance}", []string{LabelCache},
		"Instances that stopped reporting without saying goodbye and are still remembered."}
	WindowsReceived = Metric{"stampede_exporter_windows_received_total", Counter, "{window}", []string{LabelTransport},
		"Windows accepted."}
	VitalsReceived = Metric{"stampede_exporter_vitals_received_total", Counter, "{record}", []string{LabelTransport},
		"Vitals accepted."}
	RecordsRejected = Metric{"stampede_exporter_records_rejected_total", Counter, "{record}", []string{LabelTransport, LabelReason},
		"Records or whole requests refused."}
	LateWindows = Metric{"stampede_exporter_late_windows_total", Counter, "{window}", nil,
		"Windows that arrived after their episode was final; they improve evidence and never page."}
	ClockOffset = Metric{"stampede_exporter_clock_offset_max_seconds", Gauge, "s", nil,
		"Largest clock offset measured on a reporting instance."}
	TickDuration = Metric{"stampede_exporter_tick_duration_seconds", Histogram, "s", nil,
		"How long one look at the fleet took, detectors included."}
	DetectorPanics = Metric{"stampede_exporter_detector_panics_total", Counter, "{panic}", []string{LabelDetector},
		"Ticks a detector failed to look at because it panicked."}
	FleetKeys = Metric{"stampede_exporter_keys", Gauge, "{key}", nil,
		"Keys with an episode in memory."}
	UnusedWindows = Metric{"stampede_exporter_unused_windows_total", Counter, "{window}", []string{LabelReason},
		"Windows accepted but not used: from too far in the future or the past, or received before."}
	FleetOverflowed = Metric{"stampede_exporter_overflowed_windows_total", Counter, "{window}", nil,
		"Windows on keys the exporter had no room for."}
	IncidentsOverflowed = Metric{"stampede_exporter_overflowed_findings_total", Counter, "{finding}", nil,
		"Findings that opened no incident because too many were open."}
	StateSaves = Metric{"stampede_exporter_state_saves_total", Counter, "{save}", []string{LabelOutcome},
		"Writes of the state file, by outcome: ok or failed."}
	Notifications = Metric{"stampede_exporter_notifications_total", Counter, "{notification}", []string{LabelNotifier, LabelOutcome},
		"Notifications sent, by outcome: ok or failed."}
	ConfigReload = Metric{"stampede_exporter_config_last_reload_successful", Gauge, "1", nil,
		"1 if the last reading of the configuration succeeded."}
	ConfigReloadTime = Metric{"stampede_exporter_config_last_reload_success_timestamp_seconds", Gauge, "s", nil,
		"When the configuration was last read with success."}
	ProbeSuccess = Metric{"stampede_probe_success", Gauge, "1", []string{LabelProbe, LabelTarget},
		"1 if the last run of the probe succeeded."}
	ProbeDuration = Metric{"stampede_probe_duration_seconds", Histogram, "s", []string{LabelProbe, LabelTarget},
		"How long runs of the probe took."}
	ProbeFailures = Metric{"stampede_probe_failures_total", Counter, "{run}", []string{LabelProbe, LabelTarget, LabelReason},
		"Runs of the probe that failed: error, timeout or panic."}
	ProbeGaps = Metric{"stampede_probe_gaps_total", Counter, "{gap}", []string{LabelProbe, LabelTarget},
		"Stretches of time in which the probe could not see: what happened then is unknown."}
	ProbeSkipped = Metric{"stampede_probe_skipped_total", Counter, "{event}", []string{LabelProbe, LabelTarget},
		"Events the probe left out because they were more than its budget allows."}
	ProbeLimits = Metric{"stampede_probe_limits", Gauge, "{limit}", []string{LabelProbe, LabelTarget},
		"Things that keep the probe from seeing all it could; its page and the log name them."}
	ServerLookups = Metric{"stampede_server_lookups_total", Counter, "{lookup}", []string{LabelCache, LabelResult},
		"Reads by result, as the cache server counts them."}
	ServerExpired = Metric{"stampede_server_expired_keys_total", Counter, "{key}", []string{LabelCache},
		"Keys the cache server dropped at their expiry."}
	ServerEvicted = Metric{"stampede_server_evicted_keys_total", Counter, "{key}", []string{LabelCache},
		"Keys the cache server dropped for want of memory."}
	ServerFlushes = Metric{"stampede_server_flushes_total", Counter, "{command}", []string{LabelCache},
		"Commands that dropped all keys of the cache server, or of a database of it."}
	ServerSets = Metric{"stampede_server_sets_total", Counter, "{command}", []string{LabelCache},
		"Commands that store one value, as the cache server counts them, refused ones (SET NX on a key that is there) included."}
	ServerBlocked = Metric{"stampede_server_blocked_clients", Gauge, "{client}", []string{LabelCache},
		"Clients that wait in a blocking command on the cache server."}
	ServerKeys = Metric{"stampede_server_keys", Gauge, "{key}", []string{LabelCache},
		"Keys the cache server holds."}
)

// Application lists what an instrumented application exports.
func Application() []Metric {
	return []Metric{Lookups, MissConcurrency, MissConcurrencyPeak, InFlight, InFlightPeak, RecomputesStarted, Recomputes,
		Duplicates, WhileFresh, Coalesced, RecomputeDuration, EarlyRefreshes, EarlyLead, LockAttempts, LockWait, LockHold,
		LocksLost, Stores, StoreTTL, Invalidations, OriginRequests, OriginAttempts, TrackedKeys, OverflowedEvents, DroppedRecords}
}

// Exporter lists what the exporter exports of the fleet and of itself.
func Exporter() []Metric {
	return []Metric{Incidents, IncidentsOpened, FleetInFlightPeak, FleetMissPeak, FleetRecomputes, FleetDuplicates, FleetEarly, FleetWasted,
		FleetBusy, OriginBudget, OriginUse, OriginLoad, OriginHitRatio, OriginSaturation, OriginAmplification, OriginGoodput,
		OriginCeiling, OriginDemand, OriginCounterfactual, OriginBacklogAhead, ExpiringKeys, InstancesReporting, InstancesSilent, ProbesReporting, ExpirySampleWeight, HotKeyShare, WindowsReceived, VitalsReceived, RecordsRejected,
		LateWindows, ClockOffset, TickDuration, DetectorPanics, FleetKeys, UnusedWindows, FleetOverflowed,
		IncidentsOverflowed, StateSaves, Notifications, ConfigReload, ConfigReloadTime,
		ProbeSuccess, ProbeDuration, ProbeFailures, ProbeGaps, ProbeSkipped, ProbeLimits, ServerLookups, ServerExpired, ServerEvicted,
		ServerFlushes, ServerSets, ServerBlocked, ServerKeys}
}
