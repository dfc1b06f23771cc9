//go:build unix

package incident_test

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
)

// fileEnv names the state file to a child.
const fileEnv = "STAMPEDE_TEST_STATE_FILE"

// children are the other parts the test binary can play.
var children = map[string]func(){
	"save without end": saveWithoutEnd,
	"fill the disk":    fillTheDisk,
}

// child runs the test binary in another part.
func child(t *testing.T, role, file string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, fileEnv+"="+file)
	cmd.Stderr = os.Stderr
	return cmd
}

// saveWithoutEnd opens, changes and saves incidents until it is killed, and
// prints a line after each save.
func saveWithoutEnd() {
	m, err := incident.New(incident.Options{StateFile: os.Getenv(fileEnv)})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		var fs []detectors.Finding
		for k := range 50 {
			fs = append(fs, page(key(uint64(k)), peak(float64(i))))
		}
		m.Apply(after(float64(i)), fs)
		if err := m.Save(); err != nil {
			panic(err)
		}
		fmt.Println(i)
	}
}

func TestAStateFileSurvivesAnyKill(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "state.json")
	const kills = 50
	for i := range kills {
		cmd := child(t, "save without end", file)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// A different number of saves each time; where in the next one the
		// kill falls is left to chance.
		lines := bufio.NewScanner(out)
		for range 1 + i%7 {
			if !lines.Scan() {
				t.Fatalf("the child ended by itself: %v", lines.Err())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if incidents, err := incident.DecodeState(data); err != nil || len(incidents) != 50 {
			t.Fatalf("after kill %d: %d incidents, %v", i, len(incidents), err)
		}
	}
	restart(t, file, incident.Options{}, func(m *incident.Manager) {
		if got := m.Stats().Resumed; got != 50 {
			t.Errorf("%d resumed, want 50", got)
		}
	})
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("the folder holds %v, want the state file only", entries)
	}
}

// fillTheDisk saves with success, then lets no file grow beyond a few kB, as a
// full disk would, and goes on. It prints what the manager says.
func fillTheDisk() {
	var log bytes.Buffer
	m, err := incident.New(incident.Options{StateFile: os.Getenv(fileEnv), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		panic(err)
	}
	m.Apply(after(0), []detectors.Finding{page()})
	fmt.Println("first save:", m.Save())

	signal.Ignore(syscall.SIGXFSZ) // then a write beyond the limit is an error
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: 4096}); err != nil {
		panic(err)
	}
	for i := range 20 {
		m.Apply(after(float64(i)), []detectors.Finding{page(key(uint64(100 + i)))})
		if err := m.Save(); err == nil && i > 5 {
			fmt.Println("saved on a full disk")
		}
	}
	fmt.Println("open:", len(m.Open()))
	fmt.Println("failed:", m.Stats().SaveFailures > 10)
	fmt.Println("lines in the log:", strings.Count(log.String(), "\n"))
}

func TestAFullDiskKeepsTheOldStateAndStopsNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "state.json")
	out, err := child(t, "fill the disk", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "first save: <nil>\nopen: 21\nfailed: true\nlines in the log: 1\n"
	if string(out) != want {
		t.Errorf("the child said\n%s\nwant\n%s", out, want)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v (%v), want the state file only", entries, err)
	}
	restart(t, file, incident.Options{}, func(m *incident.Manager) {
		if got := m.Stats(); got.Resumed == 0 || got.SetAside != 0 {
			t.Errorf("%d resumed, %d set aside: want some and none", got.Resumed, got.SetAside)
		}
	})
}
