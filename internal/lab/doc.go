// Package lab runs scenarios with a known truth, in virtual time, through the
// code that watches real fleets: real monitors, the real encoding of the wire,
// the real fleet and detectors. It holds what the detectors find against what the
// simulator knows it did.
//
// Only three things are made up: the application (package sim), the network
// between it and the exporter, which loses nothing but what a scenario says and
// takes a few milliseconds, and the passing of time.
package lab
