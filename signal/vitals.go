package signal

import "time"

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

	Lookups    Lookups `json:"lookups"`
	Recomputes uint64  `json:"recomputes"` // ended, of any cause and outcome
	Tracked    uint64  `json:"tracked"`    // keys in the table now
	Overflowed uint64  `json:"overflowed"` // events on keys there was no room for
	Dropped    uint64  `json:"dropped"`    // records that could not be sent

	Expired uint64 `json:"expired,omitempty"` // by the server's own count (probes)
	Evicted uint64 `json:"evicted,omitempty"` // by the server's own count (probes)

	Origin Origin `json:"origin,omitzero"`
	// Closing is set in the last record of a source that stops in order.
	Closing bool `json:"closing,omitempty"`
}

// Origin is what a cache's recomputes spend, as its application declared it.
type Origin struct {
	Name string `json:"name,omitempty"`
	// Budget is how many recomputes the origin can run at once for all caches
	// that share it; zero if not declared.
	Budget int `json:"budget,omitempty"`
}

// IsZero reports whether nothing is known of the origin.
func (o Origin) IsZero() bool { return o == Origin{} }
