package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	promconfig "github.com/prometheus/common/config"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/config"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/redis"
)

// live is the part of a server that a reload replaces.
type live struct {
	notifier notifier
	probes   running
	stopped  bool // nothing may be started any more
}

// declarations returns what c says of origins and caches, for the engine.
func declarations(c *config.Config) engine.Declarations {
	d := engine.Declarations{Budgets: map[string]int{}, Origins: map[string]string{}}
	for name, o := range c.Origins {
		d.Budgets[name] = int(o.Concurrency)
	}
	for name, cache := range c.Caches {
		d.Origins[name] = cache.Origin
	}
	return d
}

// notifier is a notifier the incident manager knows of. The zero value is none.
type notifier struct {
	incident.Notifier
	forget func() // makes the manager forget it
}

// newNotifier returns the notifier c asks for, which does not hear of
// incidents yet; none if c asks for none.
func (s *Server) newNotifier(c *config.Config) (notifier, error) {
	a := c.Alertmanager
	if a == nil {
		return notifier{}, nil
	}
	client, err := promconfig.NewClientFromConfig(a.HTTP, "alertmanager")
	if err != nil {
		return notifier{}, fmt.Errorf("configure alertmanager.http_config: %w", err)
	}
	least := detectors.Ticket
	if a.MinSeverity == detectors.Page.String() {
		least = detectors.Page
	}
	n, err := alertmanager.New(alertmanager.Options{
		URLs:        a.URLs,
		Client:      client,
		Timeout:     a.Timeout,
		Resend:      a.Resend,
		MinSeverity: least,
		Labels:      a.Labels,
		ExternalURL: c.ExternalURL,
		RunbookBase: c.RunbookURL,
		Sent:        s.metrics.sent,
		Logger:      s.log,
	})
	if err != nil {
		return notifier{}, err
	}
	return notifier{Notifier: n}, nil
}

// start makes the incident manager tell n from now on, beginning with what is
// open.
func (n *notifier) start(m *incident.Manager) {
	if n.Notifier != nil {
		n.forget = m.Subscribe(n.Notifier)
	}
}

// stop sends what is still to be sent, and then hears nothing more.
func (n *notifier) stop() error {
	if n.Notifier == nil {
		return nil
	}
	if n.forget != nil {
		n.forget()
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	err := n.Close(ctx)
	*n = notifier{}
	return err
}

// running is a set of probes that runs. The zero value is none.
type running struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// start runs r until stop.
func (p *running) start(r *probes.Runner, failed func(error)) {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.done.Go(func() {
		if err := r.Run(ctx); err != nil {
			failed(err)
		}
	})
}

// stop ends the probes and waits for them.
func (p *running) stop() {
	if p.cancel != nil {
		p.cancel()
	}
	p.done.Wait()
	p.cancel = nil
}

// newProbes returns the probes c asks for.
func (s *Server) newProbes(c *config.Config) (*probes.Runner, error) {
	var list []probes.Probe
	var errs []error
	for i := range c.Probes {
		p, err := newProbe(&c.Probes[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("configure probes.%d: %w", i, err))
			continue
		}
		list = append(list, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return probes.New(list, probes.Options{Sink: s.probed, Report: s.reported})
}

// newProbe makes one probe. There is one case for each type.
func newProbe(c *config.Probe) (probes.Probe, error) {
	password, err := readPassword(c.PasswordFile)
	if err != nil {
		return probes.Probe{}, err
	}
	var t *tls.Config
	if c.TLS != nil {
		if t, err = promconfig.NewTLSConfig(c.TLS); err != nil {
			return probes.Probe{}, err
		}
	}
	switch c.Type {
	case "redis":
		return redis.Info(c.Target, c.Cache, redis.Options{
			Name:     c.Name,
			Service:  c.Service,
			Interval: c.Interval,
			Timeout:  c.Timeout,
			Username: c.Username,
			Password: password,
			TLS:      t,
		})
	}
	return probes.Probe{}, fmt.Errorf("%q is not a type of probe", c.Type)
}

// readPassword returns the contents of a file without a newline at its end; no
// file is no password.
func readPassword(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
