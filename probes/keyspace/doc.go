// Package keyspace turns what a cache server says of single keys (somebody
// missed it, stored it, deleted it; it expired, it was evicted) into windows.
//
// The server tells events of all its clients, in any language, in the order in
// which they happened, and does not tell whose they are. So a [Ledger] sees how
// many readers missed a key between two values, and how many of them stored one
// afterwards. It cannot tell who waited for whom: a reader who polls behind a
// lock misses again and again, one who waits inside a process misses once. That
// is why only stores count as recomputes, misses are an upper bound of readers
// who wait, and every window says what is unknown.
package keyspace
