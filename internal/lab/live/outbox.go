package live

import (
	"slices"
	"sync"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// outbox is the sink of a process's monitors, which flush on their own.
type outbox struct {
	r *Rig

	mu      sync.Mutex
	windows []*signal.Window
	muted   bool
}

var _ instrument.Sink = (*outbox)(nil)

// Window implements [instrument.Sink]. An urgent one leaves at once, the others
// with the vitals that follow them.
func (o *outbox) Window(w *signal.Window, urgent bool) {
	w.Key.Text = o.r.textOf(w.Key.Text)
	if urgent {
		o.send(rig.Report{Urgent: true, Windows: []*signal.Window{w}})
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.windows = append(o.windows, w)
}

// Vitals implements [instrument.Sink].
func (o *outbox) Vitals(v *signal.Vitals) {
	o.mu.Lock()
	mine := func(w *signal.Window) bool { return w.Cache == v.Cache }
	r := rig.Report{Vitals: []*signal.Vitals{v}}
	for _, w := range o.windows {
		if mine(w) {
			r.Windows = append(r.Windows, w)
		}
	}
	o.windows = slices.DeleteFunc(o.windows, mine)
	o.mu.Unlock()
	o.send(r)
}

// Dropped implements [instrument.Sink].
func (o *outbox) Dropped() uint64 { return 0 }

// mute makes o say nothing more.
func (o *outbox) mute() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.muted = true
}

// send passes r on. A sink must not block, and the receiver takes its time.
func (o *outbox) send(r rig.Report) {
	o.mu.Lock()
	muted := o.muted
	o.mu.Unlock()
	if muted {
		return
	}
	o.r.reports.Go(func() {
		<-o.r.begun
		o.r.outside.Lock()
		defer o.r.outside.Unlock()
		o.r.o.Report(r)
	})
}
