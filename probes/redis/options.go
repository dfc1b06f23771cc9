package redis

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Mode says how the primaries of a deployment are found.
type Mode string

// Modes. The zero value is [Standalone].
const (
	// Standalone: the servers given, each of which is watched.
	Standalone Mode = "standalone"
	// Cluster: every primary of a Redis Cluster, found by asking the servers
	// given, or any found before.
	Cluster Mode = "cluster"
	// Sentinel: the primary that the Sentinels given name.
	Sentinel Mode = "sentinel"
)

// Options say how to reach a server and how to name what it says. The zero
// value suits a server that asks for no password.
type Options struct {
	// Name tells probes of one target apart. Default: that of what is asked,
	// such as [InfoName].
	Name string
	// Service names the cluster or deployment the server belongs to, as an
	// application's service.name does. Default "redis".
	Service string
	// Interval and Timeout are those of [probes.Probe], with its defaults.
	Interval time.Duration
	Timeout  time.Duration
	// Mode says what the addresses are addresses of. Default [Standalone].
	Mode Mode
	// Master is the name of the primary that Sentinels know it by; with
	// [Sentinel] it is required.
	Master string
	// Database is the number of the database to watch, where a probe watches
	// one; a cluster has only 0. Default 0.
	Database int
	// Username and Password log in, if Password is set. Default: none.
	Username string
	Password string
	// SentinelUsername and SentinelPassword log in to Sentinels, if
	// SentinelPassword is set. Default: none.
	SentinelUsername string
	SentinelPassword string
	// TLS switches TLS on, towards Sentinels too. Default: off.
	TLS *tls.Config
}

func (o Options) withDefaults(name string) Options {
	if o.Name == "" {
		o.Name = name
	}
	if o.Service == "" {
		o.Service = "redis"
	}
	if o.Mode == "" {
		o.Mode = Standalone
	}
	return o
}

// validate checks options that have their defaults, and what goes with them.
func (o Options) validate(addrs []string, cache string) error {
	what := strings.Join(addrs, ",")
	switch {
	case len(addrs) == 0 || slices.Contains(addrs, ""):
		return fmt.Errorf("probe redis for cache %q: address is empty", cache)
	case cache == "":
		return fmt.Errorf("probe redis %q: cache name is empty", what)
	case !slices.Contains([]Mode{Standalone, Cluster, Sentinel}, o.Mode):
		return fmt.Errorf("probe redis %q: mode is %q: want standalone, cluster or sentinel", what, o.Mode)
	case (o.Mode == Sentinel) != (o.Master != ""):
		return fmt.Errorf("probe redis %q: mode is %q and master %q: want a master with mode sentinel, and only then", what, o.Mode, o.Master)
	case o.Database < 0 || o.Mode == Cluster && o.Database != 0:
		return fmt.Errorf("probe redis %q: database is %d: want 0 or more, and 0 in a cluster", what, o.Database)
	}
	for _, a := range addrs {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("probe redis %q: %q is not an address: want host:port", what, a)
		}
	}
	return nil
}

// target names the addresses in metrics.
func target(addrs []string) string { return strings.Join(addrs, ",") }

// clientOptions are those of a client that does what it is told, once, and
// leaves the rest to the runner: no retry, no deadline but the run's. As runs do
// not overlap, it opens one connection, whatever the size of its pool.
func clientOptions(addr string, o Options) *goredis.Options {
	return &goredis.Options{
		Addr:                     addr,
		DB:                       o.Database,
		Username:                 o.Username,
		Password:                 o.Password,
		TLSConfig:                o.TLS,
		Protocol:                 2, // servers before 6.0 know no other
		MaxRetries:               -1,
		DialerRetries:            1,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// sentinelOptions are [clientOptions] of a Sentinel.
func sentinelOptions(addr string, o Options) *goredis.Options {
	o.Username, o.Password, o.Database = o.SentinelUsername, o.SentinelPassword, 0
	return clientOptions(addr, o)
}
