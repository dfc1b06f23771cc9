package alertmanager_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager"
)

// sent returns the first batch sent for findings applied at one tick.
func sent(t *testing.T, o alertmanager.Options, fs ...func() detectors.Finding) (alerts []alert, ids []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var am fake
		o.Client = am.client()
		m := newManager(t, newNotifier(t, o))
		var all []detectors.Finding
		for _, f := range fs {
			all = append(all, f())
		}
		apply(m, all...)
		wait(time.Second)
		for _, batch := range am.got() {
			alerts = append(alerts, batch...)
		}
		for _, inc := range m.Open() {
			ids = append(ids, inc.ID)
		}
	})
	return alerts, ids
}

// bubble is when a synctest bubble begins.
var bubble = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestAnAlertSaysWhatTheIncidentIs(t *testing.T) {
	o := alertmanager.Options{ExternalURL: "https://stampede.example/x/", Labels: map[string]string{"cluster": "eu"}}
	alerts, ids := sent(t, o, func() detectors.Finding { return page() })
	want := []alert{{
		Labels: map[string]string{
			"alertname": "StampedeHotKeyExpiry", "detector": "hot-key-expiry", "service": "shop",
			"cache": "redis", "severity": "page", "cluster": "eu",
		},
		Annotations: map[string]string{
			"summary":       "120 recomputes of one key of feed:* ran at once.",
			"description":   "Switch on single-flight.",
			"runbook_url":   "https://github.com/stampede-exporter/stampede-exporter/blob/main/alerts/runbooks/hot-key-expiry.md",
			"key_group":     "feed:*",
			"priority":      "P2",
			"incidents":     ids[0],
			"peak":          "120 recomputes (budget 8)",
			"origin_wasted": "47.6s",
		},
		StartsAt:     bubble.Add(-time.Second),
		EndsAt:       bubble.Add(2*time.Minute + 100*time.Millisecond),
		GeneratorURL: "https://stampede.example/x/incidents/" + ids[0],
	}}
	if diff := cmp.Diff(want, alerts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnAlertLeavesOutWhatItDoesNotKnow(t *testing.T) {
	alerts, ids := sent(t, alertmanager.Options{RunbookBase: "http://wiki.example/r"}, func() detectors.Finding {
		f := page(ticket)
		f.Service, f.Key.Group, f.Evidence = "", "", nil
		return f
	})
	want := alert{
		Labels: map[string]string{"alertname": "StampedeHotKeyExpiry", "detector": "hot-key-expiry", "cache": "redis", "severity": "ticket"},
		Annotations: map[string]string{
			"summary":     "120 recomputes of one key of feed:* ran at once.",
			"description": "Switch on single-flight.",
			"runbook_url": "http://wiki.example/r/hot-key-expiry.md",
			"incidents":   ids[0],
		},
		StartsAt: bubble.Add(-time.Second),
		EndsAt:   bubble.Add(2*time.Minute + 100*time.Millisecond),
	}
	if diff := cmp.Diff([]alert{want}, alerts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestIncidentsThatAgreeInAllLabelsAreOneAlertLedByTheWorst(t *testing.T) {
	var fs []func() detectors.Finding
	for i := range 13 {
		fs = append(fs, func() detectors.Finding {
			f := page(key(uint64(i + 1)))
			f.Summary = fmt.Sprintf("Key %d.", i+1)
			if i == 4 {
				f.Priority = 1
			}
			if i == 9 {
				f.Onset -= 1e9
			}
			return f
		})
	}
	fs = append(fs, func() detectors.Finding { return page(key(1), cache("other")) })
	alerts, ids := sent(t, alertmanager.Options{}, fs...)
	if len(alerts) != 2 {
		t.Fatalf("%d alerts, want one for each cache", len(alerts))
	}
	other, many := alerts[0], alerts[1]
	if got := other.Annotations["summary"]; strings.Contains(got, "more") {
		t.Errorf("the other cache's alert says %q", got)
	}
	if got, want := many.Annotations["summary"], "Key 5. (and 12 more keys)"; got != want {
		t.Errorf("summary is %q, want %q", got, want)
	}
	if got := many.Annotations["priority"]; got != "P1" {
		t.Errorf("priority is %q, want P1", got)
	}
	if want := bubble.Add(-2 * time.Second); !many.StartsAt.Equal(want) {
		t.Errorf("starts at %v, want the earliest onset %v", many.StartsAt, want)
	}
	got := many.Annotations["incidents"]
	if !strings.HasPrefix(got, ids[0]+", ") || !strings.HasSuffix(got, " and 3 more") {
		t.Errorf("incidents are %q, want ten, %s first, and 3 more", got, ids[0])
	}
}

func TestAnAlertListsWhatIsPartOfItsIncident(t *testing.T) {
	find := func(change ...func(*detectors.Finding)) func() detectors.Finding {
		return func() detectors.Finding { return page(change...) }
	}
	fs := []func() detectors.Finding{
		find(detector("mass-invalidation")), find(), find(key(8), ticket, func(f *detectors.Finding) { f.Key.Group, f.Key.Text = "", "secret" }),
		find(detector("retry-storm"), func(f *detectors.Finding) { f.Priority = 1 }),
	}
	alerts, _ := sent(t, alertmanager.Options{}, fs...)
	if len(alerts) != 1 {
		t.Fatalf("%d alerts, want one", len(alerts))
	}
	const want = "retry-storm of redis (page P1); hot-key-expiry of redis, feed:* (page P2); hot-key-expiry of redis (ticket)"
	if got := alerts[0].Annotations["children"]; got != want {
		t.Errorf("children are %q, want %q", got, want)
	}
	for i := range 30 {
		fs = append(fs, find(key(uint64(100+i)), ticket))
	}
	alerts, _ = sent(t, alertmanager.Options{}, fs...)
	if got := alerts[0].Annotations["children"]; strings.Count(got, ";") != 7 || !strings.HasSuffix(got, " and 25 more") {
		t.Errorf("children are %q, want 8 and 25 more", got)
	}
}

func TestOneMoreKeyIsSingular(t *testing.T) {
	alerts, _ := sent(t, alertmanager.Options{},
		func() detectors.Finding { return page() }, func() detectors.Finding { return page(key(8)) })
	if got := alerts[0].Annotations["summary"]; !strings.HasSuffix(got, "(and 1 more key)") {
		t.Errorf("summary is %q", got)
	}
}

func TestTextFromOutsideCannotFormatAnAlert(t *testing.T) {
	alerts, _ := sent(t, alertmanager.Options{}, func() detectors.Finding {
		f := page(cache("re\xffdis"))
		f.Key.Group = "feed\n\u202e\x00\xff" + strings.Repeat("é", 100)
		f.Key.Text = "secret"
		f.Evidence = []detectors.Evidence{{Name: "summary", Value: 1}, {Name: "peak", Value: 1, Note: "\x1b[31m"}}
		return f
	})
	a := alerts[0]
	if got, want := a.Annotations["key_group"], `feed\n\u202e\x00\xff`+strings.Repeat("é", 22)+"…"; got != want {
		t.Errorf("key group is %q, want %q", got, want)
	}
	if got, want := a.Annotations["peak"], `1 (\x1b[31m)`; got != want {
		t.Errorf("peak is %q, want %q", got, want)
	}
	if got := a.Annotations["summary"]; got == "1" {
		t.Error("evidence took the place of the summary")
	}
	if got := a.Labels["cache"]; got != "re\uFFFDdis" {
		t.Errorf("cache is %q", got)
	}
	for name, text := range a.Annotations {
		if strings.Contains(text, "secret") {
			t.Errorf("%s gives the key away: %q", name, text)
		}
	}
}

func TestEvidenceInAnAlertIsBounded(t *testing.T) {
	alerts, _ := sent(t, alertmanager.Options{}, func() detectors.Finding {
		f := page()
		f.Evidence = nil
		for i := range 100 {
			f.Evidence = append(f.Evidence, detectors.Evidence{Name: fmt.Sprintf("e%d", i), Note: strings.Repeat("n", 1000)})
		}
		return f
	})
	n := 0
	for name, text := range alerts[0].Annotations {
		if name[0] == 'e' {
			n++
		}
		if len(text) > 1024+3 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
	}
	if n != 20 {
		t.Errorf("%d pieces of evidence, want 20", n)
	}
}

func TestAnOnsetInTheFutureNeverMakesAnAlertEndBeforeItStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var am fake
		m := newManager(t, newNotifier(t, alertmanager.Options{Client: am.client()}))
		ahead := func(f *detectors.Finding) { f.Onset += 3600e9 }
		apply(m, page(ahead))
		wait(time.Second)
		apply(m, page(ahead, cleared))
		wait(time.Second)
		for _, batch := range am.got() {
			for _, a := range batch {
				if a.EndsAt.Before(a.StartsAt) || a.StartsAt.After(time.Now()) {
					t.Errorf("starts %v, ends %v", a.StartsAt, a.EndsAt)
				}
			}
		}
		if got := am.firing(); got != nil {
			t.Errorf("%v fire after the end", got)
		}
	})
}
