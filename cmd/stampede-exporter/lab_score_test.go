package main_test

import (
	"encoding/json"
	"os"
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

func TestLabScoreRefusesWhatItCannotRun(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--seeds", "0", "."}, "--seeds is 0: want 1 to 1000"},
		{[]string{"nowhere"}, "nowhere"},
		{[]string{t.TempDir()}, "there is no scenario"},
	} {
		_, stderr, status := run(t, append([]string{"lab", "score"}, c.args...)...)
		if status != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit status %d, %q: want 1, and %q", c.args, status, stderr, c.want)
		}
	}
}
