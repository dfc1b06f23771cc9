package alertmanager

import (
	"context"
	"fmt"
	"sync"

	"github.com/stampede-exporter/stampede-exporter/internal/incident"
)

// Notifier sends alerts. It is an [incident.Notifier]; its methods are safe for
// concurrent use.
type Notifier struct {
	opts    Options
	senders []*sender

	mu     sync.Mutex
	alerts alerts // guarded by mu

	quit    chan struct{} // closed when senders are to finish
	ctx     context.Context
	cancel  context.CancelFunc // ends requests under way
	running sync.WaitGroup
	once    sync.Once
}

var _ incident.Notifier = (*Notifier)(nil)

// New returns a notifier and starts a goroutine for each Alertmanager. It makes
// no request: an Alertmanager that is away is no error. The caller must Close
// the notifier.
func New(o Options) (*Notifier, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("configure alertmanager: %w", err)
	}
	n := &Notifier{opts: o, alerts: newAlerts(o.MinSeverity, o.Resend), quit: make(chan struct{})}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	for _, u := range o.URLs {
		n.senders = append(n.senders, newSender(n, u))
	}
	for _, s := range n.senders {
		n.running.Go(s.run)
	}
	return n, nil
}

// IncidentChanged implements [incident.Listener]. It takes note, wakes the
// senders if there is something to tell, and returns.
func (n *Notifier) IncidentChanged(i incident.Incident, c incident.Change) {
	n.mu.Lock()
	changed := n.alerts.put(i, c)
	n.mu.Unlock()
	if !changed {
		return
	}
	for _, s := range n.senders {
		s.wakeUp()
	}
}

// Close implements [incident.Notifier]: each Alertmanager is told what it has
// not been told yet, once, and what fires goes on firing there until its end
// passes. The error is that of ctx, if it was done first.
func (n *Notifier) Close(ctx context.Context) error {
	n.once.Do(func() { close(n.quit) })
	finished := make(chan struct{})
	go func() {
		n.running.Wait()
		close(finished)
	}()
	var err error
	select {
	case <-finished:
	case <-ctx.Done():
		err = fmt.Errorf("flush alerts: %w", context.Cause(ctx))
		n.cancel()
		<-finished
	}
	n.cancel()
	n.opts.Client.CloseIdleConnections()
	return err
}

// outbox returns the alerts that changed after the given version, ready to be
// sent, and the version they are of. Version 0 is before everything.
func (n *Notifier) outbox(since uint64) ([]alert, uint64) {
	now := n.opts.Now()
	n.mu.Lock()
	groups, version := n.alerts.since(since, now), n.alerts.version
	n.mu.Unlock()
	out := make([]alert, len(groups))
	for i := range groups {
		out[i] = n.opts.alert(&groups[i], now)
	}
	return out, version
}
