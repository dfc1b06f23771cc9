package incident_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// roleEnv makes the test binary play another part; see children.
const roleEnv = "STAMPEDE_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		children[role]()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// epoch is when every test begins.
var epoch = signal.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// after returns the instant s seconds into the test.
func after(s float64) signal.Nanos {
	return epoch.Add(time.Duration(s * float64(time.Second)))
}

// page is a finding that wakes somebody; tests change what they care about.
func page(change ...func(*detectors.Finding)) detectors.Finding {
	f := detectors.Finding{
		Detector: "hot-key-expiry",
		Service:  "shop",
		Cache:    "redis",
		Key:      signal.Key{ID: 7, Group: "feed:*"},
		Severity: detectors.Page,
		Priority: 2,
		Onset:    epoch,
		Detected: epoch,
		Summary:  "A hot key expired.",
		Advice:   "Switch on single-flight.",
		Evidence: []detectors.Evidence{{Name: "peak", Value: 20, Unit: "{recompute}"}},
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func ticket(change ...func(*detectors.Finding)) detectors.Finding {
	return page(append([]func(*detectors.Finding){severity(detectors.Ticket, 0)}, change...)...)
}

func info(change ...func(*detectors.Finding)) detectors.Finding {
	return page(append([]func(*detectors.Finding){severity(detectors.Info, 0)}, change...)...)
}

func severity(s detectors.Severity, priority int) func(*detectors.Finding) {
	return func(f *detectors.Finding) { f.Severity, f.Priority = s, priority }
}

func key(id uint64) func(*detectors.Finding) {
	return func(f *detectors.Finding) { f.Key.ID = signal.KeyID(id) }
}

// detector makes a finding another detector's, about the whole cache unless a
// later change says otherwise.
func detector(id string) func(*detectors.Finding) {
	return func(f *detectors.Finding) { f.Detector, f.Key = id, signal.Key{} }
}

func cache(name string) func(*detectors.Finding) {
	return func(f *detectors.Finding) { f.Cache = name }
}

func onset(at signal.Nanos) func(*detectors.Finding) {
	return func(f *detectors.Finding) { f.Onset = at }
}

func peak(v float64) func(*detectors.Finding) {
	return func(f *detectors.Finding) { f.Evidence = []detectors.Evidence{{Name: "peak", Value: v}} }
}

func cleared(f *detectors.Finding) { f.Cleared = true }

// recorder is a listener that writes down what it hears.
type recorder struct {
	mu   sync.Mutex
	kept []string
	last incident.Incident
}

func (r *recorder) IncidentChanged(i incident.Incident, c incident.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := fmt.Sprintf("%v %s %s", c.At.Sub(epoch), c.Kind, c.Severity)
	if c.Priority > 0 {
		line += fmt.Sprintf("/%d", c.Priority)
	}
	if c.Reason != "" {
		line += ": " + c.Reason
	}
	r.kept = append(r.kept, line)
	r.last = i
}

// heard returns what was heard since it was last asked.
func (r *recorder) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.kept
	r.kept = nil
	return kept
}

func newManager(t testing.TB, o incident.Options) *incident.Manager {
	t.Helper()
	m, err := incident.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return m
}
