package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// nodeModules installs what the clients in clients/node need, once for each lock
// file, and returns where.
var nodeModules = sync.OnceValues(func() (string, error) {
	const from = "clients/node"
	lock, err := os.ReadFile(filepath.Join(from, "package-lock.json"))
	if err != nil {
		return "", err
	}
	tools := os.Getenv("STAMPEDE_TOOLS")
	if tools == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		tools = filepath.Join(home, ".cache", "stampede-tools")
	}
	dir := filepath.Join(tools, fmt.Sprintf("node-clients-%x", sha256.Sum256(lock))[:24])
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(filepath.Join(modules, ".complete")); err == nil {
		return modules, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w (run `make tools`)\n%s", err, out)
	}
	return modules, os.WriteFile(filepath.Join(modules, ".complete"), nil, 0o644)
})

// counts are what a client counted.
type counts struct {
	Misses     int `json:"misses"`
	Stores     int `json:"stores"`
	Recomputes int `json:"recomputes"`
	FanIn      int `json:"fanIn"`
	GaveUp     int `json:"gaveUp"`
}

// node returns a command that runs a client.
func node(t testing.TB, script string, options map[string]any) *exec.Cmd {
	t.Helper()
	modules, err := nodeModules()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", filepath.Join("clients", "node", script), string(text))
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	return cmd
}

// runNode runs a client to its end and returns what it counted.
func runNode(t testing.TB, script string, options map[string]any) (c counts) {
	t.Helper()
	cmd := node(t, script, options)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v (run `make tools` if there is no node)\n%s", script, err, complaints.String())
	}
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatalf("%s said %q: %v", script, out, err)
	}
	return c
}

// startNode starts a client and returns once it has said a word; what it returns
// kills it.
func startNode(t testing.TB, script, word string, options map[string]any) (kill func()) {
	t.Helper()
	cmd := node(t, script, options)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	t.Cleanup(kill)
	timer := time.AfterFunc(20*time.Second, kill)
	defer timer.Stop()
	line, _ := bufio.NewReader(out).ReadString('\n')
	if strings.TrimSpace(line) != word {
		t.Fatalf("%s said %q, want %q", script, line, word)
	}
	return kill
}
