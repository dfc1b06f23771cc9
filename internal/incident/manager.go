package incident

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Manager keeps incidents. All methods are safe for concurrent use; reading
// never waits for a listener or a disk.
type Manager struct {
	opts Options

	// calls makes one call of Apply or Subscribe follow another, so that
	// listeners hear of changes in the order they happened. It is taken before
	// mu, and held while listeners run; mu is not.
	calls     sync.Mutex
	listeners []*Listener // guarded by calls; pointers, so that each is itself

	mu   sync.RWMutex
	book *book // guarded by mu

	saving  sync.Mutex // held while the state file is written
	failing bool       // the last save failed; guarded by mu
	saver   *saver     // nil without a state file
}

// New returns a manager with the incidents of the state file, if there is one.
// A state file that cannot be used is set aside, logged and counted; only wrong
// options are an error. The caller must Close the manager.
func New(o Options) (*Manager, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("configure incidents: %w", err)
	}
	m := &Manager{opts: o, book: newBook(o)}
	if o.StateFile != "" {
		m.load()
		m.saver = startSaver(m.saveIfChanged)
	}
	for _, l := range o.Listeners {
		m.Subscribe(l)
	}
	return m, nil
}

// Apply takes what the detectors found at one tick, in any order, and tells
// listeners of what changed. Call it at every tick, also with no findings: that
// is how time passes. now is the exporter's clock. It takes no hold of fs.
func (m *Manager) Apply(now signal.Nanos, fs []detectors.Finding) {
	m.calls.Lock()
	defer m.calls.Unlock()
	changes, urgent := m.applyLocked(now, fs)
	if urgent && m.saver != nil {
		m.saver.hurry()
	}
	for _, l := range m.listeners {
		for _, c := range changes {
			(*l).IncidentChanged(c.incident, c.change)
		}
	}
}

// applyLocked is called with calls held.
func (m *Manager) applyLocked(now signal.Nanos, fs []detectors.Finding) (changes []changed, urgent bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.book.apply(now, fs)
	return m.book.takeChanges()
}

// Subscribe adds a listener and tells it of all open incidents, with [Resumed].
// The function it returns makes the manager forget the listener: once it has
// returned, the listener hears nothing more.
func (m *Manager) Subscribe(l Listener) (cancel func()) {
	m.calls.Lock()
	defer m.calls.Unlock()
	m.listeners = append(m.listeners, &l)
	for _, inc := range m.Open() {
		l.IncidentChanged(inc, Change{At: inc.Updated, Kind: Resumed, Severity: inc.Severity, Priority: inc.Priority})
	}
	return func() {
		m.calls.Lock()
		defer m.calls.Unlock()
		m.listeners = slices.DeleteFunc(m.listeners, func(other *Listener) bool { return other == &l })
	}
}

// Open returns the open incidents, the worst first, in the order of [Compare].
func (m *Manager) Open() []Incident { return m.list(false) }

// All returns the open incidents and then the closed ones that are remembered,
// in the order of [Compare].
func (m *Manager) All() []Incident { return m.list(true) }

// list sorts what it copied after it has let the book go.
func (m *Manager) list(all bool) []Incident {
	m.mu.RLock()
	out := m.book.copies(all)
	m.mu.RUnlock()
	slices.SortFunc(out, func(a, b Incident) int { return Compare(&a, &b) })
	return out
}

// Get returns the incident called id, and whether it is remembered.
func (m *Manager) Get(id string) (Incident, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if inc := m.book.byID[id]; inc != nil {
		return *inc, true
	}
	return Incident{}, false
}

// Stats returns all counts.
func (m *Manager) Stats() Stats {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.book.snapshot()
}

// Close writes the state file a last time, if anything changed, and stops what
// the manager started. Incidents stay as they are: open ones are resumed by the
// next manager. The manager can still be used, but saves no more by itself.
func (m *Manager) Close() error {
	if m.saver == nil {
		return nil
	}
	m.saver.stop()
	_, err := m.saveIfChanged()
	return err
}

// Save writes the state file now, changed or not, and returns when it is on
// disk. It need not be called: what changes is saved by itself. Without a state
// file it does nothing.
func (m *Manager) Save() error {
	if m.opts.StateFile == "" {
		return nil
	}
	return m.save()
}

// saveIfChanged saves if anything changed since the last save, and returns how
// long that took.
func (m *Manager) saveIfChanged() (time.Duration, error) {
	m.mu.RLock()
	dirty := m.book.dirty
	m.mu.RUnlock()
	if !dirty {
		return 0, nil
	}
	start := time.Now()
	err := m.save()
	return time.Since(start), err
}
