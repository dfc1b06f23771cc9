// Package keyname names cache keys without giving them away: the group a key
// belongs to, by convention, and the id it has in records.
//
// An instrumented service and a probe of the server it uses name one key alike,
// as long as neither is told to do otherwise, so that what both say of it can be
// laid side by side.
package keyname
