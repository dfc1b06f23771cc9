package signal

import "time"

// Tick is one look at a whole fleet: everything a detector gets. All instants
// in it are on the clock of whoever made the tick.
type Tick struct {
	At Nanos `json:"at"`
	// Urgent is set for a tick made between the regular ones because a
	// source reported a key in haste; it holds that key's episodes only.
	Urgent   bool      `json:"urgent,omitempty"`
	Episodes []Episode `json:"episodes,omitempty"`
	// Keys are those on which, since the previous regular tick, something
	// happened that an episode does not tell: an early refresh, a lock, an
	// invalidation, an eviction or a stale write. An urgent tick has none.
	Keys []KeyState `json:"keys,omitempty"`
	// Caches are all caches with a source that reported lately, by name; an
	// urgent tick has those its episodes are about.
	Caches []CacheState `json:"caches,omitempty"`
}

// Episode is one burst of activity on one key across the fleet: every
// recompute that overlapped another, and what went with them. It comes again,
// grown, at each tick until it is Final.
type Episode struct {
	// Started is the start of its first recompute; with Window.Cache and
	// Window.Key.ID it names the episode for as long as it grows.
	Started Nanos `json:"started"`
	// Window merges all that sources said about the episode so far. It is
	// only lent: whoever made the tick goes on merging into it.
	Window *Window `json:"window"`
	// PeakLow and PeakHigh bound the most provoked recomputes at one instant
	// in the fleet; equal if every recompute's interval is known.
	PeakLow  int `json:"peak_low"`
	PeakHigh int `json:"peak_high"`
	// Onset is when a second recompute joined the first; zero if none did.
	Onset Nanos `json:"onset,omitempty"`
	// Wasted is the recompute time that served nobody; see [Overlap].
	Wasted time.Duration `json:"wasted,omitempty"`
	// Duplicates is what the fleet computed in vain: a lower bound if the
	// window is Sampled.
	Duplicates uint64 `json:"duplicates"`
	// KnownBefore is set if some source had a value for the key before this
	// episode: then a process that calls it cold just had not seen it.
	KnownBefore bool `json:"known_before,omitempty"`
	// Due is when the value that was there before this episode was to expire,
	// by the word of whoever stored it last; zero if nobody said. An episode
	// that starts before it found a value that vanished early.
	Due Nanos `json:"due,omitempty"`
	// TTL is the shortest time to live lately seen stored for the key.
	TTL time.Duration `json:"ttl,omitempty"`
	// Offset is the largest clock correction applied to a source in it.
	Offset time.Duration `json:"offset,omitempty"`
	// Final is set once no source can be expected to add to it.
	Final bool `json:"final,omitempty"`
}

// CacheState is what the fleet knows of one cache at a tick.
type CacheState struct {
	Cache   string `json:"cache"`
	Service string `json:"service,omitempty"` // the service that reports it; empty if several do
	Origin  Origin `json:"origin,omitzero"`
	// Instances have reported within the last few seconds; Silent have
	// stopped without saying goodbye and are still remembered.
	Instances int `json:"instances"`
	Silent    int `json:"silent,omitempty"`
	// Probes that look at the cache's servers have reported within the last
	// few seconds. They are not instances.
	Probes int `json:"probes,omitempty"`
	// Watching are those of Probes that are told of what happens to single
	// keys.
	Watching int `json:"watching,omitempty"`
	// UptimeMin is the youngest instance's uptime, UptimeMax the oldest's; of
	// servers where only probes report.
	UptimeMin time.Duration `json:"uptime_min"`
	UptimeMax time.Duration `json:"uptime_max"`
	// Lookups and Work are since the previous regular tick. If Unknown has
	// UnknownHits, Lookups holds misses only, and says nothing of how many
	// reads were answered.
	Lookups Lookups `json:"lookups"`
	Work    Work    `json:"work"`
	Unknown Unknown `json:"unknown,omitempty"`
	// Running and Waiting are as of the sources' latest vitals.
	Running  uint32      `json:"running,omitempty"`
	Waiting  uint32      `json:"waiting,omitempty"`
	Expiries []ExpiryBin `json:"expiries,omitempty"` // merged, on the tick's clock
	Sample   Sample      `json:"sample,omitzero"`    // what Expiries were scaled up from
	// Hot are the keys that servers say are used most; expiries are on the
	// tick's clock.
	Hot []HotKey `json:"hot,omitempty"`
	// Claims are those of the instance started last, except for Protection:
	// that is what every instance that reports claims.
	Claims Claims `json:"claims,omitzero"`

	// Of keys, since the previous regular tick, from windows; a flood that
	// windows could not report singly shows in Overflowed.
	MissedKeys int    `json:"missed_keys,omitempty"` // distinct, with a miss
	MissTop    uint64 `json:"miss_top,omitempty"`    // misses of the key with the most
	Misses     uint64 `json:"misses,omitempty"`      // of all keys
	Overflowed uint64 `json:"overflowed,omitempty"`  // events on keys not reported singly

	Expired uint64 `json:"expired,omitempty"` // by the server's count
	Evicted uint64 `json:"evicted,omitempty"` // by the server's count
	// Flushed counts commands that dropped all keys of a server, and Restarted
	// servers that were started anew, since the previous regular tick.
	Flushed   uint64 `json:"flushed,omitempty"`
	Restarted uint64 `json:"restarted,omitempty"`
}

// KeyState is what happened to one key since the previous regular tick.
type KeyState struct {
	// Window merges what all sources said in that time. It is only lent.
	Window *Window       `json:"window"`
	TTL    time.Duration `json:"ttl,omitempty"` // the shortest lately stored
	// Overtaken counts values that were written although one of a higher
	// version was there already: of those the fleet was told the version of,
	// at least as many, each counted once.
	Overtaken uint64 `json:"overtaken,omitempty"`
}
