package server_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"go.uber.org/goleak"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
	"github.com/stampede-exporter/stampede-exporter/internal/config"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
	"github.com/stampede-exporter/stampede-exporter/internal/server"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client has connections of its own, which are closed when they are idle, so
// that what is left running at the end of the tests is the server's fault.
var client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// options are those of a server on free ports of the loopback interface.
func options(t *testing.T) server.Options {
	yes, no, none := []string{"127.0.0.1:0"}, false, ""
	return server.Options{
		Web:     &web.FlagConfig{WebListenAddresses: &yes, WebSystemdSocket: &no, WebConfigFile: &none},
		GRPC:    "127.0.0.1:0",
		HTTP:    "127.0.0.1:0",
		Logger:  slog.New(slog.NewTextHandler(testLog{t}, nil)),
		Version: "1.2.3",
	}
}

// testLog shows what a server logs with the test that started it.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// running is a server that runs until the test ends, or stop is called.
type running struct {
	*server.Server
	url  string
	stop func() error
}

func start(t *testing.T, o server.Options) *running {
	t.Helper()
	s, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = s.Run(ctx)
	}()
	r := &running{Server: s, url: "http://" + s.Addresses().Web.String(), stop: func() error {
		cancel()
		<-done
		return err
	}}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("the server stopped with: %v", err)
		}
	})
	eventually(t, "the server is ready", func() bool { return statusOf(t, r.url+"/-/ready") == http.StatusOK })
	return r
}

// eventually waits until is returns true, but no longer than a reader of an
// alert would.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("in vain waited for: %s", what)
		case <-again.C:
		}
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := client.Get(url)
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

func statusOf(t *testing.T, url string) int {
	status, _ := get(t, url)
	return status
}

// application is an instrumented process with one cache.
type application struct {
	*instrument.Monitor
	exporter *otlp.Exporter
}

func newApplication(t *testing.T, protocol, endpoint string) application {
	t.Helper()
	e, err := otlp.New(t.Context(), otlp.Options{Protocol: protocol, Endpoint: endpoint, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := instrument.New("feed", instrument.Options{Service: "feed-api", Instance: "feed-api-1", Origin: signal.Origin{Name: "db", Budget: 8}})
	if err != nil {
		t.Fatal(err)
	}
	m.Attach(e)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := e.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return application{m, e}
}

// dogpile starts n recomputes of one key at once, and returns what ends them.
func (a application) dogpile(n int) (end func()) {
	var runs []instrument.Run
	for range n {
		a.Miss("feed:1").Done()
		runs = append(runs, a.Begin("feed:1", instrument.Start{Cause: signal.CauseExpired}))
	}
	return func() {
		for _, r := range runs {
			r.End(signal.OutcomeOK)
		}
	}
}

func TestADogpileReportedOverOTLPIsSeenEverywhere(t *testing.T) {
	for _, protocol := range []string{otlp.ProtocolGRPC, otlp.ProtocolHTTP} {
		t.Run(protocol, func(t *testing.T) {
			s := start(t, options(t))
			endpoint := s.Addresses().GRPC.String()
			if protocol == otlp.ProtocolHTTP {
				endpoint = s.Addresses().HTTP.String()
			}
			end := newApplication(t, protocol, endpoint).dogpile(25)
			defer end()

			var list struct{ Incidents []incident.Incident }
			eventually(t, "an incident in the API", func() bool {
				_, body := get(t, s.url+"/api/v1/incidents")
				if err := json.Unmarshal([]byte(body), &list); err != nil {
					t.Fatal(err)
				}
				return len(list.Incidents) > 0
			})
			if i := list.Incidents[0]; i.Detector != "hot-key-expiry" || i.Cache != "feed" || i.Service != "feed-api" || i.Key.Group != "feed:*" {
				t.Errorf("found %s of %s in %s, %s", i.Detector, i.Service, i.Cache, i.Key.Group)
			}
			eventually(t, "the incident in metrics", func() bool {
				_, body := get(t, s.url+"/metrics")
				return strings.Contains(body, `stampede_incidents{cache="feed",detector="hot-key-expiry",service="feed-api",severity="`) &&
					strings.Contains(body, `stampede_origin_budget_use_ratio{origin="db"} 3.125`)
			})
			_, page := get(t, s.url+"/")
			for _, want := range []string{"1 incident open", `href="incidents/` + list.Incidents[0].ID, "25 recomputes of one key at once"} {
				if !strings.Contains(page, want) {
					t.Errorf("no %q on the page:\n%s", want, page)
				}
			}
		})
	}
}

func TestASecondServerOnAPortSaysSo(t *testing.T) {
	first := start(t, options(t))
	a := first.Addresses()
	for flag, take := range map[string]func(*server.Options){
		"--web.listen-address":       func(o *server.Options) { *o.Web.WebListenAddresses = []string{a.Web.String()} },
		"--otlp.grpc.listen-address": func(o *server.Options) { o.GRPC = a.GRPC.String() },
		"--otlp.http.listen-address": func(o *server.Options) { o.HTTP = a.HTTP.String() },
	} {
		o := options(t)
		o.StateFile = filepath.Join(t.TempDir(), "state.json")
		take(&o)
		_, err := server.New(o)
		if err == nil {
			t.Fatalf("%s: started twice", flag)
		}
		for _, want := range []string{"address already in use: is another exporter running?", flag} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v: want it to say %q", flag, err, want)
			}
		}
		if _, err := os.Stat(o.StateFile); err == nil {
			t.Errorf("%s: touched the state file", flag)
		}
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*server.Options)
		want   string
	}{
		"an address that is none": {func(o *server.Options) { o.GRPC = "localhost" }, "listen on localhost for OTLP over gRPC (--otlp.grpc.listen-address): "},
		"a certificate that is not there": {func(o *server.Options) {
			o.Config.OTLP.TLS = &config.ServerTLS{CertFile: "absent.pem", KeyFile: "absent.key"}
		}, "configure otlp.tls: failed to read cert_file (absent.pem)"},
		"a password that is not there": {func(o *server.Options) {
			o.Config.Probes = []config.Probe{{Type: "redis", Target: "127.0.0.1:1", Cache: "feed", PasswordFile: "absent"}}
		}, "configure probes.0: read password: open absent"},
	} {
		o := options(t)
		o.Config = config.Default()
		c.change(&o)
		if _, err := server.New(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v: want %q", name, err, c.want)
		}
	}
}

func TestIncidentsSurviveARestart(t *testing.T) {
	o := options(t)
	o.StateFile = filepath.Join(t.TempDir(), "state.json")
	s := start(t, o)
	a := newApplication(t, otlp.ProtocolGRPC, s.Addresses().GRPC.String())
	defer a.dogpile(25)()
	eventually(t, "an incident", func() bool { return len(s.Incidents()) == 1 })
	before := s.Incidents()[0].ID
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, o)
	if after := again.Incidents(); len(after) != 1 || after[0].ID != before || !after[0].Open() {
		t.Errorf("after the restart: %v: want the incident %s, open", after, before)
	}
}

func TestWhatDetectorsLearnSurvivesARestart(t *testing.T) {
	o := options(t)
	o.StateFile = filepath.Join(t.TempDir(), "state.json")
	file := o.StateFile + ".baselines"
	if err := start(t, o).stop(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), `"metastable-loop":{"version":1`) {
		t.Errorf("%s holds %s, %v: want what each detector has learnt", file, b, err)
	}
	if err := os.WriteFile(file, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, o)
	if status, _ := get(t, s.url+"/-/ready"); status != http.StatusOK {
		t.Errorf("with a damaged file it is not ready: %d", status)
	}
	if b, err := os.ReadFile(file + ".corrupt"); err != nil || string(b) != "garbage" {
		t.Errorf("the damaged file is not set aside: %q, %v", b, err)
	}
}

func TestHealthAndReadiness(t *testing.T) {
	s := start(t, options(t))
	for path, want := range map[string]string{"/-/healthy": "Healthy.\n", "/-/ready": "Ready.\n"} {
		if status, body := get(t, s.url+path); status != http.StatusOK || body != want {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
}

func TestAServerThatIsStoppedTwiceInARowStopsOnce(t *testing.T) {
	s := start(t, options(t))
	for range 2 {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	}
	if _, err := client.Get(s.url); err == nil {
		t.Error("still serves")
	}
	if _, err := s.Reload(); err == nil {
		t.Error("reloads after it stopped")
	}
}
