package config

import (
	"slices"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/stampede-exporter/stampede-exporter/internal/strictyaml"
)

// Probe watches one cache server, or one deployment of several, from outside.
type Probe struct {
	// Type says what speaks there: "redis" or "memcached".
	Type string `yaml:"type"`
	// Name tells probes of one target apart, in metrics: what is watched is
	// added to it, as in "sessions-info". Default: the type.
	Name string `yaml:"name,omitempty"`
	// Target is the server's address, host:port.
	Target string `yaml:"target,omitempty"`
	// Targets are addresses where one is not enough: seeds of a cluster, or
	// Sentinels. One of the two is required.
	Targets []string `yaml:"targets,omitempty"`
	// Mode says how the primaries of a Redis are found: "standalone", the
	// default, "cluster" or "sentinel".
	Mode string `yaml:"mode,omitempty"`
	// Master is the name Sentinels know the primary by.
	Master string `yaml:"master,omitempty"`
	// Database is the number of the Redis database that is watched key by
	// key. Default 0.
	Database Count `yaml:"database,omitempty"`
	// Cache is the name the server's counts are reported under. Give it one
	// of its own: under the name of an instrumented application's cache, its
	// reads would count twice.
	Cache string `yaml:"cache"`
	// Service names the deployment the server belongs to. Default: the type.
	Service string `yaml:"service,omitempty"`
	// Watch says what is watched. Default: all there is, which is for redis
	// "info", "keyspace", "expiry" and "hotkeys", and for memcached "stats",
	// "watch" and "metadump".
	Watch []string `yaml:"watch,omitempty"`
	// Interval is how often it is asked, 100ms to 4s: what is silent for 5 s
	// counts as gone. Default 1s.
	Interval time.Duration `yaml:"interval"`
	// Timeout bounds one run; at most the interval. Default: 80 % of it, and
	// all of it for what listens.
	Timeout time.Duration `yaml:"timeout,omitempty"`
	// Username and PasswordFile log in to a server that asks for it. The file
	// holds the password, and is read at start and at each reload; a newline
	// at its end does not count.
	Username     string `yaml:"username,omitempty"`
	PasswordFile string `yaml:"password_file,omitempty"`
	// SentinelUsername and SentinelPasswordFile log in to Sentinels.
	SentinelUsername     string `yaml:"sentinel_username,omitempty"`
	SentinelPasswordFile string `yaml:"sentinel_password_file,omitempty"`
	// TLS switches TLS on towards the server.
	TLS *promconfig.TLSConfig `yaml:"tls_config,omitempty"`

	// Keyspace says what to make of events on single keys: those of a Redis,
	// and lines of a memcached's log.
	Keyspace KeyspaceProbe `yaml:"keyspace,omitempty"`
	// Expiry, HotKeys and Metadump bound what looking at keys may cost.
	Expiry   ExpiryProbe   `yaml:"expiry,omitempty"`
	HotKeys  HotKeysProbe  `yaml:"hotkeys,omitempty"`
	Metadump MetadumpProbe `yaml:"metadump,omitempty"`

	// Password is the password of a URL; it is in no file.
	Password promconfig.Secret `yaml:"-"`
}

// KeyspaceProbe says what to make of events on single keys.
type KeyspaceProbe struct {
	// Configure lets the probe add the flags it needs to a Redis's setting
	// notify-keyspace-events, and take them away again when it stops.
	// Default: the probe says what is missing.
	Configure bool `yaml:"configure,omitempty"`
	// Locks says which keys are locks: a prefix, a suffix, and between them *
	// or, for the key that the lock guards, {key}. Default: none is known.
	Locks []string `yaml:"locks,omitempty"`
	// MaxEventsPerSecond bounds how many events, or lines of the log, of one
	// server are looked at, 100 to 1 million. Beyond it a part of the keys is
	// watched, or of a memcached a part of the time. Default 20,000 events, or
	// 10,000 lines.
	MaxEventsPerSecond Count `yaml:"max_events_per_second,omitempty"`
	// MaxKeys bounds how many keys of one server are remembered, 64 to 10
	// million. Default 65,536.
	MaxKeys Count `yaml:"max_keys,omitempty"`
	// GiveUp is how long a miss waits for a store, 1s to 1h. Default 60s.
	GiveUp time.Duration `yaml:"give_up,omitempty"`
	// TTLLookups bounds how many times to live a Redis is asked for in one
	// run, up to 1000. Default 32; -1 for none.
	TTLLookups Count `yaml:"ttl_lookups,omitempty"`
	// RawKeys adds keys themselves to the evidence. Default: their group and
	// a hash.
	RawKeys bool `yaml:"raw_keys,omitempty"`
}

// ExpiryProbe bounds the walk over a Redis's keys that finds out when they
// expire.
type ExpiryProbe struct {
	// KeysPerSecond is how many keys of each primary are looked at, 1 to
	// 100,000. Default 1000.
	KeysPerSecond Count `yaml:"keys_per_second,omitempty"`
	// Keep is how long a key counts as it was when it was looked at, 1s to
	// 1h. Default 30s.
	Keep time.Duration `yaml:"keep,omitempty"`
	// Groups is how many groups of keys are told apart, 1 to 100. Default 16.
	Groups Count `yaml:"groups,omitempty"`
}

// HotKeysProbe bounds the search for the keys of a Redis that are used most.
type HotKeysProbe struct {
	// KeysPerSecond is how many keys of each primary are looked at, 1 to
	// 100,000. Default 200.
	KeysPerSecond Count `yaml:"keys_per_second,omitempty"`
	// Track lets the probe start sessions of the command HOTKEYS. Default:
	// only those that somebody else has started are read.
	Track bool `yaml:"track,omitempty"`
}

// MetadumpProbe bounds the listing of a memcached's keys that finds out when
// they expire.
type MetadumpProbe struct {
	// Every is how often all keys are listed, 5s to 1h, default 1m; Within is
	// how long that may take, 1s to Every, default 30s.
	Every  time.Duration `yaml:"every,omitempty"`
	Within time.Duration `yaml:"within,omitempty"`
	// MaxKeys bounds how many keys are taken from one list, at least 1000.
	// Default 2 million.
	MaxKeys Count `yaml:"max_keys,omitempty"`
}

// watched is what there is to watch, by type.
var watched = map[string][]string{
	"redis":     {"info", "keyspace", "expiry", "hotkeys"},
	"memcached": {"stats", "watch", "metadump"},
}

// Watches reports whether the probe watches what.
func (p *Probe) Watches(what string) bool { return slices.Contains(p.Watch, what) }

// Addresses returns where the server is, or the servers are.
func (p *Probe) Addresses() []string {
	if p.Target != "" {
		return append([]string{p.Target}, p.Targets...)
	}
	return slices.Clone(p.Targets)
}

// NameOf returns what to call the probe that watches what; empty for what it is
// called by default.
func (p *Probe) NameOf(what string) string {
	if p.Name == "" {
		return ""
	}
	return p.Name + "-" + what
}

// UnmarshalYAML fills in defaults for what the file leaves out.
func (p *Probe) UnmarshalYAML(unmarshal func(any) error) error {
	*p = Probe{}
	type plain Probe
	if err := unmarshal((*plain)(p)); err != nil {
		return strictyaml.At(err, "probes")
	}
	p.setDefaults()
	return nil
}

func (p *Probe) setDefaults() {
	if p.Interval == 0 {
		p.Interval = time.Second
	}
	if p.Service == "" {
		p.Service = p.Type
	}
	if p.Watch == nil {
		p.Watch = slices.Clone(watched[p.Type])
	}
}
