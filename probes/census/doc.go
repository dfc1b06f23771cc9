// Package census estimates when the values of a cache server expire, from a
// part of its keys.
//
// A probe walks a server's keys slice by slice, at a pace that the server does
// not notice, and tells a [Census] of every key it looks at. The census keeps
// the latest slices, at most one walk over all keys, and scales what is in them
// up to all keys the server holds: so many values of this family expire in that
// second. It goes into [signal.Vitals] with the [signal.Sample] that says how
// far off it may be.
//
// # What it assumes
//
// That a slice is a fair sample. Servers hand keys out in the order of a hash,
// which has nothing to do with when they were written or expire, so any stretch
// of a walk is one.
//
// # How it ages
//
// A key counts as it was when it was looked at. One that was written anew since
// counts at the instant its old value would have expired, and one that was
// written since the walk passed it does not count yet. Both last until the walk
// comes by again or the slice is dropped, so [Options.Keep] at most: a wave of
// values written at one instant is seen to grow over that time, in proportion.
// While a slice is a whole walk, none of this happens.
package census
