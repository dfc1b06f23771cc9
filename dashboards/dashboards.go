// Package dashboards holds the Grafana dashboards that are shipped, as JSON to
// import. They are made by the package build below this one, from the same
// names the metrics are defined with; `make generate` makes them again. This
// package imports none of that, so that a program that ships them does not link
// what they were made with.
package dashboards

import _ "embed"

//go:generate go run ./gen overview.json

// Overview is the dashboard to start from: incidents, what recomputes run in the
// fleet and what they cost, who waits, and how watching itself is.
//
//go:embed overview.json
var Overview []byte
