package incident_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
)

func TestOptionsAreChecked(t *testing.T) {
	tests := []struct {
		name string
		opts incident.Options
		want string
	}{
		{"regroup too long", incident.Options{Regroup: 25 * time.Hour}, "Regroup is 25h0m0s: want at most 24h0m0s"},
		{"confirmation too soon", incident.Options{ConfirmWithin: time.Millisecond}, "ConfirmWithin is 1ms: want 1s to 24h0m0s"},
		{"negative keep", incident.Options{Keep: -1}, "Keep is -1: want 1 to 100000"},
		{"too many open", incident.Options{MaxOpen: 1e6}, "MaxOpen is 1000000: want 1 to 100000"},
		{"nil listener", incident.Options{Listeners: []incident.Listener{nil}}, "Listeners[0] is nil"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := incident.New(tc.opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
		})
	}
}

func TestListingsAreInOrder(t *testing.T) {
	m := newManager(t, incident.Options{})
	m.Apply(after(1), []detectors.Finding{page(key(1)), ticket(key(2)), info(key(3)), page(key(4), severity(detectors.Page, 1)), page(key(5)), page(key(6))})
	m.Apply(after(2), []detectors.Finding{page(key(7))})
	m.Apply(after(3), []detectors.Finding{page(key(5), cleared)})
	m.Apply(after(4), []detectors.Finding{page(key(6), cleared)})

	var got []uint64
	for _, inc := range m.All() {
		got = append(got, uint64(inc.Key.ID))
	}
	// The worst, then the latest; then the closed, the latest first.
	if want := []uint64{4, 7, 1, 2, 3, 6, 5}; !slices.Equal(got, want) {
		t.Errorf("keys come as %v, want %v", got, want)
	}
	if open := m.Open(); len(open) != 5 {
		t.Errorf("%d open, want 5", len(open))
	}
}

func TestGetFindsOpenAndClosedIncidentsUntilTheyAreForgotten(t *testing.T) {
	m := newManager(t, incident.Options{Keep: 1})
	m.Apply(after(1), []detectors.Finding{page(), page(key(8))})
	ids := map[string]bool{}
	for _, inc := range m.Open() {
		ids[inc.ID] = true
		if got, ok := m.Get(inc.ID); !ok || got.ID != inc.ID {
			t.Errorf("get %s: %v, %t", inc.ID, got, ok)
		}
	}
	m.Apply(after(2), []detectors.Finding{page(cleared)})
	m.Apply(after(3), []detectors.Finding{page(key(8), cleared)})
	kept := m.All()[0].ID
	for id := range ids {
		if _, ok := m.Get(id); ok != (id == kept) {
			t.Errorf("get %s: %t, want %t", id, ok, id == kept)
		}
	}
}

func TestStatsCountByLabelsAndKeepSeriesAtZero(t *testing.T) {
	m := newManager(t, incident.Options{MaxOpen: 2})
	m.Apply(after(1), []detectors.Finding{page(), page(key(8)), page(key(9))})
	m.Apply(after(2), []detectors.Finding{ticket(key(8))})
	m.Apply(after(3), []detectors.Finding{page(cleared)})
	m.Apply(after(4), []detectors.Finding{page()})

	labels := incident.Labels{Detector: "hot-key-expiry", Service: "shop", Cache: "redis"}
	pages, tickets := labels, labels
	pages.Severity, tickets.Severity = detectors.Page, detectors.Ticket
	want := incident.Stats{
		Series:   []incident.Series{{Labels: tickets, Open: 1}, {Labels: pages, Open: 1, Opened: 2}},
		Reopened: 1, Closed: 1, Overflowed: 1,
	}
	if diff := cmp.Diff(want, m.Stats()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	m := newManager(t, incident.Options{})
	for i := range incident.MaxSeries + 100 {
		m.Apply(after(float64(i)), []detectors.Finding{page(cache("c" + strconv.Itoa(i)))})
	}
	series := m.Stats().Series
	if len(series) != incident.MaxSeries+1 {
		t.Fatalf("%d series, want %d and one for the rest", len(series), incident.MaxSeries)
	}
	open, opened := 0, uint64(0)
	for _, s := range series {
		open += s.Open
		opened += s.Opened
		if s.Cache == "other" && (s.Open != 100 || s.Opened != 100 || s.Service != "") {
			t.Errorf("the rest is %+v, want 100", s)
		}
	}
	if open != incident.MaxSeries+100 || opened != incident.MaxSeries+100 {
		t.Errorf("%d open, %d opened in all, want %d", open, opened, incident.MaxSeries+100)
	}
}

func TestAListenerThatComesLateHearsOfWhatIsOpenAndNothingAfterItLeaves(t *testing.T) {
	m := newManager(t, incident.Options{})
	m.Apply(after(1), []detectors.Finding{page(), page(key(8)), page(key(9))})
	m.Apply(after(2), []detectors.Finding{page(key(9), cleared)})

	var first, second recorder
	cancel := m.Subscribe(&first)
	m.Subscribe(&second)
	m.Apply(after(3), []detectors.Finding{page(cleared)})
	cancel()
	m.Apply(after(4), []detectors.Finding{page(key(8), cleared)})

	resumed := []string{"1s resumed page/2", "1s resumed page/2", "3s closed page/2"}
	if diff := cmp.Diff(resumed, first.heard()); diff != "" {
		t.Errorf("the first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(resumed, "4s closed page/2"), second.heard()); diff != "" {
		t.Errorf("the second (-want +got):\n%s", diff)
	}
}

func TestTheSameListenerTwiceIsTwoListeners(t *testing.T) {
	m := newManager(t, incident.Options{})
	var r recorder
	cancel := m.Subscribe(&r)
	m.Subscribe(&r)
	cancel()
	m.Apply(after(1), []detectors.Finding{page()})
	if diff := cmp.Diff([]string{"1s opened page/2"}, r.heard()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// reader reads from the manager whenever something changes.
type reader struct{ m *incident.Manager }

func (r *reader) IncidentChanged(i incident.Incident, c incident.Change) {
	if r.m != nil {
		r.m.Open()
		r.m.Get(i.ID)
	}
}

func TestReadersAndListenersMayReadWhileFindingsAreApplied(t *testing.T) {
	r := &reader{}
	m := newManager(t, incident.Options{StateFile: t.TempDir() + "/state.json", Keep: 5})
	r.m = m
	m.Subscribe(r)

	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for _, inc := range m.All() {
					if len(inc.Changes) == 0 || inc.Changes[0].Kind != incident.Opened {
						t.Errorf("incident %s has changes %v", inc.ID, inc.Changes)
					}
				}
				m.Stats()
			}
		})
	}
	for i := range 500 {
		f := page(key(uint64(i % 17)))
		f.Cleared = i%3 == 0
		m.Apply(after(float64(i)), []detectors.Finding{f, ticket(key(uint64(i % 13)))})
	}
	close(done)
	readers.Wait()
}

func TestACopyOfAnIncidentStaysAsItIs(t *testing.T) {
	m := newManager(t, incident.Options{})
	m.Apply(after(1), []detectors.Finding{page()})
	before := m.Open()[0]
	m.Apply(after(2), []detectors.Finding{ticket(peak(99))})
	m.Apply(after(3), []detectors.Finding{page(cleared)})
	if len(before.Changes) != 1 || before.Severity != detectors.Page || before.Finding.Evidence[0].Value != 20 {
		t.Errorf("the copy is now %+v", before)
	}
}

func TestTheLogNamesChangesButNoKeys(t *testing.T) {
	var out bytes.Buffer
	plain := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	m := newManager(t, incident.Options{MaxOpen: 1, Listeners: []incident.Listener{incident.NewLog(plain)}})
	secret := func(f *detectors.Finding) { f.Key.Text = "feed:secret" }
	m.Apply(after(1), []detectors.Finding{ticket(secret)})
	m.Apply(after(2), []detectors.Finding{ticket(secret)})
	m.Apply(after(3), []detectors.Finding{page(secret, key(8))})
	id := func(i int) string { return m.All()[i].ID }

	rest := ` detector=hot-key-expiry service=shop cache=redis key_group=feed:* `
	end := ` onset=2026-03-01T12:00:00.000Z summary="A hot key expired."`
	want := `level=INFO msg="Incident opened" id=` + id(1) + rest + `severity=ticket` + end + "\n" +
		`level=INFO msg="Incident closed" id=` + id(1) + rest + `severity=ticket` + end + ` reason="displaced by a worse incident"` + "\n" +
		`level=WARN msg="Incident opened" id=` + id(0) + rest + `severity=page` + end + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheLogNamesTheClassThatChanged(t *testing.T) {
	var out bytes.Buffer
	m := newManager(t, incident.Options{Listeners: []incident.Listener{incident.NewLog(slog.New(slog.NewTextHandler(&out, nil)))}})
	m.Apply(after(1), []detectors.Finding{hot()})
	m.Apply(after(2), []detectors.Finding{of("synchronized-expiry")})
	for _, want := range []string{`msg="Incident changed class"`, "detector=synchronized-expiry", "was=hot-key-expiry"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, out.String())
		}
	}
}
