// Package sim runs a scenario in virtual time: a fleet of processes that read
// caches, recompute through origins, and are hit by what the scenario says.
//
// It is a discrete-event simulation with one thread and a seed: the same
// scenario and seed give the same run. What the processes do around their caches
// they tell a real [instrument.Monitor], as an application does; what the
// monitors say leaves through [Options.Report].
//
// The simulator keeps its own account of what happened ([Truth]), from what it
// did and from nothing a monitor said.
package sim
