package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/config"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager"
	"github.com/stampede-exporter/stampede-exporter/probes"
)

// live is the part of a server that a reload replaces.
type live struct {
	notifier notifier
	probes   running
	stopped  bool // nothing may be started any more
}

// declarations returns what c says of origins and caches, for the engine.
func declarations(c *config.Config) engine.Declarations {
	d := engine.Declarations{Budgets: map[string]int{}, Recomputes: map[string]time.Duration{}, Origins: map[string]string{}}
	for name, o := range c.Origins {
		d.Budgets[name] = int(o.Concurrency)
		if o.Recompute > 0 {
			d.Recomputes[name] = o.Recompute
		}
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
