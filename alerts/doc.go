// Package alerts builds the Prometheus alerting rules that are shipped, from
// the same names the metrics are defined with.
//
// A small model ([File], [Group], [Rule]) is filled by one generator a group:
// what detectors find, what is wrong with watching itself, and what shows from
// an application's own metrics without an exporter. [Build] runs them;
// stampede.yaml beside this file is what they made, and `make generate` makes
// it again.
package alerts

import _ "embed"

//go:generate go run ./gen stampede.yaml

// YAML is the committed rule file: what [Build] gives with default options.
//
//go:embed stampede.yaml
var YAML []byte
