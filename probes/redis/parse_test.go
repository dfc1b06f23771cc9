package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

const sample = "# Server\r\nredis_version:7.0.15\r\nuptime_in_seconds:90\r\n\r\n# Stats\r\nkeyspace_hits:12\r\n" +
	"keyspace_misses:3\r\nexpired_keys:4\r\nevicted_keys:5\r\n\r\n# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\n"

func TestParseInfo(t *testing.T) {
	drop := func(name string) string {
		var kept []string
		for line := range strings.Lines(sample) {
			if !strings.HasPrefix(line, name+":") {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	full := &signal.Vitals{
		Source:  signal.Source{Build: "7.0.15"},
		Uptime:  90 * time.Second,
		Lookups: signal.Lookups{Hits: 12, Misses: 3},
		Expired: 4, Evicted: 5,
		Server: signal.Server{Keys: 1},
	}
	anonymous := *full
	anonymous.Build = ""
	tests := []struct {
		name, text string
		want       *signal.Vitals
		err        string
	}{
		{"a server's answer", sample, full, ""},
		{"lines that end without a carriage return", strings.ReplaceAll(sample, "\r", ""), full, ""},
		{"a server that hides its version", drop("redis_version"), &anonymous, ""},
		{"nothing", "", nil, "uptime_in_seconds is missing"},
		{"something else", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n", nil, "is missing"},
		{"no uptime", drop("uptime_in_seconds"), nil, "uptime_in_seconds is missing"},
		{"no hits", drop("keyspace_hits"), nil, "keyspace_hits is missing"},
		{"no misses", drop("keyspace_misses"), nil, "keyspace_misses is missing"},
		{"no expired keys", drop("expired_keys"), nil, "expired_keys is missing"},
		{"no evicted keys", drop("evicted_keys"), nil, "evicted_keys is missing"},
		{"a negative count", strings.Replace(sample, ":12", ":-12", 1), nil, `keyspace_hits is "-12"`},
		{"a count that is no number", strings.Replace(sample, ":12", ":many", 1), nil, `keyspace_hits is "many"`},
		{"a count beyond 64 bits", strings.Replace(sample, ":12", ":18446744073709551616", 1), nil, "keyspace_hits is"},
		{"a count twice", sample + "keyspace_hits:13\r\n", nil, `keyspace_hits is "13"`},
		{"an uptime that would overflow", strings.Replace(sample, ":90", ":9223372037", 1), nil, "uptime_in_seconds is 9223372037"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseInfo(tc.text, "")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tc.err == "" && err != nil {
				t.Errorf("got %v, want no error", err)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, want an error that mentions %q", err, tc.err)
			}
		})
	}
}

func TestParseInfoCountsCommands(t *testing.T) {
	const commands = "# Commandstats\r\ncmdstat_flushall:calls=2,usec=3,usec_per_call=1.50\r\ncmdstat_flushdb:calls=1\r\n" +
		"cmdstat_set:calls=10,usec=1\r\ncmdstat_setex:calls=5\r\ncmdstat_pttl:calls=4,usec=2\r\ncmdstat_get:calls=99\r\ncmdstat_psetex:calls=many\r\n"
	got, err := parseInfo(sample+"db1:keys=41,expires=0\r\nblocked_clients:3\r\n", commands)
	if err != nil {
		t.Fatal(err)
	}
	if want := (signal.Server{Flushes: 3, Sets: 15, Blocked: 3, Keys: 42}); got.Server != want {
		t.Errorf("got %+v, want %+v", got.Server, want)
	}
	if want := (signal.Lookups{Hits: 8, Misses: 3}); got.Lookups != want {
		t.Errorf("got %+v, want %+v: 4 of 12 hits were PTTL", got.Lookups, want)
	}
}

func TestParseInfoKeepsAVersionShort(t *testing.T) {
	got, err := parseInfo(strings.Replace(sample, "7.0.15", strings.Repeat("7", 1000), 1), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Build) != maxBuild {
		t.Errorf("kept %d bytes of the version, want %d", len(got.Build), maxBuild)
	}
}

func FuzzParseInfo(f *testing.F) {
	f.Add(sample)
	f.Add("")
	f.Add(":\n#:\r\nuptime_in_seconds:9223372036854775807\nkeyspace_hits:0x1\n")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseInfo(text, text)
		if (v == nil) == (err == nil) {
			t.Fatalf("got %v and %v, want one of them", v, err)
		}
		if v != nil && (v.Uptime < 0 || len(v.Build) > maxBuild) {
			t.Errorf("got uptime %v, version of %d bytes", v.Uptime, len(v.Build))
		}
	})
}
