// Package score says how well the detectors do: it runs scenarios with seeds and
// time scales their thresholds were not chosen with, compares what was found with
// what really happened, and sums up.
//
// The unit is an episode: an expectation of a scenario, in one run. It is found
// or it is not, however many findings say so. docs/scenarios.md defines every
// number.
package score
