package memcached

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const sample = "STAT pid 15402\r\nSTAT uptime 52\r\nSTAT time 1796077364\r\nSTAT version 1.6.18\r\nSTAT libevent 2.1.12-stable\r\n" +
	"STAT rusage_user 0.056465\r\nSTAT cmd_set 13\r\nSTAT cmd_flush 1\r\nSTAT get_hits 10\r\nSTAT get_misses 9\r\nSTAT get_expired 2\r\n" +
	"STAT get_flushed 3\r\nSTAT log_worker_dropped 4\r\nSTAT log_watcher_skipped 5\r\nSTAT curr_items 6\r\nSTAT evictions 7\r\nEND\r\n"

func parseStats(text string) (counters, error) {
	var p statsParser
	for line := range bytes.Lines([]byte(text)) {
		done, err := p.line(bytes.TrimRight(line, "\r\n"))
		if err != nil {
			return counters{}, err
		}
		if done {
			break
		}
	}
	return p.finish()
}

func TestParseStats(t *testing.T) {
	got, err := parseStats(sample)
	if err != nil {
		t.Fatal(err)
	}
	want := counters{
		version: "1.6.18", pid: 15402, uptime: 52 * time.Second, clock: 1796077364,
		hits: 10, misses: 9, expired: 2, flushed: 3, sets: 13, flushes: 1, evictions: 7, items: 6,
		logDropped: 4, logSkipped: 5,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(counters{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseStatsRefusesWhatIsNotThatOfAMemcached(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(sample, old, new, 1) }
	tests := []struct{ name, text, err string }{
		{"another server", "-ERR unknown command\r\n", "is this a memcached"},
		{"no hits", replace("STAT get_hits 10\r\n", ""), "get_hits is missing"},
		{"no uptime", replace("STAT uptime 52\r\n", ""), "uptime is missing"},
		{"an uptime beyond all times", replace("uptime 52", "uptime 9223372037"), "want less than 292 years"},
		{"a count below zero", replace("get_hits 10", "get_hits -1"), `get_hits is "-1"`},
		{"a count that is no number", replace("get_hits 10", "get_hits many"), `get_hits is "many"`},
		{"a count without a value", replace("get_hits 10", "get_hits"), `get_hits is ""`},
		{"a count twice", replace("STAT evictions 7", "STAT get_hits 7"), `get_hits is "7"`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseStats(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %+v and %v, want an error with %q", got, err, tc.err)
			}
		})
	}
}

func TestAServerThatWasStartedAnewIsTold(t *testing.T) {
	before := counters{pid: 7, uptime: time.Minute}
	for name, tc := range map[string]struct {
		now  counters
		want bool
	}{
		"the same":                            {counters{pid: 7, uptime: time.Minute}, false},
		"the same, later":                     {counters{pid: 7, uptime: time.Hour}, false},
		"another process":                     {counters{pid: 8, uptime: time.Minute}, true},
		"another process with the old number": {counters{pid: 7, uptime: time.Second}, true},
	} {
		if got := tc.now.anew(&before); got != tc.want {
			t.Errorf("%s: started anew is %v", name, got)
		}
	}
}

func TestParseStatsKeepsAVersionShort(t *testing.T) {
	got, err := parseStats(strings.Replace(sample, "1.6.18", strings.Repeat("1", 1000), 1))
	if err != nil || len(got.version) != maxBuild {
		t.Errorf("kept %d bytes of the version, and %v; want %d", len(got.version), err, maxBuild)
	}
}

func FuzzParseStats(f *testing.F) {
	f.Add(sample)
	f.Add("STAT uptime 18446744073709551615\r\nSTAT  \r\nEND\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseStats(text)
		if err == nil && (n.uptime < 0 || len(n.version) > maxBuild) {
			t.Errorf("got %+v", n)
		}
	})
}
