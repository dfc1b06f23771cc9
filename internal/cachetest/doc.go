// Package cachetest runs real cache servers for tests: one server per call, on
// a private port of the loopback interface, gone when the test is.
//
// A server that cannot be run fails the test. It never skips it: a suite that
// is green because nothing ran proves nothing.
package cachetest
