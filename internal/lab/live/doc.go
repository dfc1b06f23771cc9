// Package live runs a scenario in real time against a real Redis: for what a
// simulator could get wrong.
//
// Each process of the fleet has a real go-redis client with the goredis hook and
// a real [instrument.Monitor] per cache; locks are real SET NX with an expiry and
// a script that compares and deletes; values expire when the server says so. Only
// the origins are made up: so many slots, and a wait for as long as a recompute
// takes.
//
// A cache whose old values may be served (stale_grace) keeps them in the server
// past their expiry, so a hook could not tell an old value from a fresh one: such
// a cache is read through a client without it, and its readers tell the monitor
// what they found, as applications with soft expiries must.
//
// The Redis may be somebody's. Every key has a prefix of this run alone and an
// expiry, and those that were written are deleted at the end; nothing is ever
// flushed.
package live
