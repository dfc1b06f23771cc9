package sim

import "time"

// Figures returns what the run came to, by the names of
// [scenario.TruthNames], so far as it can tell by itself: whether it was
// metastable takes another run. A figure that nothing contributed to is absent.
func (s *Sim) Figures() map[string]float64 {
	a, b := &s.account, &s.account.bursts
	busy := time.Duration(0)
	for _, o := range s.origins {
		busy += o.busy
		if o.running > 0 {
			busy += time.Duration(s.now - o.since)
		}
	}
	refill := a.longestRefill
	for _, c := range s.caches {
		if c.missing > 0 {
			refill = max(refill, time.Duration(s.now-c.since))
		}
	}
	reads, good := a.goodBetween(0, s.end)
	f := map[string]float64{
		"reads": float64(reads), "misses": float64(a.misses), "stale_served": float64(a.stale),
		"attempts": float64(a.attempts), "recomputes": float64(b.starts), "early": float64(a.earlyStarts),
		"bursts": float64(b.n), "duplicates": float64(b.duplicates),
		"recomputes_per_cycle_max": float64(b.most), "peak_concurrency": float64(b.peak),
		"queue_peak": float64(a.queuePeak), "parked_peak": float64(a.parkedPeak), "parked_at_release": float64(a.parkedAtRelease),
		"refused": float64(a.refusals), "late_fills": float64(a.late), "negative": float64(a.absences),
		"locks_lost": float64(a.lost), "stale_writes": float64(a.staleWrites),
		"wasted_seconds": b.wasted.Seconds(), "origin_busy_seconds": busy.Seconds(),
		"refill_seconds": refill.Seconds(), "wait_max_seconds": a.longestWait.Seconds(),
		"lead_max_seconds": a.longestLead.Seconds(),
	}
	ratio(f, "hit_ratio", float64(a.hits), float64(a.hits+a.misses+a.stale))
	ratio(f, "goodput", float64(good), float64(reads))
	ratio(f, "attempts_per_request", float64(a.attempts), float64(a.first))
	ratio(f, "recomputes_per_cycle", float64(b.starts), float64(b.n))
	ratio(f, "starters_share_le_3", float64(b.few), float64(b.n))
	ratio(f, "expired_miss_share", float64(b.expired), float64(b.later))
	ratio(f, "mean_lead_seconds", a.leads.Seconds(), float64(a.earlyStarts))
	ratio(f, "deduplicated_share", float64(a.misses)-float64(a.first-a.earlyStarts), float64(a.misses))
	ratio(f, "coefficient", b.excess, b.exposure)
	if reads, good := a.goodBetween(s.lastTenth()); reads > 0 {
		f["goodput_end"] = float64(good) / float64(reads)
	}
	return f
}

// ratio sets a figure, if there is something to relate to.
func ratio(f map[string]float64, name string, part, whole float64) {
	if whole > 0 {
		f[name] = part / whole
	}
}

// lastTenth is the last tenth of the run whose reads had the time to be answered.
func (s *Sim) lastTenth() (from, to int64) {
	patience := time.Duration(0)
	for _, c := range s.caches {
		patience = max(patience, time.Duration(c.cfg.Client.Attempts)*(c.cfg.Client.Timeout+c.cfg.Client.Backoff))
	}
	to = max(0, s.end-int64(patience))
	return max(0, to-s.end/10), to
}

// goodBetween counts the reads that came in between, and those of them that had
// their answer in time.
func (a *account) goodBetween(from, to int64) (reads, good uint64) {
	const second = int64(time.Second)
	for i := from / second; i < min((to+second-1)/second, int64(len(a.perSecond))); i++ {
		reads += uint64(a.perSecond[i].reads)
		good += uint64(a.perSecond[i].good)
	}
	return reads, good
}
