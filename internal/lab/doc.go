// Package lab runs scenarios with a known truth through the code that watches
// real fleets: real monitors, the real encoding of the wire, the real fleet and
// detectors. It holds what the detectors find against what the rig knows it did.
//
// There are two rigs. That of package sim runs in virtual time, and only three
// things are made up: the application, the network between it and the exporter,
// which loses nothing but what a scenario says and takes a few milliseconds, and
// the passing of time. That of package live runs in real time, with real clients
// of a real Redis; what it shares with the first is in package rig.
package lab
