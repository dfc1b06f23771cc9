// Package probes watches cache servers from outside, for services in any
// language and with no change to their code.
//
// A [Probe] is a value: what to ask, whom, how often, and a function that asks
// once. A [Runner] owns everything else: the interval, the deadline, that one
// run ends before the next begins, what happens to a panic, and the account of
// all that. So a probe is a few lines, and has no goroutine, clock or metric of
// its own. Each client library has a package of its own below this one.
//
// A probe sees a server's account, not an application's: it cannot tell who
// recomputes or who waits. What it cannot see it leaves out or marks unknown.
package probes
