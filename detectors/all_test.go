package detectors_test

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func all(t *testing.T) []detectors.Detector {
	t.Helper()
	ds, err := detectors.All(detectors.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func TestAllListsEveryDetectorOnceInOrder(t *testing.T) {
	var listed, documented, configured []string
	for _, d := range all(t) {
		listed = append(listed, d.Doc().ID)
	}
	for _, d := range detectors.Docs() {
		documented = append(documented, d.ID)
	}
	for i := range reflect.TypeFor[detectors.Config]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[detectors.Config]().Field(i).Tag.Get("yaml"), ",")
		configured = append(configured, name)
	}
	want := slices.Compact(slices.Sorted(slices.Values(listed)))
	for what, got := range map[string][]string{"All": listed, "Docs": documented, "Config": configured} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func TestEveryDetectorIsDocumented(t *testing.T) {
	id := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, doc := range detectors.Docs() {
		if !id.MatchString(doc.ID) {
			t.Errorf("the id %q is not kebab-case", doc.ID)
		}
		if _, err := os.Stat(strings.ReplaceAll(doc.ID, "-", "_") + ".go"); err != nil {
			t.Errorf("%s has no file of its name: %v", doc.ID, err)
		}
		if doc.Title == "" || strings.HasSuffix(doc.Title, ".") {
			t.Errorf("%s: the title is %q, want one without a full stop", doc.ID, doc.Title)
		}
		for field, text := range map[string]string{
			"Meaning": doc.Meaning, "Signal": doc.Signal, "Condition": doc.Condition,
			"Why": doc.Why, "Traps": doc.Traps, "Advice": doc.Advice,
		} {
			if !strings.HasSuffix(text, ".") || strings.Contains(text, "\n") || strings.Contains(text, "  ") {
				t.Errorf("%s: %s is %q, want whole sentences on one line", doc.ID, field, text)
			}
		}
	}
}

func TestEveryDetectorIsQuietWhenNothingHappens(t *testing.T) {
	for _, d := range all(t) {
		for _, tk := range []*signal.Tick{{At: epoch}, tick(second), urgent(tick(2 * second)), with(tick(3*second), feed(silent)), tick(minute, burst(0, 1))} {
			if fs := d.Observe(tk); len(fs) > 0 {
				t.Errorf("%s finds %v", d.Doc().ID, fs)
			}
		}
	}
}

func TestDetectorsOfOneCallShareNothing(t *testing.T) {
	a, b := all(t), all(t)
	for i := range a {
		a[i].Observe(tick(second, burst(0, 100)))
		if fs := b[i].Observe(tick(2 * second)); len(fs) > 0 {
			t.Errorf("%s finds what another instance was shown", b[i].Doc().ID)
		}
	}
}

func TestWrongConfigurationIsNamed(t *testing.T) {
	tests := []struct {
		c    expiry
		want string
	}{
		{expiry{PagePeak: 1}, "page_peak is 1: want 2 to 1000000"},
		{expiry{PagePeak: -20}, "page_peak is -20: want 2 to 1000000"},
		{expiry{PagePeakNoBudget: 1_000_001}, "page_peak_no_budget is 1000001: want 2 to 1000000"},
		{expiry{TicketPeak: 1}, "ticket_peak is 1: want 2 to 1000000"},
		{expiry{TicketOf: 21}, "ticket_of is 21: want 1 to 20"},
		{expiry{TicketEpisodes: 6}, "ticket_episodes is 6: want 1 to 5"},
		{expiry{TicketOf: 2}, "ticket_episodes is 3: want 1 to 2"},
		{expiry{ClearPagePeak: 21}, "clear_page_peak is 21: want 2 to 20"},
		{expiry{PagePeakNoBudget: 15, ClearPagePeak: 16}, "clear_page_peak is 16: want 2 to 15"},
		{expiry{ClearTicketPeak: 6}, "clear_ticket_peak is 6: want 2 to 5"},
		{expiry{ClearAfter: 999 * ms}, "clear_after is 999ms: want 1s to 24h0m0s"},
		{expiry{ColdStart: 2 * time.Hour}, "cold_start is 2h0m0s: want 1s to 1h0m0s"},
		{expiry{MaxKeys: 99}, "max_keys is 99: want 100 to 1000000"},
	}
	for _, tc := range tests {
		t.Run(tc.want, func(t *testing.T) {
			_, err := detectors.All(detectors.Config{HotKeyExpiry: tc.c})
			if want := "configure hot-key-expiry: " + tc.want; err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
		})
	}
	for _, c := range []expiry{{PagePeak: 2}, {PagePeak: 3, TicketPeak: 2}, {PagePeak: 1_000_000, PagePeakNoBudget: 1_000_000}, {TicketOf: 20, TicketEpisodes: 20}, {TicketOf: 1, TicketEpisodes: 1}} {
		if _, err := detectors.NewHotKeyExpiry(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestSeveritiesTravelByName(t *testing.T) {
	for _, s := range []detectors.Severity{detectors.Info, detectors.Ticket, detectors.Page} {
		text, err := s.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back detectors.Severity
		if err := back.UnmarshalText(text); err != nil || back != s {
			t.Errorf("%s comes back as %v, %v", text, back, err)
		}
	}
	var s detectors.Severity
	if err := s.UnmarshalText([]byte("Page")); err == nil || s != 0 {
		t.Errorf("Page is taken for %v", s)
	}
	if got := fmt.Sprint(detectors.Severity(9)); got != "unknown" {
		t.Errorf("severity 9 is called %q", got)
	}
}
