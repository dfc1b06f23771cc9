package alertmanager

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

// Options configure a [Notifier]. Only URLs must be set.
type Options struct {
	// URLs are the Alertmanagers; each gets every alert, as the members of a
	// cluster expect. "/api/v2/alerts" is added to each.
	URLs []string
	// Client makes the requests. TLS, authentication and proxies are its
	// business: see NewClientFromConfig of prometheus/common/config. Its idle
	// connections are closed with the notifier. Default: a client with nothing
	// set but the proxy of the environment.
	Client *http.Client
	// Timeout bounds one request, 100 ms to 1 min. Default 10 s, or Resend if
	// that is shorter.
	Timeout time.Duration
	// Resend is how often all alerts are sent again, 1 s to 1 h. Default 30 s.
	// A firing alert not sent again for four times that ends by itself.
	Resend time.Duration
	// MinSeverity is the least severe incident to tell of. Default, and
	// lowest: Ticket. Incidents for information wake nobody.
	MinSeverity detectors.Severity
	// Labels are added to every alert. They cannot replace its own labels.
	Labels map[string]string
	// ExternalURL is where people reach the exporter's pages; an alert links
	// to its incident there. Default: none, and no link.
	ExternalURL string
	// RunbookBase is the URL of the folder of runbooks; each is called by the
	// detector's id, with ".md". Default: the project's own.
	RunbookBase string
	// Sent, if set, is called after each request with [OutcomeOK] or
	// [OutcomeFailed]. It is called concurrently and must not block.
	Sent func(outcome string)
	// Logger gets the first failure of each Alertmanager and its end.
	// Default: nobody.
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Outcomes of a request.
const (
	OutcomeOK     = "ok"
	OutcomeFailed = "failed"
)

const (
	defaultRunbooks = "https://github.com/stampede-exporter/stampede-exporter/blob/main/alerts/runbooks"

	minResend, defaultResend, maxResend    = time.Second, 30 * time.Second, time.Hour
	minTimeout, defaultTimeout, maxTimeout = 100 * time.Millisecond, 10 * time.Second, time.Minute
)

func (o Options) withDefaults() Options {
	if o.Client == nil {
		o.Client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
	}
	if o.Resend == 0 {
		o.Resend = defaultResend
	}
	if o.Timeout == 0 {
		o.Timeout = min(defaultTimeout, o.Resend)
	}
	o.MinSeverity = max(o.MinSeverity, detectors.Ticket)
	if o.RunbookBase == "" {
		o.RunbookBase = defaultRunbooks
	}
	o.RunbookBase = strings.TrimRight(o.RunbookBase, "/")
	o.ExternalURL = strings.TrimRight(o.ExternalURL, "/")
	if o.Sent == nil {
		o.Sent = func(string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func (o Options) validate() error {
	if len(o.URLs) == 0 {
		return fmt.Errorf("option URLs is empty: want at least one Alertmanager")
	}
	for i, u := range o.URLs {
		if err := checkURL(u); err != nil {
			return fmt.Errorf("option URLs[%d]: %w", i, err)
		}
		if slices.Contains(o.URLs[:i], u) {
			return fmt.Errorf("option URLs[%d] is given twice", i)
		}
	}
	if o.ExternalURL != "" {
		if err := checkURL(o.ExternalURL); err != nil {
			return fmt.Errorf("option ExternalURL: %w", err)
		}
	}
	if err := checkURL(o.RunbookBase); err != nil {
		return fmt.Errorf("option RunbookBase: %w", err)
	}
	switch {
	case o.Resend < minResend || o.Resend > maxResend:
		return fmt.Errorf("option Resend is %v: want %v to %v", o.Resend, minResend, maxResend)
	case o.Timeout < minTimeout || o.Timeout > maxTimeout:
		return fmt.Errorf("option Timeout is %v: want %v to %v", o.Timeout, minTimeout, maxTimeout)
	case o.MinSeverity > detectors.Page:
		return fmt.Errorf("option MinSeverity is %d: want Ticket or Page", o.MinSeverity)
	}
	return checkLabels(o.Labels)
}

// checkURL does not repeat u, which may hold a password.
func checkURL(u string) error {
	p, err := url.Parse(u)
	switch {
	case err != nil:
		return fmt.Errorf("not a URL")
	case p.Scheme != "http" && p.Scheme != "https":
		return fmt.Errorf("scheme is %q: want http or https", p.Scheme)
	case p.Host == "":
		return fmt.Errorf("has no host")
	case p.RawQuery != "" || p.Fragment != "":
		return fmt.Errorf("has a query or a fragment: want neither")
	}
	return nil
}

// labelName is what every version of Prometheus and Alertmanager accepts.
var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func checkLabels(labels map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch value := labels[name]; {
		case !labelName.MatchString(name):
			return fmt.Errorf("option Labels: %q is not a label name: want letters, digits and underscores, no digit first", name)
		case slices.Contains(ownLabels, name):
			return fmt.Errorf("option Labels: %q is set by the exporter: want another name", name)
		case value == "":
			return fmt.Errorf("option Labels: %q has no value, and Alertmanager drops such labels", name)
		case !utf8.ValidString(value):
			return fmt.Errorf("option Labels: the value of %q is not UTF-8", name)
		}
	}
	return nil
}
