package main_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/alerts"
	"github.com/stampede-exporter/stampede-exporter/dashboards"
	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
)

// binary is the program under test, as it is built for its users.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "stampede-exporter")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "stampede-exporter")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	code := 1
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the program:", err)
	} else {
		code = m.Run()
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// run runs the program until it ends, and returns what it wrote and its exit
// status.
func run(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, err strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &err
	var exit *exec.ExitError
	if e := cmd.Run(); e != nil && !errors.As(e, &exit) {
		t.Fatal(e)
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

// exporter is a running `serve`.
type exporter struct {
	cmd             *exec.Cmd
	web, grpc, http string

	done chan struct{} // closed when it has written its last line
	mu   sync.Mutex
	log  strings.Builder // guarded by mu
}

var ready = regexp.MustCompile(`msg=Ready web=(\S+) otlp_grpc=(\S+) otlp_http=(\S+)`)

// serve starts an exporter on free ports and waits until it is ready. It ends
// with the test.
func serve(t *testing.T, args ...string) *exporter {
	t.Helper()
	e := &exporter{done: make(chan struct{})}
	e.cmd = exec.Command(binary, append([]string{"--web.listen-address=127.0.0.1:0", "--otlp.grpc.listen-address=127.0.0.1:0", "--otlp.http.listen-address=127.0.0.1:0"}, args...)...)
	stderr, err := e.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	isReady := make(chan []string, 1)
	go e.read(stderr, isReady)
	t.Cleanup(func() {
		_ = e.cmd.Process.Kill() // it may have ended already
		<-e.done
		_ = e.cmd.Wait()
	})
	select {
	case m := <-isReady:
		e.web, e.grpc, e.http = "http://"+m[1], m[2], m[3]
	case <-e.done:
		t.Fatalf("it ended before it was ready:\n%s", e.logged())
	case <-time.After(20 * time.Second):
		t.Fatalf("it is not ready:\n%s", e.logged())
	}
	return e
}

func (e *exporter) read(stderr io.Reader, isReady chan<- []string) {
	defer close(e.done)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		e.mu.Lock()
		e.log.WriteString(lines.Text() + "\n")
		e.mu.Unlock()
		if m := ready.FindStringSubmatch(lines.Text()); m != nil {
			isReady <- m
		}
	}
}

func (e *exporter) logged() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log.String()
}

func (e *exporter) get(t *testing.T, path string) string {
	t.Helper()
	r, err := http.Get(e.web + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("in vain waited for: %s", what)
		case <-again.C:
		}
	}
}

func TestServeRunsWithoutAnyConfigurationAndStopsInOrder(t *testing.T) {
	e := serve(t)
	if got := e.get(t, "/-/ready"); got != "Ready.\n" {
		t.Errorf("/-/ready: %q", got)
	}
	if got := e.get(t, "/"); !strings.Contains(got, "Nothing reports to this exporter yet") {
		t.Errorf("/: %s", got)
	}
	if got := e.get(t, "/metrics"); !strings.Contains(got, "stampede_exporter_build_info{") {
		t.Errorf("/metrics: %s", got)
	}
	if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-e.done
	if err := e.cmd.Wait(); err != nil {
		t.Errorf("SIGTERM ended it with %v:\n%s", err, e.logged())
	}
}

func TestServeFindsADogpileInAnInstrumentedProcess(t *testing.T) {
	e := serve(t)
	for protocol, endpoint := range map[string]string{otlp.ProtocolGRPC: e.grpc, otlp.ProtocolHTTP: e.http} {
		x, err := otlp.New(t.Context(), otlp.Options{Protocol: protocol, Endpoint: endpoint, Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		m, err := instrument.New("feed", instrument.Options{Service: strings.ReplaceAll(protocol, "/", "-")})
		if err != nil {
			t.Fatal(err)
		}
		m.Attach(x)
		for range 60 {
			defer m.Begin("feed:"+protocol, instrument.Start{}).End(0)
		}
		defer func() {
			if err := errors.Join(m.Close(), x.Shutdown(context.WithoutCancel(t.Context()))); err != nil {
				t.Error(err)
			}
		}()
	}
	eventually(t, "both incidents in the API, in metrics and on the page", func() bool {
		api, metrics, page := e.get(t, "/api/v1/incidents"), e.get(t, "/metrics"), e.get(t, "/")
		for _, service := range []string{"grpc", "http-protobuf"} {
			if !strings.Contains(api, `"service":"`+service+`"`) || !strings.Contains(metrics, `service="`+service+`",severity=`) {
				return false
			}
		}
		return strings.Contains(page, "2 incidents open")
	})
}

func TestASecondExporterOnThePortsSaysSoAndExitsWith1(t *testing.T) {
	e := serve(t)
	_, stderr, status := run(t, "--web.listen-address="+strings.TrimPrefix(e.web, "http://"))
	if status != 1 || !strings.Contains(stderr, "address already in use: is another exporter running?") {
		t.Errorf("status %d:\n%s", status, stderr)
	}
}

func TestCheckConfigSaysWhatIsWrongAndWhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stampede.yml")
	for name, c := range map[string]struct {
		text, stdout, stderr string
		status               int
	}{
		"a good file":      {"origins: {db: {concurrency: 8}}\n", path + ": ok\n", "", 0},
		"an unknown field": {"\norgins: {}\n", "", "stampede-exporter: error: " + path + `:2: orgins: unknown field` + "\n", 1},
		"a wrong unit":     {"fleet:\n  lateness: 5\n", "", "stampede-exporter: error: " + path + `:2: fleet.lateness: "5" is not a duration: want a number with a unit, such as 500ms, 30s or 5m` + "\n", 1},
	} {
		write(t, path, c.text)
		stdout, stderr, status := run(t, "check-config", path)
		if stdout != c.stdout || stderr != c.stderr || status != c.status {
			t.Errorf("%s: status %d, stdout %q, stderr %q", name, status, stdout, stderr)
		}
		if _, stderr, status := run(t, "--config.file="+path, "--web.listen-address=127.0.0.1:none"); c.status == 1 && (status != 1 || !strings.Contains(stderr, strings.TrimSpace(c.stderr))) {
			t.Errorf("serve with %s: status %d, stderr %q", name, status, stderr)
		}
	}
}

func TestHangupReloadsTheConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stampede.yml")
	write(t, path, "origins: {db: {concurrency: 8}}\n")
	e := serve(t, "--config.file="+path)

	write(t, path, "origins: {db: {concurrency: 9}}\n")
	hangUp(t, e)
	eventually(t, "the new configuration", func() bool {
		return strings.Contains(e.get(t, "/metrics"), "\nstampede_origin_budget{origin=\"db\"} 9\n")
	})
	write(t, path, "origins: {db: {concurrency: none}}\n")
	hangUp(t, e)
	eventually(t, "a failed reload", func() bool {
		return strings.Contains(e.get(t, "/metrics"), "\nstampede_exporter_config_last_reload_successful 0\n")
	})
	if got := e.get(t, "/config"); !strings.Contains(got, "concurrency: 9") {
		t.Errorf("after a failed reload, in force is:\n%s", got)
	}
	if log := e.logged(); !strings.Contains(log, `stampede.yml:1: origins.db.concurrency: \"none\" is not a whole number`) {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

func hangUp(t *testing.T, e *exporter) {
	t.Helper()
	if err := e.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsShippedCanBeWrittenOut(t *testing.T) {
	for command, want := range map[string]struct {
		name string
		text []byte
	}{
		"dashboards": {"overview.json", dashboards.Overview},
		"alerts":     {"stampede.yaml", alerts.YAML},
	} {
		dir := filepath.Join(t.TempDir(), "new", "folder")
		path := filepath.Join(dir, want.name)
		stdout, stderr, status := run(t, command, "-o", dir)
		if stdout != path+"\n" || status != 0 {
			t.Errorf("%s: status %d, stdout %q, stderr %q", command, status, stdout, stderr)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != string(want.text) {
			t.Errorf("%s: %v, or not what is shipped", command, err)
		}
		write(t, path, "taken")
		if _, stderr, status := run(t, command, "-o", path); status != 1 || !strings.Contains(stderr, "not a directory") {
			t.Errorf("%s into a file: status %d, stderr %q", command, status, stderr)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	if stdout, stderr, status := run(t, "--version"); status != 0 || !strings.Contains(stdout+stderr, "stampede-exporter, version") {
		t.Errorf("--version: status %d, %q %q", status, stdout, stderr)
	}
	_, stderr, status := run(t, "--nonsense")
	if status == 0 || !strings.Contains(stderr, "unknown long flag '--nonsense'") {
		t.Errorf("an unknown flag: status %d, %q", status, stderr)
	}
	stdout, stderr, _ := run(t, "--help")
	for _, want := range []string{"serve", "check-config", "dashboards", "alerts", "--config.file", "127.0.0.1:9917"} {
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("--help: no %q in:\n%s%s", want, stdout, stderr)
		}
	}
}
