// Package memcached probes memcached.
//
// It speaks the text protocol itself: client libraries know neither the server's
// log ("watch") nor the list of its keys ("lru_crawler metadump"), and both are
// streams that need care, for a server waits for whoever reads them slowly.
//
// # What a memcached tells
//
// [Stats] asks for the server's counters. [Watch] listens to its log: every get
// and every store of every key, with the instant and the time to live. [Metadump]
// lists its keys with their expiries.
//
// # What it does not tell
//
// The log has one kind of line for everything that looks for a key: a get and a
// touch, an incr or a delete of a key that is not there look alike, and count as
// misses. The line does not show the flags of meta commands either: a reader who
// is told to recompute (W) while others are served what was there before (X, Z)
// is a hit like theirs. So a value that is refreshed under a lease or ahead of
// its expiry shows as a store without a miss, which is what it should be: no
// reader was left without a value. The reader who wins a lease on a key that was
// not there (the N flag) is a miss, and the rest are hits.
package memcached
