// Package build makes the shipped Grafana dashboards with the Grafana
// foundation SDK.
//
// A small model (board, row, panel, query) says what a dashboard shows; board.go
// turns it into the SDK's. So a dashboard reads as a list of panels, and the
// choices that must be the same everywhere (data source, legends, units, what
// to do when one zooms out) are made once.
package build
