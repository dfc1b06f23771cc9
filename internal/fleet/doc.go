// Package fleet joins what many sources saw of one key into what happened to
// that key in the whole fleet: windows and vitals go in, ticks come out.
//
// # Joining
//
// Windows of one key whose activity overlaps, or nearly so, form an episode;
// windows that name different generations never do. The intervals they carry
// are swept for the true concurrency across instances. A source whose clock is
// off by more than [Tolerance] is put right first; less than that cannot be told
// from the network's delay and is left alone.
//
// # Time
//
// A tick shows every episode as far as it is known, again and again until no
// source can be expected to add to it ([Options.Lateness]), and then once more
// as final. A key that shows more trouble than the last tick did asks for a tick
// of its own at once. What comes after that is late: it improves the episode as
// long as it is remembered, and raises nothing.
//
// # Bounds
//
// Keys and sources are bounded, and forgotten when they fall silent; what there
// is no room for is counted. Adding is safe for concurrent use.
package fleet
