package scenario

// DetectorNames are all detectors a scenario may expect or forbid, in order.
func DetectorNames() []string {
	return []string{
		"budget-exceeded", "coalescing-bypass", "delta-poisoning", "early-refresh-excess", "early-refresh-ineffective",
		"expiry-forecast", "hot-key-expiry", "lock-convoy", "lock-lost", "mass-invalidation", "metastable-loop",
		"orphaned-lock", "overload", "penetration", "process-local-coalescing", "retry-storm", "stale-overwrite",
		"synchronized-expiry", "underdosed-jitter", "vulnerable",
	}
}

// SeverityNames are all severities, the least first.
func SeverityNames() []string { return []string{"info", "ticket", "page"} }

// TruthNames are all figures of the truth, in order. docs/scenarios.md says what
// each means.
func TruthNames() []string {
	return []string{
		"attempts", "attempts_failed", "attempts_per_read_end", "attempts_per_request", "attempts_per_request_end", "bursts", "coefficient",
		"counterfactual_utilisation", "deduplicated_share", "due_per_second", "duplicates", "early", "expired_miss_share",
		"failures_served", "goodput", "goodput_end", "hedges", "hit_ratio", "late_fills", "lead_max_seconds", "locks_left",
		"locks_lost", "mean_lead_seconds", "metastable", "misses", "negative", "origin_busy_seconds", "parked_at_release",
		"parked_peak", "peak_concurrency", "queue_peak", "reads", "recomputes", "recomputes_per_cycle",
		"recomputes_per_cycle_max", "refill_seconds", "refused", "requests_failed", "rollout_correlation", "stale_served",
		"stale_writes", "starters_share_le_3", "utilisation_end", "wait_max_seconds", "wasted_seconds",
	}
}
