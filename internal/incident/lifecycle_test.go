package incident_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
)

func TestLifecycle(t *testing.T) {
	type tick struct {
		at       float64 // seconds
		findings []detectors.Finding
	}
	one := func(at float64, fs ...detectors.Finding) tick { return tick{at, fs} }
	tests := []struct {
		name  string
		opts  incident.Options
		ticks []tick
		heard []string
		open  int
		all   int
	}{
		{
			name:  "the first finding of a page opens an incident",
			ticks: []tick{one(1, page())},
			heard: []string{"1s opened page/2"}, open: 1, all: 1,
		},
		{
			name:  "the first finding of a ticket opens an incident",
			ticks: []tick{one(1, ticket())},
			heard: []string{"1s opened ticket"}, open: 1, all: 1,
		},
		{
			name:  "the first finding for information opens an incident",
			ticks: []tick{one(1, info())},
			heard: []string{"1s opened info"}, open: 1, all: 1,
		},
		{
			name:  "a repeated finding updates and does not open",
			ticks: []tick{one(1, page()), one(2, page()), one(3, page())},
			heard: []string{"1s opened page/2", "2s updated page/2", "3s updated page/2"}, open: 1, all: 1,
		},
		{
			name:  "severity and priority rise and fall",
			ticks: []tick{one(1, ticket()), one(2, page()), one(3, page(severity(detectors.Page, 1))), one(4, ticket())},
			heard: []string{"1s opened ticket", "2s severity_changed page/2", "3s severity_changed page/1", "4s severity_changed ticket"},
			open:  1, all: 1,
		},
		{
			name:  "a clearing finding closes, whatever its severity says",
			ticks: []tick{one(1, page()), one(2, info(cleared))},
			heard: []string{"1s opened page/2", "2s closed page/2"}, all: 1,
		},
		{
			name:  "silence closes nothing",
			ticks: []tick{one(1, page()), one(100_000)},
			heard: []string{"1s opened page/2"}, open: 1, all: 1,
		},
		{
			name:  "a clearing finding of something unknown is nothing",
			ticks: []tick{one(1, page(cleared))},
		},
		{
			name:  "the same cause at the end of the regroup time reopens",
			ticks: []tick{one(0, page()), one(10, page(cleared)), one(1810, ticket()), one(1820, ticket(cleared))},
			heard: []string{"0s opened page/2", "10s closed page/2", "30m10s reopened ticket", "30m20s closed ticket"}, all: 1,
		},
		{
			name:  "the same cause after the regroup time opens another",
			ticks: []tick{one(0, page()), one(10, page(cleared)), one(1810.1, page())},
			heard: []string{"0s opened page/2", "10s closed page/2", "30m10.1s opened page/2"}, open: 1, all: 2,
		},
		{
			name:  "without regrouping the same cause always opens another",
			opts:  incident.Options{Regroup: -1},
			ticks: []tick{one(0, page()), one(10, page(cleared)), one(10, page())},
			heard: []string{"0s opened page/2", "10s closed page/2", "10s opened page/2"}, open: 1, all: 2,
		},
		{
			name:  "of two findings of one subject at one tick the last counts",
			ticks: []tick{one(0, page()), one(5, page(cleared), page()), one(6, page(), page(cleared))},
			heard: []string{"0s opened page/2", "5s updated page/2", "6s closed page/2"}, all: 1,
		},
		{
			name: "detector, service, cache and key tell causes apart",
			ticks: []tick{one(1, page(), page(key(8)), page(cache("other")),
				page(func(f *detectors.Finding) { f.Service = "" }),
				page(detector("vulnerable")))},
			heard: []string{"1s opened page/2", "1s opened page/2", "1s opened page/2", "1s opened page/2", "1s opened page/2"},
			open:  5, all: 5,
		},
		{
			name: "the name of the group and the text of the key do not",
			ticks: []tick{one(1, page()), one(2, page(func(f *detectors.Finding) {
				f.Key.Group, f.Key.Text = "feed:<id>", "feed:7"
			}))},
			heard: []string{"1s opened page/2", "2s updated page/2"}, open: 1, all: 1,
		},
		{
			name:  "only so many closed incidents are kept, and one forgotten is not reopened",
			opts:  incident.Options{Keep: 1},
			ticks: []tick{one(1, page(), page(key(8))), one(2, page(cleared)), one(3, page(key(8), cleared)), one(4, page())},
			heard: []string{"1s opened page/2", "1s opened page/2", "2s closed page/2", "3s closed page/2", "4s opened page/2"},
			open:  1, all: 2,
		},
		{
			name:  "beyond the bound a finding is dropped",
			opts:  incident.Options{MaxOpen: 1},
			ticks: []tick{one(1, page()), one(2, page(key(8)), ticket(key(9)))},
			heard: []string{"1s opened page/2"}, open: 1, all: 1,
		},
		{
			name:  "beyond the bound a page takes the place of the latest of the least severe",
			opts:  incident.Options{MaxOpen: 3},
			ticks: []tick{one(1, ticket()), one(2, info(key(8))), one(3, info(key(9))), one(4, page(key(10)))},
			heard: []string{"1s opened ticket", "2s opened info", "3s opened info",
				"4s closed info: displaced by a worse incident", "4s opened page/2"},
			open: 3, all: 4,
		},
		{
			name:  "a clock set back closes nothing before it opened",
			ticks: []tick{one(100, page()), one(50, page(cleared))},
			heard: []string{"1m40s opened page/2", "50s closed page/2"}, all: 1,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var r recorder
			tc.opts.Listeners = []incident.Listener{&r}
			m := newManager(t, tc.opts)
			for _, tick := range tc.ticks {
				m.Apply(after(tick.at), tick.findings)
			}
			if diff := cmp.Diff(tc.heard, r.heard()); diff != "" {
				t.Errorf("changes heard (-want +got):\n%s", diff)
			}
			if got := len(m.Open()); got != tc.open {
				t.Errorf("%d open incidents, want %d", got, tc.open)
			}
			if got := len(m.All()); got != tc.all {
				t.Errorf("%d incidents, want %d", got, tc.all)
			}
			for _, inc := range m.All() {
				if !inc.Open() && inc.Closed < inc.Opened {
					t.Errorf("incident %s closed at %d, before it opened at %d", inc.ID, inc.Closed, inc.Opened)
				}
			}
		})
	}
}

func TestAnIncidentKeepsTheLatestAndTheWorst(t *testing.T) {
	m := newManager(t, incident.Options{})
	m.Apply(after(1), []detectors.Finding{page(peak(20), onset(after(0.5)))})
	m.Apply(after(2), []detectors.Finding{page(peak(80), onset(after(0.2)))})
	m.Apply(after(3), []detectors.Finding{page(peak(40), onset(after(0.4)))})
	m.Apply(after(4), []detectors.Finding{ticket(peak(500))})
	m.Apply(after(5), []detectors.Finding{page(peak(0), cleared, func(f *detectors.Finding) { f.Summary = "It is over." })})

	got := m.All()[0]
	want := incident.Incident{
		ID: got.ID, Detector: "hot-key-expiry", Service: "shop", Cache: "redis", Key: page().Key,
		Severity: detectors.Ticket, Onset: epoch, Opened: after(1), Updated: after(5), Closed: after(5), Episodes: 1,
		Finding: page(peak(0), cleared, func(f *detectors.Finding) { f.Summary = "It is over." }),
		Worst:   page(peak(80), onset(after(0.2))),
		Changes: []incident.Change{
			{At: after(1), Kind: incident.Opened, Severity: detectors.Page, Priority: 2},
			{At: after(4), Kind: incident.SeverityChanged, Severity: detectors.Ticket},
			{At: after(5), Kind: incident.Closed, Severity: detectors.Ticket},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPriorityOneIsWorseThanTwoAndAnyThanNone(t *testing.T) {
	m := newManager(t, incident.Options{})
	for i, priority := range []int{0, 2, 1, 2, 0} {
		m.Apply(after(float64(i)), []detectors.Finding{page(severity(detectors.Page, priority))})
	}
	if got := m.Open()[0].Worst.Priority; got != 1 {
		t.Errorf("worst priority is %d, want 1", got)
	}
}

func TestTheTimelineIsBoundedAndKeepsItsBeginning(t *testing.T) {
	m := newManager(t, incident.Options{})
	const flaps = 200
	for i := range flaps {
		f := page()
		if i%2 == 1 {
			f = ticket()
		}
		m.Apply(after(float64(i)), []detectors.Finding{f})
	}
	inc := m.Open()[0]
	if len(inc.Changes) != incident.MaxChanges || inc.ChangesDropped != flaps-incident.MaxChanges {
		t.Errorf("%d changes, %d dropped: want %d and %d", len(inc.Changes), inc.ChangesDropped, incident.MaxChanges, flaps-incident.MaxChanges)
	}
	if first := inc.Changes[0]; first.Kind != incident.Opened || first.At != epoch {
		t.Errorf("the first change is %+v, want the opening", first)
	}
	for i := 1; i < len(inc.Changes); i++ {
		if want := after(float64(flaps - incident.MaxChanges + i)); inc.Changes[i].At != want {
			t.Fatalf("change %d is of %v, want %v", i, inc.Changes[i].At.Sub(epoch), want.Sub(epoch))
		}
	}
}

func TestEvidenceThatIsNotANumberIsDropped(t *testing.T) {
	m := newManager(t, incident.Options{})
	zero := 0.0
	f := page()
	f.Evidence = []detectors.Evidence{{Name: "a", Value: 1 / zero}, {Name: "b", Value: 2}, {Name: "c", Value: zero / zero}}
	m.Apply(after(1), []detectors.Finding{f})
	want := []detectors.Evidence{{Name: "b", Value: 2}}
	if diff := cmp.Diff(want, m.Open()[0].Finding.Evidence); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(f.Evidence) != 3 || f.Evidence[1].Name != "b" {
		t.Errorf("the detector's own evidence was changed: %v", f.Evidence)
	}
	if got := m.Stats().EvidenceDropped; got != 2 {
		t.Errorf("%d pieces counted as dropped, want 2", got)
	}
}

func TestIDs(t *testing.T) {
	id := func(t *testing.T, fs ...detectors.Finding) []string {
		m := newManager(t, incident.Options{Regroup: -1})
		for i, f := range fs {
			m.Apply(after(float64(i)), []detectors.Finding{f})
		}
		var ids []string
		for _, inc := range m.All() {
			ids = append(ids, inc.ID)
		}
		return ids
	}
	t.Run("the same findings give the same ids whenever they come", func(t *testing.T) {
		first, again := id(t, page()), id(t, info(key(99)), page())
		if first[0] != again[0] {
			t.Errorf("got %s and %s", first[0], again[0])
		}
	})
	t.Run("causes do not run into each other", func(t *testing.T) {
		a := page(func(f *detectors.Finding) { f.Service, f.Cache = "a", "bc" })
		b := page(func(f *detectors.Finding) { f.Service, f.Cache = "ab", "c" })
		if ids := id(t, a, b); ids[0] == ids[1] {
			t.Errorf("both have id %s", ids[0])
		}
	})
	t.Run("two incidents of one cause and onset have two ids", func(t *testing.T) {
		if ids := id(t, page(), page(cleared), page()); len(ids) != 2 || ids[0] == ids[1] {
			t.Errorf("ids are %v", ids)
		}
	})
	t.Run("an id is short and safe in a URL", func(t *testing.T) {
		odd := page(func(f *detectors.Finding) { f.Service, f.Cache = "../<script>", "\xff\x00" })
		for _, c := range id(t, odd)[0] {
			if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
				t.Errorf("it has %q", c)
			}
		}
		if n := len(id(t, odd)[0]); n != 12 {
			t.Errorf("it has %d characters, want 12", n)
		}
	})
}

func TestAFindingWithoutOnsetBeganWhenItWasDetectedOrHeardOf(t *testing.T) {
	m := newManager(t, incident.Options{})
	m.Apply(after(9), []detectors.Finding{
		page(func(f *detectors.Finding) { f.Onset, f.Detected = 0, after(3) }),
		page(key(8), func(f *detectors.Finding) { f.Onset, f.Detected = 0, 0 }),
	})
	got := map[int]bool{}
	for _, inc := range m.Open() {
		got[int(inc.Onset.Sub(epoch)/time.Second)] = true
	}
	if diff := cmp.Diff(map[int]bool{3: true, 9: true}, got); diff != "" {
		t.Errorf("onsets (-want +got):\n%s", diff)
	}
}
