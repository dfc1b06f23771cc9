package detectors

import (
	"cmp"
	"fmt"
	"time"
)

// HotKeyExpiryConfig holds the thresholds of the hot-key-expiry detector. A
// zero field takes its default. Peaks count provoked recomputes of one key that
// ran at one instant in the whole fleet.
type HotKeyExpiryConfig struct {
	// PagePeak is the least peak that pages if the origin's budget is known;
	// a budget above it counts instead. 2 to 1,000,000; default 20.
	PagePeak int `yaml:"page_peak,omitempty"`
	// PagePeakNoBudget is the least peak that pages if it is not, 2 to
	// 1,000,000. Default 50.
	PagePeakNoBudget int `yaml:"page_peak_no_budget,omitempty"`
	// TicketPeak is the peak that makes an episode count as one that recurs,
	// 2 to 1,000,000. Default 5.
	TicketPeak int `yaml:"ticket_peak,omitempty"`
	// TicketEpisodes of the last TicketOf episodes of a key that reach
	// TicketPeak make a ticket. 1 to TicketOf; default 3. TicketOf is 1 to
	// 20; default 5.
	TicketEpisodes int `yaml:"ticket_episodes,omitempty"`
	TicketOf       int `yaml:"ticket_of,omitempty"`
	// ClearPagePeak is the peak that keeps a page open, 2 to the lower of
	// PagePeak and PagePeakNoBudget. Default: half of that, rounded up,
	// and at least 2.
	ClearPagePeak int `yaml:"clear_page_peak,omitempty"`
	// ClearTicketPeak is the peak that keeps a ticket open, 2 to TicketPeak.
	// Default: half of that, rounded up, and at least 2.
	ClearTicketPeak int `yaml:"clear_ticket_peak,omitempty"`
	// ClearAfter is how long no episode may reach those peaks before a
	// finding clears, 1s to 24h. Default 10m. Twice the key's time to live
	// counts instead if that is longer, up to 24h.
	ClearAfter time.Duration `yaml:"clear_after,omitempty"`
	// ColdStart is how long the oldest instance must have been up before a
	// fleet no longer counts as starting cold, 1s to 1h. Default 60s.
	ColdStart time.Duration `yaml:"cold_start,omitempty"`
	// MaxKeys bounds how many keys with an episode of TicketPeak or more are
	// remembered, 100 to 1,000,000; each takes about 1 kB. Default 100,000.
	// Beyond it the longest quiet are forgotten first, and the history of
	// their recurrence with them; one with an open finding never is.
	MaxKeys int `yaml:"max_keys,omitempty"`
}

// maxPeak bounds every threshold on a peak.
const maxPeak = 1_000_000

func (c HotKeyExpiryConfig) withDefaults() HotKeyExpiryConfig {
	c.PagePeak = cmp.Or(c.PagePeak, 20)
	c.PagePeakNoBudget = cmp.Or(c.PagePeakNoBudget, 50)
	c.TicketPeak = cmp.Or(c.TicketPeak, 5)
	c.TicketEpisodes = cmp.Or(c.TicketEpisodes, 3)
	c.TicketOf = cmp.Or(c.TicketOf, 5)
	c.ClearPagePeak = cmp.Or(c.ClearPagePeak, max(2, (min(c.PagePeak, c.PagePeakNoBudget)+1)/2))
	c.ClearTicketPeak = cmp.Or(c.ClearTicketPeak, max(2, (c.TicketPeak+1)/2))
	c.ClearAfter = cmp.Or(c.ClearAfter, 10*time.Minute)
	c.ColdStart = cmp.Or(c.ColdStart, time.Minute)
	c.MaxKeys = cmp.Or(c.MaxKeys, 100_000)
	return c
}

// validate checks a configuration that has its defaults.
func (c HotKeyExpiryConfig) validate() error {
	return cmp.Or(
		within("page_peak", c.PagePeak, 2, maxPeak),
		within("page_peak_no_budget", c.PagePeakNoBudget, 2, maxPeak),
		within("ticket_peak", c.TicketPeak, 2, maxPeak),
		within("ticket_of", c.TicketOf, 1, 20),
		within("ticket_episodes", c.TicketEpisodes, 1, c.TicketOf),
		within("clear_page_peak", c.ClearPagePeak, 2, min(c.PagePeak, c.PagePeakNoBudget)),
		within("clear_ticket_peak", c.ClearTicketPeak, 2, c.TicketPeak),
		within("clear_after", c.ClearAfter, time.Second, maxHold),
		within("cold_start", c.ColdStart, time.Second, time.Hour),
		within("max_keys", c.MaxKeys, 100, 1_000_000),
	)
}

// within returns an error unless low <= v <= high, which is false of NaN.
func within[T cmp.Ordered](field string, v, low, high T) error {
	if !(v >= low && v <= high) {
		return fmt.Errorf("%s is %v: want %v to %v", field, v, low, high)
	}
	return nil
}
