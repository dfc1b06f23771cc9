package alertmanager_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager/alertmanagertest"
)

// real is a notifier in front of a real Alertmanager.
type real struct {
	*alertmanagertest.Server
	n        *alertmanager.Notifier
	m        *incident.Manager
	requests chan string // outcomes
}

func startReal(t *testing.T, o alertmanager.Options) *real {
	r := &real{Server: alertmanagertest.Start(t), requests: make(chan string, 100)}
	o.URLs = []string{r.URL}
	o.Sent = func(outcome string) { r.requests <- outcome }
	r.n = newNotifier(t, o)
	r.m = newManager(t, r.n)
	return r
}

// tell applies findings and waits until Alertmanager has taken the alerts.
func (r *real) tell(t *testing.T, fs ...detectors.Finding) {
	t.Helper()
	apply(r.m, fs...)
	r.arrived(t)
}

func (r *real) arrived(t *testing.T) {
	t.Helper()
	if outcome := <-r.requests; outcome != alertmanager.OutcomeOK {
		t.Fatalf("outcome is %s", outcome)
	}
}

// names returns the labels of the alerts that fire.
func (r *real) names(t *testing.T) []string {
	var names []string
	for _, a := range r.Alerts(t) {
		names = append(names, a.Name())
	}
	return names
}

func TestARealAlertmanagerShowsTheAlert(t *testing.T) {
	r := startReal(t, alertmanager.Options{ExternalURL: "https://stampede.example"})
	r.tell(t, page())
	alerts := r.Alerts(t)
	if len(alerts) != 1 {
		t.Fatalf("it shows %v, want one alert", alerts)
	}
	inc := r.m.Open()[0]
	a := alerts[0]
	// Alertmanager shows times to the millisecond.
	if want := inc.Onset.Time().Truncate(time.Millisecond); !a.StartsAt.Equal(want) {
		t.Errorf("starts at %v, want %v", a.StartsAt, want)
	}
	a.StartsAt, a.EndsAt = time.Time{}, time.Time{}
	want := alertmanagertest.Alert{
		Labels: map[string]string{
			"alertname": "StampedeHotKeyExpiry", "detector": "hot-key-expiry", "service": "shop", "cache": "redis", "severity": "page",
		},
		Annotations: map[string]string{
			"summary":       "120 recomputes of one key of feed:* ran at once.",
			"description":   "Switch on single-flight.",
			"runbook_url":   "https://github.com/stampede-exporter/stampede-exporter/blob/main/alerts/runbooks/hot-key-expiry.md",
			"key_group":     "feed:*",
			"priority":      "P2",
			"incidents":     inc.ID,
			"peak":          "120 recomputes (budget 8)",
			"origin_wasted": "47.6s",
		},
		GeneratorURL: "https://stampede.example/incidents/" + inc.ID,
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARealAlertmanagerFollowsSeverityAndEnd(t *testing.T) {
	r := startReal(t, alertmanager.Options{})
	steps := []struct {
		name string
		find detectors.Finding
		want []string
	}{
		{"a ticket fires", page(ticket), []string{firingTicket}},
		{"as a page it fires as that only", page(), []string{firingPage}},
		{"after its end nothing fires", page(cleared), nil},
		{"reopened it fires again", page(), []string{firingPage}},
		{"explained by another finding it fires as that only", page(detector("synchronized-expiry")),
			[]string{"alertname=StampedeSynchronizedExpiry cache=redis detector=synchronized-expiry service=shop severity=page"}},
	}
	for _, step := range steps {
		r.tell(t, step.find)
		if diff := cmp.Diff(step.want, r.names(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// prometheus sends an alert as a Prometheus would that evaluates the shipped
// rule: the same labels, its own annotations, its own link.
func prometheus(t *testing.T, r *real, labels map[string]string, ends time.Time) {
	t.Helper()
	body, err := json.Marshal([]alertmanagertest.Alert{{
		Labels:       labels,
		Annotations:  map[string]string{"summary": "There are incidents."},
		StartsAt:     time.Now().Add(-time.Minute),
		EndsAt:       ends,
		GeneratorURL: "http://prometheus.example/graph?g0.expr=stampede_incidents",
	}})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(r.URL+"/api/v2/alerts", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("answer is %s", resp.Status)
	}
}

func TestARealAlertmanagerTakesTheAlertOfAPrometheusRuleForTheSame(t *testing.T) {
	for _, service := range []string{"shop", ""} {
		t.Run(fmt.Sprintf("service %q", service), func(t *testing.T) {
			r := startReal(t, alertmanager.Options{Labels: map[string]string{"cluster": "eu"}})
			find := func(change ...func(*detectors.Finding)) detectors.Finding {
				f := page(change...)
				f.Service = service
				return f
			}
			// A rule that has no service to aggregate by gives an empty label.
			labels := map[string]string{
				"alertname": "StampedeHotKeyExpiry", "detector": "hot-key-expiry", "service": service,
				"cache": "redis", "severity": "page", "cluster": "eu",
			}
			r.tell(t, find())
			prometheus(t, r, labels, time.Now().Add(4*time.Minute))
			if alerts := r.Alerts(t); len(alerts) != 1 {
				t.Errorf("it shows %v, want one alert", alerts)
			}
			r.tell(t, find(), find(key(8)))
			if alerts := r.Alerts(t); len(alerts) != 1 {
				t.Errorf("after both sent again it shows %v, want one alert", alerts)
			}
			r.tell(t, find(cleared), find(key(8), cleared))
			if alerts := r.Alerts(t); len(alerts) != 0 {
				t.Errorf("after the end it shows %v, want none", alerts)
			}
			prometheus(t, r, labels, time.Now())
			if alerts := r.Alerts(t); len(alerts) != 0 {
				t.Errorf("after the rule's end it shows %v, want none", alerts)
			}
		})
	}
}

func TestARealAlertmanagerIsNotToldOfAnEndWhenTheNotifierCloses(t *testing.T) {
	r := startReal(t, alertmanager.Options{})
	r.tell(t, page())
	if err := r.n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{firingPage}, r.names(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARealAlertmanagerEndsTheAlertsOfAnExporterThatDied(t *testing.T) {
	tests := []struct {
		name string
		ago  time.Duration // when the exporter sent for the last time
		want []string
	}{
		{"one that died three resendings ago still fires", 3 * time.Minute, []string{firingPage}},
		{"one that died five resendings ago fires no more", 5 * time.Minute, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := startReal(t, alertmanager.Options{
				Resend: time.Minute,
				Now:    func() time.Time { return time.Now().Add(-tc.ago) },
			})
			r.tell(t, page())
			if diff := cmp.Diff(tc.want, r.names(t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARealAlertmanagerTakesManyAlertsAtOnce(t *testing.T) {
	r := startReal(t, alertmanager.Options{})
	var fs []detectors.Finding
	const n = 2*alertmanager.MaxBatch + 1
	for i := range n {
		fs = append(fs, page(cache(fmt.Sprint("cache-", i))))
	}
	r.tell(t, fs...)
	r.arrived(t)
	r.arrived(t)
	if got := len(r.Alerts(t)); got != n {
		t.Errorf("it shows %d alerts, want %d", got, n)
	}
}
