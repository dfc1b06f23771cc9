package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	promconfig "github.com/prometheus/common/config"

	"github.com/stampede-exporter/stampede-exporter/internal/config"
)

func TestProbeFromURL(t *testing.T) {
	redis := func(change func(*config.Probe)) config.Probe {
		p := config.Probe{Type: "redis", Target: "cache:6379", Cache: "cache:6379", Service: "redis", Interval: time.Second,
			Watch: []string{"info", "keyspace", "expiry", "hotkeys"}}
		change(&p)
		return p
	}
	tests := []struct {
		name, url string
		want      config.Probe
	}{
		{"a host is enough", "redis://cache", redis(func(*config.Probe) {})},
		{"a password is taken", "redis://user:hunter2@cache:6379", redis(func(p *config.Probe) { p.Username, p.Password = "user", "hunter2" })},
		{"one without a user too", "redis://:hunter2@cache:6379", redis(func(p *config.Probe) { p.Password = "hunter2" })},
		{"a file with the password is better", "redis://user@cache?password_file=/secret", redis(func(p *config.Probe) { p.Username, p.PasswordFile = "user", "/secret" })},
		{"a path is the database", "redis://cache:6379/3?cache=feed", redis(func(p *config.Probe) { p.Database, p.Cache = 3, "feed" })},
		{"an s is for TLS", "rediss://cache:6379", redis(func(p *config.Probe) { p.TLS = &promconfig.TLSConfig{} })},
		{"a cluster has seeds", "redis://cache:6379?mode=cluster&target=a:1,b:2&target=c:3", redis(func(p *config.Probe) {
			p.Mode, p.Targets = "cluster", []string{"a:1", "b:2", "c:3"}
		})},
		{"Sentinels know a master", "redis://cache:6379?mode=sentinel&master=main&name=main&service=sessions", redis(func(p *config.Probe) {
			p.Mode, p.Master, p.Name, p.Service = "sentinel", "main", "main", "sessions"
		})},
		{"what is watched can be said, and locks", "redis://cache:6379?watch=info,keyspace&lock=lock:{key}&lock=*:mutex&configure=true&raw_keys=1", redis(func(p *config.Probe) {
			p.Watch = []string{"info", "keyspace"}
			p.Keyspace = config.KeyspaceProbe{Locks: []string{"lock:{key}", "*:mutex"}, Configure: true, RawKeys: true}
		})},
		{"memcached has its own port", "memcached://cache", config.Probe{Type: "memcached", Target: "cache:11211", Cache: "cache:11211", Service: "memcached",
			Interval: time.Second, Watch: []string{"stats", "watch", "metadump"}}},
		{"an address of IPv6 is one", "redis://[::1]:7000", redis(func(p *config.Probe) { p.Target, p.Cache = "[::1]:7000", "[::1]:7000" })},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := config.ProbeFromURL(tc.url)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestProbeFromURLRefusesAndKeepsThePasswordToItself(t *testing.T) {
	for url, want := range map[string]string{
		"redis://u:hunter2@cache:x":                      "not a URL",
		"redis://u:hunter2%zz@cache":                     "not a URL",
		"hunter2":                                        "not a URL",
		"redis://:hunter2@:6379":                         "no host",
		"mongodb://u:hunter2@cache":                      "not a type of probe",
		"redis://u:hunter2@cache/feed":                   "not the number of a database",
		"redis://u:hunter2@cache/-1":                     "out of range",
		"redis://u:hunter2@cache?mode=ring":              "out of range",
		"redis://u:hunter2@cache?mode=cluster&mode=ring": "2 times",
		"redis://u:hunter2@cache?configure=perhaps":      "want true or false",
		"redis://u:hunter2@cache?password=hunter2":       "not known",
		"redis://u:hunter2@cache?watch=monitor":          "cannot be watched",
		"redis://u:hunter2@cache?lock=lock":              "not a pattern of locks",
		"redis://u:hunter2@cache?mode=sentinel":          "master",
		"redis://u:hunter2@cache/1?mode=cluster":         "out of range",
		"memcached://u:hunter2@cache?mode=cluster":       "for redis only",
		"memcached://u:hunter2@cache?target=b:1":         "more than one address",
		"memcached://u:hunter2@cache?configure=true":     "for redis only",
		"redis://hunter2@cache":                          "password_file",
	} {
		_, err := config.ProbeFromURL(url)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error with %q and without the password", url, err, want)
		}
	}
}

func TestProbesOfFlagsJoinThoseOfTheFile(t *testing.T) {
	c, err := config.Parse([]byte("probes: [{type: redis, target: 'a:1', cache: a}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := config.ProbeFromURL("redis://:hunter2@b:1")
	if err != nil {
		t.Fatal(err)
	}
	both, err := c.WithProbes([]config.Probe{b})
	if err != nil || len(both.Probes) != 2 || len(c.Probes) != 1 {
		t.Errorf("%d probes, %v: want 2, and the file's left alone", len(both.Probes), err)
	}
	if strings.Contains(both.String(), "hunter2") {
		t.Error("what is shown holds the password")
	}
	if _, err := both.WithProbes([]config.Probe{b}); err == nil {
		t.Error("the same probe is there twice, and nobody minds")
	}
}

func FuzzProbeFromURL(f *testing.F) {
	f.Add("redis://user:hunter2@cache:6379/3?cache=feed&lock=lock:{key}")
	f.Add("rediss://[::1]:7000?mode=sentinel&master=a&target=b:1,c:2")
	f.Add("memcached://cache?watch=stats&raw_keys=true")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := config.ProbeFromURL(text)
		if err == nil && (p.Cache == "" || len(p.Watch) == 0 || len(p.Addresses()) == 0) {
			t.Errorf("%q gives %+v", text, p)
		}
	})
}
