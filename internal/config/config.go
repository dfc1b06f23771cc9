// Package config reads and checks the exporter's configuration file.
//
// The file is YAML. Everything in it is optional, and an empty or absent file
// gives an exporter that runs. Decoding is strict: an unknown field, a duration
// without a unit or a value out of its range is a [strictyaml.Error] that names the line,
// the field and what would be right. docs/configuration.md describes every
// field, and a test holds the two together.
package config

import (
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

// Config is a configuration file. Values come from [Load], [Parse] or
// [Default], with defaults filled in and checked; treat them as read-only.
type Config struct {
	// ExternalURL is where people reach the exporter's pages; links in
	// alerts start with it. Default: none, and no such links.
	ExternalURL string `yaml:"external_url,omitempty"`
	// RunbookURL is the folder of runbooks; each is called by its detector's
	// id, with ".md". Default: the project's own.
	RunbookURL string `yaml:"runbook_url"`
	// OTLP bounds and guards what comes in. Changes need a restart.
	OTLP OTLP `yaml:"otlp"`
	// Fleet bounds what is remembered of the fleet. Changes need a restart.
	Fleet Fleet `yaml:"fleet"`
	// Origins declares what recomputes spend, by name.
	Origins map[string]Origin `yaml:"origins,omitempty"`
	// Caches declares what is known of caches, by name.
	Caches map[string]Cache `yaml:"caches,omitempty"`
	// Detectors sets thresholds, by detector. Changes need a restart.
	Detectors detectors.Config `yaml:"detectors"`
	// Alertmanager says where to send alerts. Default: nowhere.
	Alertmanager *Alertmanager `yaml:"alertmanager,omitempty"`
	// Probes watch cache servers from outside. Default: none.
	Probes []Probe `yaml:"probes,omitempty"`
}

// Count is a whole number.
type Count int

// OTLP bounds and guards the OTLP receivers, gRPC and HTTP alike.
type OTLP struct {
	// MaxRequestBytes is the largest request taken, after decompression; 64
	// KiB to 256 MiB. Default 16 MiB.
	MaxRequestBytes Count `yaml:"max_request_bytes"`
	// TLS switches TLS on. Default: plain text, fit for the loopback
	// interface the receivers listen on by default.
	TLS *ServerTLS `yaml:"tls,omitempty"`
}

// ServerTLS is the TLS configuration of a receiver. Files are read again for
// new connections, so that renewed certificates need no restart.
type ServerTLS struct {
	CertFile string `yaml:"cert_file"` // PEM
	KeyFile  string `yaml:"key_file"`  // PEM
	// ClientCAFile, if set, makes every client show a certificate signed by
	// one of the authorities in it.
	ClientCAFile string `yaml:"client_ca_file,omitempty"`
}

// Fleet bounds what is remembered of the fleet.
type Fleet struct {
	// MaxKeys bounds how many keys are remembered, 1000 to 10 million.
	// Windows on further keys are counted and dropped. Default 100,000.
	MaxKeys Count `yaml:"max_keys"`
	// MaxSources bounds how many instances times caches are remembered, 1 to
	// 1 million. Default 20,000.
	MaxSources Count `yaml:"max_sources"`
	// Lateness is how long an episode waits for stragglers before it is
	// final, 100ms to 1m. Urgent reports never wait. Default 2s.
	Lateness time.Duration `yaml:"lateness"`
}

// Origin is something recomputes spend: a database, an upstream service.
type Origin struct {
	// Concurrency is how many recomputes it can run at once, for all caches
	// in front of it; at least 1.
	Concurrency Count `yaml:"concurrency"`
	// Recompute is how long it takes for one recompute when nobody else is in
	// the way, 100us to 1h. It is believed until recomputes have been
	// measured. Default: not known.
	Recompute time.Duration `yaml:"recompute,omitempty"`
}

// Cache is what is known of a cache.
type Cache struct {
	// Origin names the origin its recomputes spend.
	Origin string `yaml:"origin"`
}

// Alertmanager says where to send alerts, and how.
type Alertmanager struct {
	// URLs are the Alertmanagers to tell, each of them: instances of one
	// cluster deduplicate among themselves.
	URLs []string `yaml:"urls"`
	// MinSeverity is the least severe incident to tell of: "ticket", the
	// default, or "page".
	MinSeverity string `yaml:"min_severity"`
	// Resend is how often an open alert is sent again, 1s to 1h. Default 30s.
	// An alert not sent again for four times that ends by itself.
	Resend time.Duration `yaml:"resend"`
	// Timeout bounds one request, 1s to 1m. Default 10s.
	Timeout time.Duration `yaml:"timeout"`
	// Labels are added to every alert: those a Prometheus that sends the same
	// alerts has as its external labels.
	Labels map[string]string `yaml:"labels,omitempty"`
	// HTTP sets authentication, TLS and proxy as Prometheus does.
	HTTP promconfig.HTTPClientConfig `yaml:"http_config"`
}
