// Package verify decides whether a mitigation reduced duplicate recomputes.
//
// The unit is the expiry cycle of a key, not the request: the recomputes of one
// cycle depend on each other, and a test that takes them for independent finds
// an effect in two of three comparisons of a thing with itself. What is
// compared is the stampede coefficient
//
//	S = sum(recomputes beyond the first) / sum(reads per second x seconds of a recompute)
//
// which is 1 for a naive cache and 0 for a perfect lease, whatever the traffic.
// Seconds of a recompute are those of before the change in both periods: a
// mitigation that takes load off the origin makes recomputes faster, too, and
// must not be denied that.
//
// The answer is the ratio of S after to S before, with an interval, and a
// [Verdict]. All of it is arithmetic on cycles: where they come from is for the
// caller to know.
package verify
