// Package archtest holds the architecture as tests: which package may import
// which and why, what may not appear in source, and that everything a detector
// needs to be of use (documentation, alert, runbook, panel) is there. It has no
// code but its tests.
package archtest
