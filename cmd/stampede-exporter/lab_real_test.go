package main_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/internal/lab"
)

// realScenario runs in real time, unless an event is added that does not.
const realScenario = `name: NAME
duration: 2s
origins: {db: {concurrency: 2}}
caches:
  a: {origin: db, ttl: 500ms, recompute: {fixed: 10ms}}
workloads: [{cache: a, rate: 50}]
events: [{at: 0s, EVENT}]
`

func realFile(t *testing.T, dir, name, event string) string {
	t.Helper()
	file := filepath.Join(dir, name+".yml")
	write(t, file, strings.NewReplacer("NAME", name, "EVENT", event).Replace(realScenario))
	return file
}

func TestLabRunOnARealRedisLeavesOutWhatNeedsASimulatorAndSaysSo(t *testing.T) {
	dir := t.TempDir()
	realFile(t, dir, "plain", "do: warm, cache: a")
	simulated := realFile(t, dir, "simulated", "do: counter_reset")
	stdout, stderr, status := run(t, "lab", "run", "--redis.addr", cachetest.Redis(t), "--output=json", dir)
	if status != 0 {
		t.Fatalf("exit %d: %s", status, stderr)
	}
	var r lab.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Scenario != "plain" || !r.OK || r.Truth["recomputes"] == 0 {
		t.Errorf("result %+v: want one of plain, in which something was recomputed", r)
	}
	for _, want := range []string{
		"left out: " + simulated + ":7: events.0.do: counter_reset runs only in virtual time",
		"plain: takes 2s; 1 left, 2s in all",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("on stderr: %s\nwant %q", stderr, want)
		}
	}
}

func TestLabRunOnARealRedisSaysWhatItCannotDo(t *testing.T) {
	dir := t.TempDir()
	plain, simulated := realFile(t, dir, "plain", "do: warm, cache: a"), realFile(t, t.TempDir(), "simulated", "do: counter_reset")
	for name, c := range map[string]struct{ path, want string }{
		"a server that is not there":    {plain, "reach redis at 127.0.0.1:1: dial tcp 127.0.0.1:1"},
		"a file that needs a simulator": {simulated, simulated + ":7: events.0.do: counter_reset runs only in virtual time"},
		"a folder of such files":        {filepath.Dir(simulated), "no scenario can be run in real time"},
	} {
		stdout, stderr, status := run(t, "lab", "run", "--redis.addr", "127.0.0.1:1", c.path)
		if status != 1 || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d: %s%s\nwant %q", name, status, stdout, stderr, c.want)
		}
	}
}
