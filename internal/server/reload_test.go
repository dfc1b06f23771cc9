package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
	"github.com/stampede-exporter/stampede-exporter/internal/config"
	"github.com/stampede-exporter/stampede-exporter/internal/server"
)

// optionsWithFile are options with a configuration file.
type optionsWithFile struct {
	server.Options
	path string
}

// withFile returns options of a server that reads the file it returns.
func withFile(t *testing.T, text string) *optionsWithFile {
	t.Helper()
	o := &optionsWithFile{}
	o.path = filepath.Join(t.TempDir(), "stampede.yml")
	o.write(t, text)
	o.Options = options(t)
	o.Load = func() (*config.Config, error) { return config.Load(o.path) }
	var err error
	if o.Config, err = o.Load(); err != nil {
		t.Fatal(err)
	}
	return o
}

func post(t *testing.T, url string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	r, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func TestReloadPutsAGoodConfigurationInForce(t *testing.T) {
	o := withFile(t, "origins: {db: {concurrency: 8}}\n")
	s := start(t, o.Options)
	o.write(t, "origins: {db: {concurrency: 99}}\ncaches: {feed: {origin: db}}\n")
	if status, body := post(t, s.url+"/-/reload"); status != http.StatusOK || body != "Configuration reloaded.\n" {
		t.Fatalf("%d %q", status, body)
	}
	if _, body := get(t, s.url+"/config"); !strings.Contains(body, "concurrency: 99") {
		t.Errorf("/config shows:\n%s", body)
	}
	checkMetric(t, s, `stampede_origin_budget{origin="db"} 99`)
	checkMetric(t, s, `stampede_exporter_config_last_reload_successful 1`)
}

func TestReloadKeepsTheOldConfigurationIfTheNewOneIsBad(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an unknown field":               {"orgins: {}\n", `stampede.yml:1: orgins: unknown field`},
		"a wrong unit":                   {"fleet: {lateness: 5}\n", `stampede.yml:1: fleet.lateness: "5" is not a duration`},
		"a password that is not there":   {"probes: [{type: redis, target: 'localhost:1', cache: feed, password_file: absent}]\n", "read password: open "},
		"an authority that is not there": {"alertmanager: {urls: ['http://localhost:1'], http_config: {tls_config: {ca_file: absent}}}\n", "configure alertmanager.http_config: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := withFile(t, "origins: {db: {concurrency: 8}}\n")
			s := start(t, o.Options)
			o.write(t, c.text)
			status, body := post(t, s.url+"/-/reload")
			if status != http.StatusInternalServerError || !strings.Contains(body, "the old configuration stays in force") || !strings.Contains(body, c.want) {
				t.Errorf("%d %q: want 500 and %q", status, body, c.want)
			}
			checkMetric(t, s, `stampede_exporter_config_last_reload_successful 0`)
			checkMetric(t, s, `stampede_origin_budget{origin="db"} 8`)
			if _, body := get(t, s.url+"/config"); !strings.Contains(body, "concurrency: 8") {
				t.Errorf("/config shows:\n%s", body)
			}
		})
	}
}

func TestReloadSaysWhatNeedsARestart(t *testing.T) {
	o := withFile(t, "")
	s := start(t, o.Options)
	o.write(t, "fleet: {max_keys: 5000}\notlp: {max_request_bytes: 100000}\ndetectors: {hot-key-expiry: {page_peak: 30}}\nexternal_url: http://example.org\n")
	_, body := post(t, s.url+"/-/reload")
	if want := "Configuration reloaded. Changed, but in force only after a restart: detectors, fleet, otlp.\n"; body != want {
		t.Errorf("%q: want %q", body, want)
	}
	got, err := s.Reload()
	if diff := cmp.Diff([]string{"detectors", "fleet", "otlp"}, got); err != nil || diff != "" {
		t.Errorf("the second time: %v (-want +got):\n%s", err, diff)
	}
}

func TestReloadWithoutAFileIsRefused(t *testing.T) {
	s := start(t, options(t))
	if status, body := post(t, s.url+"/-/reload"); status != http.StatusConflict || !strings.Contains(body, "without --config.file") {
		t.Errorf("%d %q", status, body)
	}
	checkMetric(t, s, `stampede_exporter_config_last_reload_successful 1`)
}

func TestOnlyTheOperatorMayReload(t *testing.T) {
	o := withFile(t, "")
	s := start(t, o.Options)
	if status, _ := post(t, s.url+"/-/reload", "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
		t.Errorf("somebody else's page: %d: want 403", status)
	}
	if status := statusOf(t, s.url+"/-/reload"); status != http.StatusMethodNotAllowed && status != http.StatusNotFound {
		t.Errorf("a GET: %d: want it refused", status)
	}
}

func TestAlertsGoToTheAlertmanagerInForce(t *testing.T) {
	first, second := newAlertmanager(t), newAlertmanager(t)
	o := withFile(t, "alertmanager: {urls: ["+first.URL+"], labels: {cluster: eu-1}}\n")
	s := start(t, o.Options)
	defer newApplication(t, otlp.ProtocolGRPC, s.Addresses().GRPC.String()).dogpile(25)()
	for _, want := range []string{`"alertname":"StampedeHotKeyExpiry"`, `"cluster":"eu-1"`, `"service":"feed-api"`} {
		first.await(t, want)
	}
	o.write(t, "alertmanager: {urls: ["+second.URL+"]}\n")
	if _, err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	second.await(t, `"alertname":"StampedeHotKeyExpiry"`)
	checkMetric(t, s, `stampede_exporter_notifications_total{notifier="alertmanager",outcome="failed"} 0`)
}

// fakeAlertmanager keeps what it is told.
type fakeAlertmanager struct {
	*httptest.Server
	told chan string
}

func newAlertmanager(t *testing.T) fakeAlertmanager {
	a := fakeAlertmanager{told: make(chan string, 64)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.told <- string(body)
	}))
	t.Cleanup(a.Close)
	return a
}

// await waits until an alert with the given text arrives.
func (a fakeAlertmanager) await(t *testing.T, text string) {
	t.Helper()
	eventually(t, "an alert with "+text, func() bool {
		select {
		case body := <-a.told:
			a.told <- body // for whoever asks next
			return strings.Contains(body, text)
		default:
			return false
		}
	})
}

func checkMetric(t *testing.T, s *running, line string) {
	t.Helper()
	eventually(t, line, func() bool {
		_, body := get(t, s.url+"/metrics")
		return strings.Contains(body, "\n"+line+"\n")
	})
}

func (o *optionsWithFile) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(o.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
