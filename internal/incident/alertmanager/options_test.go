package alertmanager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager"
)

func TestOptionsAreChecked(t *testing.T) {
	one := []string{"http://localhost:9093"}
	tests := []struct {
		name string
		opts alertmanager.Options
		want string
	}{
		{"no URL", alertmanager.Options{}, "URLs is empty"},
		{"a URL without a scheme", alertmanager.Options{URLs: []string{"localhost:9093"}}, `URLs[0]: scheme is "localhost": want http or https`},
		{"a URL without a host", alertmanager.Options{URLs: []string{"http:///x"}}, "URLs[0]: has no host"},
		{"a URL that is none", alertmanager.Options{URLs: []string{"http://user:hush@\x00"}}, "URLs[0]: not a URL"},
		{"a URL with a query", alertmanager.Options{URLs: []string{"http://a?b=c"}}, "URLs[0]: has a query"},
		{"a URL twice", alertmanager.Options{URLs: []string{"http://a", "http://a"}}, "URLs[1] is given twice"},
		{"resending too fast", alertmanager.Options{URLs: one, Resend: time.Millisecond}, "Resend is 1ms: want 1s to 1h0m0s"},
		{"a timeout too long", alertmanager.Options{URLs: one, Timeout: time.Hour}, "Timeout is 1h0m0s: want 100ms to 1m0s"},
		{"an unknown severity", alertmanager.Options{URLs: one, MinSeverity: detectors.Page + 1}, "MinSeverity is 3"},
		{"an external URL that is a path", alertmanager.Options{URLs: one, ExternalURL: "/x"}, "ExternalURL: scheme"},
		{"a runbook folder that is a path", alertmanager.Options{URLs: one, RunbookBase: "runbooks"}, "RunbookBase: scheme"},
		{"a label name with a dash", alertmanager.Options{URLs: one, Labels: map[string]string{"a-b": "c"}}, `Labels: "a-b" is not a label name`},
		{"a label of the exporter's own", alertmanager.Options{URLs: one, Labels: map[string]string{"severity": "page"}}, `Labels: "severity" is set by the exporter`},
		{"a label without a value", alertmanager.Options{URLs: one, Labels: map[string]string{"team": ""}}, `Labels: "team" has no value`},
		{"a label that is not UTF-8", alertmanager.Options{URLs: one, Labels: map[string]string{"team": "\xff"}}, `Labels: the value of "team" is not UTF-8`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := alertmanager.New(tc.opts)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got error %v, want %q", err, tc.want)
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the error gives a password away: %v", err)
			}
		})
	}
}
