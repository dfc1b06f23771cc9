// Package semconv holds every name this project gives to a metric, an attribute
// or an event, with its type, unit and help, written once. What measures, what
// sends, what receives, what draws and what alerts all take names from here,
// and docs/metrics.md is generated from it.
//
// Names, types and units are frozen once released.
package semconv
