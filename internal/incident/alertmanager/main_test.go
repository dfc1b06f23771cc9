package alertmanager_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alert is an alert as an Alertmanager reads it.
type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
}

// name returns a's labels as one string.
func (a alert) name() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(a.Labels)) {
		parts = append(parts, k+"="+a.Labels[k])
	}
	return strings.Join(parts, " ")
}

// fake is an Alertmanager in memory, behind a client that needs no network and
// so works in a synctest bubble. Its fields may be changed under mu.
type fake struct {
	mu      sync.Mutex
	status  int           // of answers; 0 is 200
	delay   time.Duration // before answers
	batches [][]alert
	times   []time.Time
	state   map[string]alert // the latest alert of each set of labels
}

func (f *fake) client() *http.Client { return &http.Client{Transport: f} }

// RoundTrip implements [http.RoundTripper].
func (f *fake) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	delay := f.delay
	f.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times = append(f.times, time.Now())
	status := cmp.Or(f.status, http.StatusOK)
	if status == http.StatusOK {
		var batch []alert
		if err := json.Unmarshal(body, &batch); err != nil {
			return nil, err
		}
		f.take(batch)
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)),
		Body: io.NopCloser(bytes.NewReader([]byte("says\nno"))), Request: req,
	}, nil
}

func (f *fake) take(batch []alert) {
	f.batches = append(f.batches, batch)
	if f.state == nil {
		f.state = map[string]alert{}
	}
	for _, a := range batch {
		f.state[a.name()] = a
	}
}

// got returns the batches that came since it was last asked.
func (f *fake) got() [][]alert {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.batches
	f.batches = nil
	return b
}

// requests returns when requests came since it was last asked.
func (f *fake) requests() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	times := f.times
	f.times = nil
	return times
}

func (f *fake) answer(status int, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.status, f.delay = status, delay
}

// firing returns the labels of alerts that have not ended, sorted.
func (f *fake) firing() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for name, a := range f.state {
		if a.EndsAt.After(time.Now()) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func newNotifier(t testing.TB, o alertmanager.Options) *alertmanager.Notifier {
	t.Helper()
	if o.URLs == nil {
		o.URLs = []string{"http://alertmanager.example"}
	}
	n, err := alertmanager.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Errorf("close: %v", err)
		}
	})
	return n
}

// newManager returns a manager that tells n of its incidents.
func newManager(t testing.TB, n *alertmanager.Notifier) *incident.Manager {
	t.Helper()
	m, err := incident.New(incident.Options{Listeners: []incident.Listener{n}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// apply applies findings now.
func apply(m *incident.Manager, fs ...detectors.Finding) { m.Apply(signal.At(time.Now()), fs) }

// page is a finding that wakes somebody, and began a second ago.
func page(change ...func(*detectors.Finding)) detectors.Finding {
	onset := signal.At(time.Now().Add(-time.Second))
	f := detectors.Finding{
		Detector: "hot-key-expiry",
		Service:  "shop",
		Cache:    "redis",
		Key:      signal.Key{ID: 7, Group: "feed:*"},
		Severity: detectors.Page,
		Priority: 2,
		Onset:    onset,
		Detected: onset,
		Summary:  "120 recomputes of one key of feed:* ran at once.",
		Advice:   "Switch on single-flight.",
		Evidence: []detectors.Evidence{
			{Name: "peak", Value: 120, Unit: "{recompute}", Note: "budget 8"},
			{Name: "origin.wasted", Value: 47.6, Unit: "s"},
		},
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func ticket(f *detectors.Finding)  { f.Severity, f.Priority = detectors.Ticket, 0 }
func info(f *detectors.Finding)    { f.Severity, f.Priority = detectors.Info, 0 }
func cleared(f *detectors.Finding) { f.Cleared = true }

func key(id uint64) func(*detectors.Finding) {
	return func(f *detectors.Finding) { f.Key.ID = signal.KeyID(id) }
}

// detector makes a finding another detector's, about the whole cache.
func detector(id string) func(*detectors.Finding) {
	return func(f *detectors.Finding) { f.Detector, f.Key = id, signal.Key{} }
}

func cache(name string) func(*detectors.Finding) {
	return func(f *detectors.Finding) { f.Cache = name }
}

// wait lets fake time pass. It is for synctest bubbles.
func wait(d time.Duration) { <-time.After(d) }
