// Package alertmanagertest runs a real Alertmanager for tests.
package alertmanagertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/tooltest"
)

// Server is a running Alertmanager.
type Server struct {
	// URL is where it listens, without a path.
	URL string
	log logBuffer
}

// Alert is an alert as Alertmanager shows it.
type Alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
}

const configuration = `route:
  receiver: nobody
receivers:
  - name: nobody
`

// listening is how Alertmanager says which port it was given.
var listening = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// Start runs an Alertmanager that notifies nobody, on a free port of the
// loopback interface, until t ends. It fails t if the program is missing.
func Start(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tooltest.Path(t, "alertmanager"),
		"--config.file="+file,
		"--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0",
		"--cluster.listen-address=")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start alertmanager: %v", err)
	}
	s := &Server{}
	address := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read(stderr, address)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-read
		_ = cmd.Wait() // of no interest: the test has what it wanted
		if t.Failed() {
			t.Logf("alertmanager said:\n%s", s.log.String())
		}
	})
	a, ok := <-address
	if !ok {
		t.Fatalf("start alertmanager: it ended:\n%s", s.log.String())
	}
	s.URL = "http://" + a
	return s
}

// read keeps what Alertmanager says, and sends the address it listens on. It
// closes address at the end.
func (s *Server) read(stderr io.Reader, address chan<- string) {
	defer close(address)
	lines := bufio.NewScanner(stderr)
	found := false
	for lines.Scan() {
		s.log.add(lines.Bytes())
		if m := listening.FindSubmatch(lines.Bytes()); m != nil && !found {
			found = true
			address <- string(m[1])
		}
	}
}

// Alerts returns the alerts that fire now, sorted by labels.
func (s *Server) Alerts(t testing.TB) []Alert {
	t.Helper()
	resp, err := http.Get(s.URL + "/api/v2/alerts")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("get alerts: %s", resp.Status)
	}
	var alerts []Alert
	if err := json.NewDecoder(resp.Body).Decode(&alerts); err != nil {
		t.Fatalf("get alerts: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
	slices.SortFunc(alerts, func(a, b Alert) int { return strings.Compare(a.Name(), b.Name()) })
	return alerts
}

// Name returns a's labels as one string: name=value, sorted, with spaces
// between.
func (a Alert) Name() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(a.Labels)) {
		parts = append(parts, fmt.Sprintf("%s=%s", k, a.Labels[k]))
	}
	return strings.Join(parts, " ")
}

// logBuffer is a buffer of lines, safe for concurrent use.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) add(line []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Write(line)
	b.buf.WriteByte('\n')
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
