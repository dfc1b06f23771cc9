package alerts

import "strings"

// DefaultRunbooks is where the project's runbooks are read.
const DefaultRunbooks = "https://github.com/stampede-exporter/stampede-exporter/blob/main/alerts/runbooks"

// DefaultJob is the job label the rules expect the exporter's targets to have.
const DefaultJob = "stampede-exporter"

// Options fit the rules to a site. The zero value gives the shipped rules.
type Options struct {
	// Job is the job label of the exporter's targets. Default [DefaultJob].
	Job string
	// Runbooks is the URL of the folder of runbooks. Default
	// [DefaultRunbooks].
	Runbooks string
}

func (o Options) withDefaults() Options {
	if o.Job == "" {
		o.Job = DefaultJob
	}
	if o.Runbooks == "" {
		o.Runbooks = DefaultRunbooks
	}
	o.Runbooks = strings.TrimRight(o.Runbooks, "/")
	return o
}

// runbook returns the URL of the runbook called id.
func (o Options) runbook(id string) string { return o.Runbooks + "/" + id + ".md" }

// Build returns all rules.
func Build(o Options) File {
	o = o.withDefaults()
	return File{Groups: []Group{
		detectorGroup(o),
		exporterGroup(o),
		applicationGroup(o),
	}}
}
