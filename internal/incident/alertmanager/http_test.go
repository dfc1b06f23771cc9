package alertmanager_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/config"

	"github.com/stampede-exporter/stampede-exporter/internal/incident/alertmanager"
)

// received is a request as a server saw it.
type received struct {
	method, path, contentType, user, password string
	alerts                                    []alert
}

// serve returns a handler that passes on what it receives.
func serve(t *testing.T, to chan<- received) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := received{method: r.Method, path: r.URL.Path, contentType: r.Header.Get("Content-Type")}
		x.user, x.password, _ = r.BasicAuth()
		if err := json.NewDecoder(r.Body).Decode(&x.alerts); err != nil {
			t.Error(err)
		}
		to <- x
	})
}

func TestTheClientOfPrometheusBringsTLSAndAuthentication(t *testing.T) {
	requests := make(chan received, 1)
	server := httptest.NewTLSServer(serve(t, requests))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := config.NewClientFromConfig(config.HTTPClientConfig{
		BasicAuth: &config.BasicAuth{Username: "stampede", Password: "hush"},
		TLSConfig: config.TLSConfig{CAFile: ca},
	}, "alertmanager")
	if err != nil {
		t.Fatal(err)
	}
	n := newNotifier(t, alertmanager.Options{URLs: []string{server.URL + "/prefix/"}, Client: client})
	apply(newManager(t, n), page())
	got := <-requests
	if got.method != "POST" || got.path != "/prefix/api/v2/alerts" || got.contentType != "application/json" {
		t.Errorf("got a %s of %s to %s", got.method, got.contentType, got.path)
	}
	if got.user != "stampede" || got.password != "hush" {
		t.Errorf("user %q, password %q", got.user, got.password)
	}
	if len(got.alerts) != 1 || got.alerts[0].name() != firingPage {
		t.Errorf("alerts are %v", got.alerts)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheDefaultClientSendsAndLetsItsConnectionsGo(t *testing.T) {
	requests := make(chan received, 1)
	server := httptest.NewServer(serve(t, requests))
	n := newNotifier(t, alertmanager.Options{URLs: []string{server.URL}})
	apply(newManager(t, n), page())
	if got := <-requests; len(got.alerts) != 1 {
		t.Errorf("alerts are %v", got.alerts)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Error(err)
	}
	server.Close() // waits for connections; goleak looks for the rest
}

func TestAPasswordInAURLIsNotLogged(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	var log bytes.Buffer
	done := make(chan string, 1)
	n := newNotifier(t, alertmanager.Options{
		URLs:   []string{strings.Replace(server.URL, "http://", "http://stampede:hush@", 1)},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Sent:   func(outcome string) { done <- outcome },
	})
	apply(newManager(t, n), page())
	if outcome := <-done; outcome != alertmanager.OutcomeFailed {
		t.Errorf("outcome is %s", outcome)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, "404 Not Found") || strings.Contains(text, "hush") {
		t.Errorf("the log is\n%s", text)
	}
}
