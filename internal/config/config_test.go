package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	promconfig "github.com/prometheus/common/config"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/config"
	"github.com/stampede-exporter/stampede-exporter/internal/strictyaml"
)

func TestLoadTakesAFileThatSaysEverything(t *testing.T) {
	got, err := config.Load(filepath.Join("testdata", "full.yml"))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.ExternalURL = "https://stampede.example.org"
	want.RunbookURL = "https://wiki.example.org/runbooks"
	want.OTLP = config.OTLP{MaxRequestBytes: 4 << 20, TLS: &config.ServerTLS{
		CertFile: "testdata/tls/server.pem", KeyFile: "/etc/stampede/server.key", ClientCAFile: "testdata/tls/clients.pem",
	}}
	want.Fleet = config.Fleet{MaxKeys: 20000, MaxSources: 500, Lateness: 3 * time.Second}
	want.Detectors.HotKeyExpiry = detectors.HotKeyExpiryConfig{PagePeak: 30, ClearAfter: 5 * time.Minute}
	want.Origins = map[string]config.Origin{"db": {Concurrency: 8, Recompute: 400 * time.Millisecond}}
	want.Caches = map[string]config.Cache{"feed": {Origin: "db"}, "profile": {Origin: "db"}}
	want.Alertmanager = &config.Alertmanager{
		URLs:        []string{"http://alertmanager-0:9093", "https://alertmanager-1.example.org/path"},
		MinSeverity: "page", Resend: 15 * time.Second, Timeout: 5 * time.Second,
		Labels: map[string]string{"cluster": "eu-1"},
		HTTP:   promconfig.DefaultHTTPClientConfig,
	}
	want.Alertmanager.HTTP.BasicAuth = &promconfig.BasicAuth{Username: "stampede", Password: "hunter2"}
	want.Probes = []config.Probe{
		{Type: "redis", Target: "127.0.0.1:6379", Cache: "redis-feed", Service: "redis", Interval: time.Second,
			Watch: []string{"info", "keyspace", "expiry", "hotkeys"}},
		{Type: "redis", Name: "second", Target: "127.0.0.1:6379", Cache: "redis-profile", Service: "sessions", Database: 2,
			Watch: []string{"info", "keyspace"}, Interval: 2 * time.Second, Timeout: 500 * time.Millisecond,
			Username: "probe", PasswordFile: "testdata/redis.password", TLS: &promconfig.TLSConfig{CAFile: "testdata/tls/redis-ca.pem"},
			Keyspace: config.KeyspaceProbe{Configure: true, Locks: []string{"lock:{key}", "*:mutex"}, MaxEventsPerSecond: 5000,
				MaxKeys: 1000, GiveUp: 30 * time.Second, TTLLookups: -1, RawKeys: true}},
		{Type: "redis", Targets: []string{"10.0.0.1:26379", "10.0.0.2:26379"}, Mode: "sentinel", Master: "cache", Cache: "redis-sessions",
			Service: "redis", Watch: []string{"expiry", "hotkeys"}, Interval: time.Second, SentinelUsername: "guard", SentinelPasswordFile: "testdata/sentinel.password",
			Expiry:  config.ExpiryProbe{KeysPerSecond: 500, Keep: time.Minute, Groups: 8},
			HotKeys: config.HotKeysProbe{KeysPerSecond: 100, Track: true}},
		{Type: "memcached", Target: "127.0.0.1:11211", Cache: "memcached", Service: "memcached", Interval: time.Second,
			Watch:    []string{"stats", "watch", "metadump"},
			Metadump: config.MetadumpProbe{Every: time.Minute, Within: 30 * time.Second, MaxKeys: 10000}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(promconfig.ProxyConfig{})); diff != "" {
		t.Errorf("unlike what the file says (-want +got):\n%s", diff)
	}
}

func TestAnEmptyFileIsTheDefaultConfiguration(t *testing.T) {
	for name, text := range map[string]string{"no bytes": "", "only comments": "# nothing\n", "an empty document": "---\n"} {
		got, err := config.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(config.Default(), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// invalid says what is wrong with each of testdata/invalid-*.yml.
var invalid = map[string]string{
	"unknown-field":                  `:2: orgins: unknown field`,
	"unknown-nested-field":           `:3: alertmanager.resends: unknown field`,
	"unknown-probe-field":            `:5: probes.0.pasword_file: unknown field`,
	"duration-without-unit":          `:3: alertmanager.resend: "30" is not a duration: want a number with a unit, such as 500ms, 30s or 5m`,
	"duration-with-wrong-unit":       `:2: fleet.lateness: "2 seconds" is not a duration: want a number with a unit, such as 500ms, 30s or 5m`,
	"duration-out-of-range":          `:2: fleet.lateness: 2m0s is out of range: want 100ms to 1m0s`,
	"number":                         `:3: origins.db.concurrency: "eight" is not a whole number in range`,
	"fraction":                       `:3: origins.db.concurrency: "1.5" is not a whole number in range`,
	"concurrency":                    `:3: origins.db.concurrency: 0 is out of range: want 1 to 1000000`,
	"recompute":                      `:4: origins.db.recompute: 2h0m0s is out of range: want 100µs to 1h0m0s`,
	"origin-without-concurrency":     `:2: origins.db.concurrency: 0 is out of range: want 1 to 1000000`,
	"undeclared-origin":              `:5: caches.feed.origin: "database" is not declared: want the name of one of origins`,
	"request-bytes":                  `:2: otlp.max_request_bytes: 1024 is out of range: want 65536 to 268435456`,
	"tls-without-key":                `:3: otlp.tls.key_file: is missing or empty`,
	"external-url":                   `:1: external_url: is not a URL: want one such as http://host:9093`,
	"alertmanager-without-urls":      `:2: alertmanager.urls: is missing or empty`,
	"alertmanager-url":               `:4: alertmanager.urls.1: is not a URL: want one such as http://host:9093`,
	"alertmanager-url-with-password": `:2: alertmanager.urls.0: holds a user name, and would be shown: want none (for Alertmanager, use http_config.basic_auth)`,
	"alertmanager-url-twice":         `:2: alertmanager.urls.1: is there twice`,
	"alertmanager-severity":          `:3: alertmanager.min_severity: "critical" is out of range: want ticket or page`,
	"alert-label-name":               `:4: alertmanager.labels.data-center: "data-center" is not a label name: want letters, digits and underscores, no digit first`,
	"alert-label-reserved":           `:4: alertmanager.labels.severity: is set by the exporter: want another name`,
	"alert-label-empty":              `:4: alertmanager.labels.cluster: has no value, and Alertmanager drops such labels`,
	"two-passwords":                  `:3: alertmanager.http_config: at most one of basic_auth password, password_file & password_ref must be configured`,
	"probe-type":                     `:2: probes.0.type: "mongodb" is not a type of probe: want memcached or redis`,
	"probe-target":                   `:3: probes.0.target: "localhost" is not an address: want host:port`,
	"probe-mode":                     `:4: probes.0.mode: "ring" is out of range: want standalone, cluster or sentinel`,
	"probe-watch":                    `:5: probes.0.watch: "monitor" cannot be watched: want info, keyspace, expiry, hotkeys`,
	"probe-lock":                     `:6: probes.0.keyspace.locks: "lock" is not a pattern of locks: want one * or {key}, and text before or after it`,
	"probe-timeout":                  `:6: probes.0.timeout: 2s is out of range: want 1ms to 1s`,
	"probe-interval":                 `:5: probes.0.interval: 1m0s is out of range: want 100ms to 4s`,
	"probe-twice":                    `:3: probes.1.name: probe 0 has the same name and target: want another name`,
	"probe-without-cache":            `:2: probes.0.cache: is missing or empty`,
	"probe-user-without-password":    `:2: probes.0.password_file: is missing or empty`,
	"detector-threshold":             `:2: detectors: configure hot-key-expiry: page_peak is 1: want 2 to 1000000`,
	"detector-fraction":              `:3: detectors.hot-key-expiry.page_peak: 19.5 is a fraction: want a whole number`,
	"unknown-detector":               `:2: detectors.hot-key: unknown field`,
	"syntax":                         `:3: mapping values are not allowed in this context`,
	"not-a-group":                    `:1: fleet: "3" is not a group of fields`,
	"list":                           `:1: a list is not a group of fields`,
	"two-documents":                  `: a second document follows: want one`,
	"repeated-field":                 `:2: mapping key "fleet" already defined at line 1`,
	"several": `:2: fleet.max_keys: 10 is out of range: want 1000 to 10000000
testdata/invalid-several.yml:3: fleet.lateness: 2m0s is out of range: want 100ms to 1m0s
testdata/invalid-several.yml:5: alertmanager.urls: is missing or empty`,
}

func TestLoadSaysWhatIsWrongAndWhere(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "invalid-*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(invalid) {
		t.Errorf("%d files and %d expectations: want one for each", len(files), len(invalid))
	}
	for _, file := range files {
		reason := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "invalid-"), ".yml")
		_, err := config.Load(file)
		var wrong *strictyaml.Error
		if !errors.As(err, &wrong) {
			t.Errorf("%s: got %v: want a *strictyaml.Error", file, err)
			continue
		}
		if diff := cmp.Diff(file+invalid[reason], err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

func TestLoadRefusesWhatIsNoConfigurationFile(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big.yml")
	if err := os.WriteFile(big, []byte(strings.Repeat("# filler\n", 1<<17)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "absent.yml"): "no such file or directory",
		t.TempDir():                              "is a directory",
		big:                                      "more than 1048576 bytes",
	} {
		if _, err := config.Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v: want an error with %q", path, err, want)
		}
	}
}

func TestAShownConfigurationHoldsNoSecretAndIsOneItself(t *testing.T) {
	c, err := config.Load(filepath.Join("testdata", "full.yml"))
	if err != nil {
		t.Fatal(err)
	}
	text := c.String()
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "<secret>") {
		t.Errorf("the password is not replaced:\n%s", text)
	}
	again, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatalf("what is shown does not parse: %v\n%s", err, text)
	}
	if again.Fleet != c.Fleet || again.OTLP.MaxRequestBytes != c.OTLP.MaxRequestBytes {
		t.Errorf("what is shown differs from what was read:\n%s", text)
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.yml"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := config.Parse(text)
		if (c == nil) == (err == nil) {
			t.Fatalf("got configuration %v and error %v: want exactly one", c, err)
		}
		var wrong *strictyaml.Error
		if err != nil && (!errors.As(err, &wrong) || len(wrong.Problems) == 0) {
			t.Fatalf("got %v: want a *strictyaml.Error with a problem", err)
		}
		if c != nil {
			_ = c.String()
		}
	})
}
