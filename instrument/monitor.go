package instrument

import (
	"fmt"
	"hash/fnv"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Monitor watches one cache in one process. Make one with [New]; close it with
// [Monitor.Close].
type Monitor struct {
	cache  string
	opt    Options
	source signal.Source
	seed   maphash.Seed
	clock  func() time.Time
	began  int64 // when the monitor was made

	table  *table
	active active
	rest   *entry        // stands for every key there was no room for
	hits   wideCounter   // on keys that are not tracked
	runIDs atomic.Uint64 // low 32 bits count recomputes; the high ones are this monitor's

	overflowed atomic.Uint64
	durations  [signal.DurationBuckets]atomic.Uint64 // of recomputes that ended well
	observers  atomic.Pointer[[]Observer]

	urgentMu sync.Mutex
	urgent   []*entry
	wake     chan struct{}

	// flushMu guards what only flushing touches.
	flushMu sync.Mutex
	groups  *groups
	total   signal.Vitals // cumulative, but for what is counted elsewhere
	sinks   []Sink
	sent    int // windows of the flush under way
	coming  coming

	closing sync.Once
	stop    chan struct{}
	stopped chan struct{}
}

// Sink takes what a monitor learned out of it. Its methods are called one at a
// time, from whatever goroutine flushes, and must not block: a sink that cannot
// keep up drops, and counts.
type Sink interface {
	// Window takes one window, which is the sink's to keep. It is urgent if
	// somebody may have to be woken because of it.
	Window(w *signal.Window, urgent bool)
	// Vitals takes the monitor's heartbeat, after the windows of one flush.
	Vitals(v *signal.Vitals)
	// Dropped returns how many records the sink has dropped so far.
	Dropped() uint64
}

// Observer is told of durations as they happen, for histograms. Its methods are
// called on the caller's path, concurrently, with the key's group; they must
// return at once.
type Observer interface {
	RecomputeDuration(group string, d time.Duration)
	EarlyLead(group string, d time.Duration)
	LockWait(group string, d time.Duration)
	LockHold(group string, d time.Duration)
	StoreTTL(group string, d time.Duration)
}

// New returns a monitor of the named cache. The name becomes a metric label and
// must be the same on every instance.
func New(cache string, o Options) (*Monitor, error) {
	o = o.withDefaults()
	if err := o.validate(cache); err != nil {
		return nil, fmt.Errorf("monitor cache %q: %w", cache, err)
	}
	m := &Monitor{
		cache:   cache,
		opt:     o,
		source:  signal.Source{Service: o.Service, Instance: o.Instance, Build: o.Build},
		seed:    maphash.MakeSeed(),
		clock:   o.Now,
		groups:  newGroups(o.MaxGroups),
		coming:  newComing(),
		wake:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
	m.began = m.now()
	m.table = newTable(o.MaxKeys, o.MaxBytes)
	m.rest = &entry{wanted: otherGroup, group: m.groups.other}
	m.runIDs.Store(uint64(sourceHash(m.source, cache, m.began)) << 32)
	if o.Interval < 0 {
		close(m.stopped)
	} else {
		go m.run()
	}
	return m, nil
}

// sourceHash tells the recomputes of one process's life from all others'.
func sourceHash(s signal.Source, cache string, began int64) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%d", s.Service, s.Instance, cache, began)
	return h.Sum32()
}

// Cache returns the name of the cache m watches.
func (m *Monitor) Cache() string {
	if m == nil {
		return ""
	}
	return m.cache
}

// Attach adds a way out: from now on s gets every window and the vitals.
func (m *Monitor) Attach(s Sink) {
	if m == nil {
		return
	}
	m.flushMu.Lock()
	defer m.flushMu.Unlock()
	m.sinks = append(m.sinks, s)
}

// Observe adds an observer of durations.
func (m *Monitor) Observe(o Observer) {
	if m == nil {
		return
	}
	m.flushMu.Lock()
	defer m.flushMu.Unlock()
	all := append(append([]Observer(nil), m.observing()...), o)
	m.observers.Store(&all)
}

func (m *Monitor) observing() []Observer {
	if p := m.observers.Load(); p != nil {
		return *p
	}
	return nil
}

// Close stops the monitor's goroutine, flushes what is left and tells the sinks
// that this source ends in order. Calls after it still count but go nowhere.
// It does not close the sinks. Close is idempotent and returns nil.
func (m *Monitor) Close() error {
	if m == nil {
		return nil
	}
	m.closing.Do(func() {
		close(m.stop)
		<-m.stopped
		m.flush(true)
	})
	return nil
}

// run flushes once per interval, and in between when something is urgent.
func (m *Monitor) run() {
	defer close(m.stopped)
	tick := time.NewTicker(m.opt.Interval)
	defer tick.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-tick.C:
			m.Flush()
		case <-m.wake:
			m.FlushUrgent()
		}
	}
}

// now reads the clock in Unix nanoseconds.
func (m *Monitor) now() int64 { return m.clock().UnixNano() }

// hash never returns zero, which marks an empty slot of the table.
func (m *Monitor) hash(key string) uint64 {
	return max(maphash.String(m.seed, key), 1)
}
