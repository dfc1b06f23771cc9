package otlp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Linger is how long a record that is not urgent waits for others to share a
// request with. A flush hands over its records well within it.
const Linger = 20 * time.Millisecond

// Exporter sends records over OTLP. It is a sink for any number of monitors, and
// safe for concurrent use. One Exporter may serve several sources: each record
// goes out under the identity of its own.
type Exporter struct {
	client    sdklog.Exporter
	batchSize int
	onError   func(error)

	queue   *queue
	dropped atomic.Uint64

	queued chan struct{} // something waits
	now    chan struct{} // and should not wait longer
	stop   chan struct{} // closed by Shutdown
	done   chan struct{} // closed when the goroutine has ended
	once   sync.Once
	err    error // what Shutdown returns; set before done is waited for

	// ctx is what requests run under; cancelled when Shutdown runs out of time.
	ctx    context.Context
	cancel context.CancelFunc

	// The rest belongs to the goroutine.
	batch    *batch
	items    []item
	pause    time.Duration // before the next try; zero while all is well
	reported bool          // OnError knows
}

// New returns an Exporter that has started, but has not connected yet: that the
// receiver is away is no error. Shutdown must be called to stop it. ctx bounds
// only the set-up.
func New(ctx context.Context, o Options) (*Exporter, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("configure OTLP exporter: %w", err)
	}
	client, err := newClient(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("create OTLP exporter: %w", err)
	}
	return start(client, o), nil
}

func start(client sdklog.Exporter, o Options) *Exporter {
	ctx, cancel := context.WithCancel(context.Background())
	e := &Exporter{
		client: client, batchSize: o.BatchSize, onError: o.OnError,
		queue:  newQueue(o.QueueSize),
		queued: make(chan struct{}, 1), now: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
		ctx: ctx, cancel: cancel,
		batch: newBatch(),
	}
	go e.run()
	return e
}

// Window queues w, which is the exporter's from then on. It never blocks. An
// urgent window is sent at once.
func (e *Exporter) Window(w *signal.Window, urgent bool) { e.put(item{window: w}, urgent) }

// Vitals queues v, which is the exporter's from then on. It never blocks.
func (e *Exporter) Vitals(v *signal.Vitals) { e.put(item{vitals: v}, false) }

// Dropped returns how many records were lost since the start: pushed out of the
// full queue, lost with a failed request, refused by the receiver, or handed over
// after Shutdown.
func (e *Exporter) Dropped() uint64 { return e.dropped.Load() }

func (e *Exporter) put(it item, urgent bool) {
	n, lost := e.queue.push(it)
	e.dropped.Add(lost)
	if urgent || n >= e.batchSize {
		wake(e.now)
		return
	}
	wake(e.queued)
}

// wake leaves a note in c unless one is there already.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Shutdown stops taking records, sends what is queued and returns once the
// exporter has stopped. It gives up on a receiver that is away, and when ctx ends;
// what could not be sent is counted as dropped. Calls after the first wait for it
// and return the same.
func (e *Exporter) Shutdown(ctx context.Context) error {
	e.once.Do(func() {
		e.queue.close()
		close(e.stop)
		release := context.AfterFunc(ctx, e.cancel)
		<-e.done
		release()
		e.cancel()
		if err := e.client.Shutdown(ctx); err != nil {
			e.err = fmt.Errorf("shut down OTLP exporter: %w", err)
		}
	})
	return e.err
}

func (e *Exporter) run() {
	defer close(e.done)
	for e.await() {
		e.flush()
	}
	for e.queue.len() > 0 && e.send(e.batchSize) {
	}
	e.dropped.Add(uint64(e.queue.clear()))
}

// await returns true when there is something to send, and false when the
// exporter is to stop.
func (e *Exporter) await() bool {
	select {
	case <-e.stop:
		return false
	case <-e.now:
		return true
	case <-e.queued:
	}
	linger := time.NewTimer(Linger)
	defer linger.Stop()
	select {
	case <-e.stop:
		return false
	case <-e.now:
	case <-linger.C:
	}
	return true
}

// flush sends until nothing waits. While the receiver is away, it tries with one
// record at a time, after pauses that grow.
func (e *Exporter) flush() {
	for e.queue.len() > 0 {
		n := e.batchSize
		if e.pause > 0 {
			n = 1
		}
		if e.send(n) {
			e.pause = 0
			continue
		}
		e.pause = min(max(2*e.pause, minPause), maxPause)
		// Many exporters lose a receiver at one instant; they should not all
		// come back at one.
		wait := time.NewTimer(e.pause/2 + rand.N(e.pause/2))
		select {
		case <-e.stop:
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// send exports up to n records and reports whether the receiver answered.
func (e *Exporter) send(n int) bool {
	e.items = e.queue.take(e.items[:0], n)
	for _, it := range e.items {
		e.batch.add(it)
	}
	ctx, cancel := context.WithTimeout(e.ctx, maxTimeout)
	err := e.client.Export(ctx, e.batch.records)
	cancel()
	lost := uint64(len(e.items))
	clear(e.items)
	e.batch.reset()
	if err == nil {
		e.reported = false
		return true
	}
	refused, answered := rejected(err)
	if answered {
		lost = min(refused, lost)
	}
	e.dropped.Add(lost)
	if !e.reported {
		e.reported = true
		e.onError(fmt.Errorf("export %d records: %w", len(e.items), err))
	}
	return answered
}
