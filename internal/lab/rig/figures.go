package rig

import "time"

// Rest is what figures are made of besides an account.
type Rest struct {
	End      int64         // of the run, nanoseconds since its start
	Patience time.Duration // how long a read may wait for its answer
	Busy     time.Duration // origins had anything to do, summed over them
	// Utilisation is the share of the busiest origin's slots that were in use
	// in the last tenth of the run; of origins without a bound it is 0.
	Utilisation float64
	Missing     time.Duration // for how long some key that readers found gone has not been back, at the end
}

// Figures returns what the run came to, by the names of
// [scenario.TruthNames], so far as it can tell by itself: whether it was
// metastable takes another run. A figure that nothing contributed to is absent.
func (a *Account) Figures(r Rest) map[string]float64 {
	b := &a.bursts
	reads, good := a.goodBetween(0, r.End)
	f := map[string]float64{
		"reads": float64(reads), "misses": float64(a.misses), "stale_served": float64(a.stale),
		"attempts": float64(a.attempts), "recomputes": float64(b.starts), "early": float64(a.earlyStarts),
		"bursts": float64(b.n), "duplicates": float64(b.duplicates),
		"recomputes_per_cycle_max": float64(b.most), "peak_concurrency": float64(b.peak),
		"queue_peak": float64(a.queuePeak), "parked_peak": float64(a.parkedPeak), "parked_at_release": float64(a.parkedAtRelease),
		"refused": float64(a.refusals), "late_fills": float64(a.late), "negative": float64(a.absences),
		"locks_lost": float64(a.lost), "stale_writes": float64(a.staleWrites),
		"wasted_seconds": b.wasted.Seconds(), "origin_busy_seconds": r.Busy.Seconds(),
		"refill_seconds": max(a.longestRefill, r.Missing).Seconds(), "wait_max_seconds": a.longestWait.Seconds(),
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
	a.calls.figures(f)
	if reads, good := a.goodBetween(r.LastTenth()); reads > 0 {
		f["goodput_end"] = float64(good) / float64(reads)
	}
	from, to := r.LastTenth()
	a.amplification(f, from, to)
	f["utilisation_end"] = r.Utilisation
	ratio(f, "due_per_second", a.due.n, (a.due.last - a.due.first).Seconds())
	if x, ok := b.rollout.correlation(); ok {
		f["rollout_correlation"] = x
	}
	return f
}

// ratio sets a figure, if there is something to relate to.
func ratio(f map[string]float64, name string, part, whole float64) {
	if whole > 0 {
		f[name] = part / whole
	}
}

// LastTenth is the last tenth of the run whose reads had the time to be answered.
func (r Rest) LastTenth() (from, to int64) {
	to = max(0, r.End-int64(r.Patience))
	return max(0, to-r.End/10), to
}

// goodBetween counts the reads that came in between, and those of them that had
// their answer in time.
func (a *Account) goodBetween(from, to int64) (reads, good uint64) {
	const second = int64(time.Second)
	for i := from / second; i < min((to+second-1)/second, int64(len(a.perSecond))); i++ {
		reads += uint64(a.perSecond[i].reads)
		good += uint64(a.perSecond[i].good)
	}
	return reads, good
}
