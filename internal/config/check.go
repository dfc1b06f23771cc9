package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/strictyaml"
)

// checker collects what is wrong.
type checker struct{ errs []error }

// check returns everything that is wrong with the values of c.
func (c *Config) check() []error {
	var k checker
	if c.ExternalURL != "" {
		k.webURL(c.ExternalURL, "external_url")
	}
	k.webURL(c.RunbookURL, "runbook_url")
	k.otlp(&c.OTLP)
	inRange(&k, c.Fleet.MaxKeys, 1000, 10_000_000, "fleet", "max_keys")
	inRange(&k, c.Fleet.MaxSources, 1, 1_000_000, "fleet", "max_sources")
	inRange(&k, c.Fleet.Lateness, 100*time.Millisecond, time.Minute, "fleet", "lateness")
	k.origins(c.Origins, c.Caches)
	if _, err := detectors.All(c.Detectors); err != nil {
		k.add(err.Error(), "detectors")
	}
	if c.Alertmanager != nil {
		k.alertmanager(c.Alertmanager)
	}
	k.probes(c.Probes)
	return k.errs
}

func (k *checker) add(text string, path ...string) {
	k.errs = append(k.errs, strictyaml.Field(text, path...))
}

// inRange complains of a value outside of low to high.
func inRange[T cmp.Ordered](k *checker, v, low, high T, path ...string) {
	if v < low || v > high {
		k.add(fmt.Sprintf("%v is out of range: want %v to %v", v, low, high), path...)
	}
}

func (k *checker) webURL(s string, path ...string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		// The text is not repeated: it may hold a password.
		k.add("is not a URL: want one such as http://host:9093", path...)
	case u.User != nil:
		k.add("holds a user name, and would be shown: want none (for Alertmanager, use http_config.basic_auth)", path...)
	case u.RawQuery != "" || u.Fragment != "":
		k.add("has a query or a fragment: want neither", path...)
	}
}

func (k *checker) otlp(o *OTLP) {
	inRange(k, o.MaxRequestBytes, 64<<10, 256<<20, "otlp", "max_request_bytes")
	if o.TLS == nil {
		return
	}
	k.required(o.TLS.CertFile, "otlp", "tls", "cert_file")
	k.required(o.TLS.KeyFile, "otlp", "tls", "key_file")
}

func (k *checker) required(s string, path ...string) {
	if s == "" {
		k.add("is missing or empty", path...)
	}
}

func (k *checker) origins(origins map[string]Origin, caches map[string]Cache) {
	for _, name := range slices.Sorted(maps.Keys(origins)) {
		k.required(name, "origins")
		inRange(k, origins[name].Concurrency, 1, 1_000_000, "origins", name, "concurrency")
		if takes := origins[name].Recompute; takes != 0 {
			inRange(k, takes, 100*time.Microsecond, time.Hour, "origins", name, "recompute")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(caches)) {
		k.required(name, "caches")
		if o := caches[name].Origin; origins[o].Concurrency == 0 {
			k.add(fmt.Sprintf("%q is not declared: want the name of one of origins", o), "caches", name, "origin")
		}
	}
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// alertLabels are set by the exporter; a label of the configuration must not
// replace them, or the alert would not match the one from a Prometheus rule.
var alertLabels = []string{"alertname", "detector", "service", "cache", "severity"}

func (k *checker) alertmanager(a *Alertmanager) {
	if len(a.URLs) == 0 {
		k.add("is missing or empty", "alertmanager", "urls")
	}
	for i, u := range a.URLs {
		k.webURL(u, "alertmanager", "urls", strconv.Itoa(i))
		if slices.Contains(a.URLs[:i], u) {
			k.add("is there twice", "alertmanager", "urls", strconv.Itoa(i))
		}
	}
	if a.MinSeverity != "ticket" && a.MinSeverity != "page" {
		k.add(fmt.Sprintf("%q is out of range: want ticket or page", a.MinSeverity), "alertmanager", "min_severity")
	}
	inRange(k, a.Resend, time.Second, time.Hour, "alertmanager", "resend")
	inRange(k, a.Timeout, time.Second, time.Minute, "alertmanager", "timeout")
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		switch {
		case !labelName.MatchString(name):
			k.add(fmt.Sprintf("%q is not a label name: want letters, digits and underscores, no digit first", name), "alertmanager", "labels", name)
		case slices.Contains(alertLabels, name):
			k.add("is set by the exporter: want another name", "alertmanager", "labels", name)
		case a.Labels[name] == "":
			k.add("has no value, and Alertmanager drops such labels", "alertmanager", "labels", name)
		}
	}
}
