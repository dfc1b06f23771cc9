package memcached

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"
)

// Options say how to reach a server and how to name what it says. The zero
// value suits a server that asks for no password.
type Options struct {
	// Name tells probes of one target apart. Default: that of what is asked,
	// such as [StatsName].
	Name string
	// Service names the deployment the server belongs to, as an application's
	// service.name does. Default "memcached".
	Service string
	// Interval and Timeout are those of [probes.Probe], with its defaults.
	Interval time.Duration
	Timeout  time.Duration
	// Username and Password log in, if Password is set, the way a server that
	// was started with an auth file (-Y) asks for it. A server with SASL (-S)
	// speaks another protocol, which has neither log nor list of keys.
	// Default: none.
	Username string
	Password string
	// TLS switches TLS on. Default: off. It is cloned, and verifies the name
	// of the host unless it gives another.
	TLS *tls.Config
}

// streamShare is how much of its interval a run may take that reads a stream, in
// percent: the less it rests, the less the server has to keep for it.
const streamShare = 95

// streaming returns o with the defaults of a probe that reads a stream.
func (o Options) streaming(interval time.Duration) Options {
	if o.Interval == 0 {
		o.Interval = interval
	}
	if o.Timeout == 0 {
		o.Timeout = o.Interval * streamShare / 100
	}
	return o
}

func (o Options) withDefaults(name string) Options {
	if o.Name == "" {
		o.Name = name
	}
	if o.Service == "" {
		o.Service = "memcached"
	}
	return o
}

// validate checks options that have their defaults, and what goes with them. The
// credentials must fit the one line they are sent in.
func (o Options) validate(addr, cache string) error {
	_, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil || port == "":
		return fmt.Errorf("probe memcached for cache %q: %q is not an address: want host:port", cache, addr)
	case cache == "":
		return fmt.Errorf("probe memcached %q: cache name is empty", addr)
	case o.Password != "" && o.Username == "":
		return fmt.Errorf("probe memcached %q: there is a password and no username", addr)
	case strings.ContainsAny(o.Username, " \r\n:"):
		return fmt.Errorf("probe memcached %q: the username has a space, a colon or an end of line", addr)
	case strings.ContainsAny(o.Password, " \r\n"):
		return fmt.Errorf("probe memcached %q: the password has a space or an end of line, and the protocol has no room for them", addr)
	}
	return nil
}
