// Package rig is what the simulator and the rig in real time have in common: how
// a scenario is read, what its processes say of themselves, and the account a
// rig keeps of what it did.
//
// Nothing in an account comes from a monitor. What counts as trouble, and when it
// began, is decided here, so that it cannot depend on how time passes.
package rig

import "github.com/stampede-exporter/stampede-exporter/signal"

// Service is what the application is called.
const Service = "lab"

// Report is what one process says of itself at one instant.
type Report struct {
	Urgent  bool
	Windows []*signal.Window
	Vitals  []*signal.Vitals
}
