// Package alertmanager tells Prometheus Alertmanagers of incidents, by their
// API v2.
//
// # Same labels as by rule
//
// A Prometheus that scrapes the exporter and runs the shipped rules sends the
// same alerts, some time later. So that people are told once, an alert's labels
// here are exactly those such a rule gives: alertname, detector, service,
// cache and severity, those without a value left out, and the labels of
// [Options.Labels], which must repeat the external labels of that Prometheus.
// Nothing that differs from key to key is a label: incidents that agree in all
// of them are one alert.
//
// What is part of an incident is no alert of its own: the incident's names it
// in an annotation. An incident that changes its class or severity goes on
// under other labels, and the end of one alert is sent together with the
// beginning of the other.
//
// # State, not messages
//
// The [Notifier] keeps what is firing and what has lately ended, and each
// sender sends that state: what changed at once, all of it at intervals. There
// is no queue to overflow, and an Alertmanager that was away, or lost its
// memory, knows everything after the next sending.
//
// Every firing alert is sent with an end some intervals ahead. If the exporter
// dies, its alerts end by themselves.
package alertmanager
