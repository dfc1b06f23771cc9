package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
)

func TestLabRunHoldsWhatIsFoundAgainstWhatHappened(t *testing.T) {
	stdout, stderr, status := run(t, "lab", "run", "../../scenarios/hot-key-naive.yml", "--output=json")
	if status != 0 {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	var r lab.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if !r.OK || len(r.Findings) == 0 || r.Findings[0].Detector != "hot-key-expiry" || r.Truth["recomputes_per_cycle"] < 100 {
		t.Errorf("result %+v; want a dogpile of about 121, found", r)
	}
}

func TestLabRunShowsIncidentsWithWhatTheyBroughtAbout(t *testing.T) {
	stdout, _, status := run(t, "lab", "run", "../../scenarios/orphaned-lock.yml")
	lines := strings.Split(stdout, "\n")
	if status != 0 || len(lines) < 3 || !strings.Contains(lines[1], "s  page   orphaned-lock: ") || !strings.Contains(lines[2], "s    page   lock-convoy: ") {
		t.Errorf("exit %d: want the lock, and below it those that wait for it:\n%s", status, stdout)
	}
	stdout, _, status = run(t, "lab", "run", "../../scenarios/hot-key-naive.yml", "--restart")
	if status != 0 || !strings.Contains(stdout, ": 1 of 1 incidents found again, 0 opened anew, 0 paged twice") {
		t.Errorf("exit %d: want the incident found again after a restart:\n%s", status, stdout)
	}
}

func TestLabRunExitsWith1IfAnExpectationIsNotMet(t *testing.T) {
	text, err := os.ReadFile("../../scenarios/single-flight.yml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "wrong.yml")
	write(t, file, string(text)+"\nexpect:\n  - {detector: penetration, cache: feed, severity: ticket}\n")
	if strings.Contains(string(text), "\nexpect:") {
		t.Fatal("the scenario has expectations of its own: take another")
	}
	stdout, stderr, status := run(t, "lab", "run", file)
	if status != 1 || !strings.Contains(stdout, "FAILED") || !strings.Contains(stdout, "wanted penetration") || !strings.Contains(stderr, "1 of 1 scenarios did not go as expected") {
		t.Errorf("exit %d\n%s%s", status, stdout, stderr)
	}
}

func TestLabRunSaysWhatIsWrongWithAFileAndWhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "broken.yml")
	write(t, file, "name: broken\nabuot: a typing mistake\n")
	_, stderr, status := run(t, "lab", "run", file)
	if status != 1 || !strings.Contains(stderr, file+":2:") || !strings.Contains(stderr, "abuot") {
		t.Errorf("exit %d: %s", status, stderr)
	}
	if _, stderr, status := run(t, "lab", "run", t.TempDir()); status != 1 || !strings.Contains(stderr, "there is no scenario") {
		t.Errorf("an empty folder: exit %d: %s", status, stderr)
	}
}
