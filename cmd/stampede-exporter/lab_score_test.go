package main_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const missedDogpile = `
name: missed
duration: 45s
origins: {db: {concurrency: 2}}
caches:
  a: {origin: db, ttl: 30s, recompute: {fixed: 500ms}}
workloads: [{cache: a, rate: 50}]
events: [{at: 0s, do: warm, cache: a}]
expect: [{detector: hot-key-expiry, cache: a, within: 1ns}]
`

func TestLabScoreCountsWhatIsMissedAndDoesNotFail(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "missed.yml"), []byte(missedDogpile), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := run(t, "lab", "score", "--seeds", "2", "--shift", "--output", "json", dir)
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	var got struct {
		Split  string   `json:"split"`
		Seeds  []uint64 `json:"seeds"`
		Shifts []string `json:"shifts"`
		Runs   int      `json:"runs"`
		Total  struct {
			Expected int `json:"expected"`
			Missed   int `json:"missed"`
		} `json:"total"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if got.Split != "held-out" || len(got.Seeds) != 2 || got.Seeds[0] != 1001 || len(got.Shifts) != 3 || got.Runs != 6 || got.Total.Expected != 6 || got.Total.Missed != 6 {
		t.Errorf("%+v, want six held-out runs that all miss", got)
	}
	stdout, _, status = run(t, "lab", "score", "--seeds", "1", "--tuning", dir)
	if status != 0 || !strings.HasPrefix(stdout, "tuning seeds 1 to 1, shifts [none]\n1 scenarios, 1 runs") {
		t.Errorf("exit status %d:\n%s", status, stdout)
	}
}

const quietCache = `
name: NAME
duration: FOR
origins: {db: {concurrency: 2}}
caches:
  a: {origin: db, ttl: 30s, recompute: {fixed: 50ms}, protect: [xfetch, singleflight]}
workloads: [{cache: a, rate: 5}]
events: [{at: 0s, do: warm, cache: a}]
forbid: pages
`

// quietFile writes a scenario in which nothing happens.
func quietFile(t *testing.T, dir, name, duration string) {
	t.Helper()
	text := strings.NewReplacer("NAME", name, "FOR", duration).Replace(quietCache)
	if err := os.WriteFile(filepath.Join(dir, name+".yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLabScoreRunsQuietScenariosForDays(t *testing.T) {
	dir := t.TempDir()
	quietFile(t, dir, "quiet", "10m")
	if err := os.WriteFile(filepath.Join(dir, "missed.yml"), []byte(missedDogpile), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := run(t, "lab", "score", "--quiet-days", "0.05", "--gate", "--progress", dir)
	for _, want := range []string{
		"held-out seeds 1001 and on, shifts [none]\n1 scenarios, 8 runs", // 72 minutes
		"false pages in quiet runs: 0 in 0.0556 simulated days, 0 a day; below 53.9 a day with 95 % confidence",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the text lacks %q:\n%s", want, stdout)
		}
	}
	if status != 0 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "1/1 quiet ") {
		t.Errorf("exit status %d, and on stderr %q: want 0, and a line for the scenario", status, stderr)
	}
}

func TestLabScoreLetsNothingThroughItsGateThatIsBelow(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "missed.yml"), []byte(strings.Replace(missedDogpile, "cache: a, within", "cache: a, severity: page, within", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := run(t, "lab", "score", "--seeds", "1", "--gate", dir)
	if status != 1 || !strings.Contains(stdout, "pages: 1 expected, 0 found") || !strings.Contains(stderr, "0 of 1 expected pages came") {
		t.Errorf("exit status %d: %s\n%s", status, stderr, stdout)
	}
	if _, stderr, status := run(t, "lab", "score", "--seeds", "1", "--gate", "--gate.page-recall", "0", dir); status != 0 || stderr != "" {
		t.Errorf("a gate that asks for nothing: exit status %d, and on stderr, which is no terminal, %q", status, stderr)
	}
}

func TestLabScoreSaysWhatItHasWhenItIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	quietFile(t, dir, "a-short", "1m")
	quietFile(t, dir, "b-endless", "768h")
	cmd := exec.CommandContext(t.Context(), binary, "lab", "score", "--seeds", "1", "--progress", dir)
	var stdout strings.Builder
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	if !lines.Scan() || !strings.Contains(lines.Text(), "1/2 a-short ") {
		t.Errorf("the first word is %q, want that the short one is done", lines.Text())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines.Scan() {
		last = lines.Text()
	}
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(last, "interrupted after 1 runs") {
		t.Errorf("%v, and last %q: want exit status 1, and after how much", err, last)
	}
	if !strings.HasPrefix(stdout.String(), "INTERRUPTED") || !strings.Contains(stdout.String(), "\n1 scenarios, 1 runs") {
		t.Errorf("the score does not say that it is partial, or of what:\n%s", &stdout)
	}
}

func TestLabScoreRefusesWhatItCannotRun(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--seeds", "0", "."}, "--seeds is 0: want 1 to 1000"},
		{[]string{"--quiet-days=-1", "."}, "--quiet-days is -1: want 0 to 3650"},
		{[]string{"--quiet-days", "1", "--tuning", "."}, "leave out --tuning"},
		{[]string{"--max-reads=-1", "."}, "--max-reads is -1"},
		{[]string{"--max-reads", "1", "../../scenarios/hot-key-naive.yml"}, "none of 1 scenarios is left"},
		{[]string{"--gate.page-recall", "2", "."}, "--gate.page-recall is 2: want 0 to 1"},
		{[]string{"nowhere"}, "nowhere"},
		{[]string{t.TempDir()}, "there is no scenario"},
	} {
		_, stderr, status := run(t, append([]string{"lab", "score"}, c.args...)...)
		if status != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit status %d, %q: want 1, and %q", c.args, status, stderr, c.want)
		}
	}
}
