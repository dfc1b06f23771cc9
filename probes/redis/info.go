// Package redis probes Redis, and servers that speak as it does.
package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// InfoName is the name of the probe [Info] makes, unless options give another.
const InfoName = "redis-info"

// Options say how to reach a server and how to name what it says. The zero
// value suits a server that asks for no password.
type Options struct {
	// Name tells probes of one target apart. Default [InfoName].
	Name string
	// Service names the cluster or deployment the server belongs to, as an
	// application's service.name does. Default "redis".
	Service string
	// Interval and Timeout are those of [probes.Probe], with its defaults.
	Interval time.Duration
	Timeout  time.Duration
	// Username and Password log in, if Password is set. Default: none.
	Username string
	Password string
	// TLS switches TLS on. Default: off.
	TLS *tls.Config
}

// Info returns a probe that asks the server at addr, host:port, for INFO and
// answers with one [signal.Vitals] for cache, of the source {Service, addr}: its
// uptime, the reads that found a key and those that did not, and the keys it
// dropped at their expiry or for want of memory.
//
// It is the server's account. It counts the commands of all its clients, in all
// its databases, on keys of any kind: EXISTS and TTL are reads to it. Counts are
// since the server started, or since somebody reset them (CONFIG RESETSTAT).
// It costs the server one INFO of its default sections a run, and one
// connection.
func Info(addr, cache string, o Options) (probes.Probe, error) {
	switch {
	case addr == "":
		return probes.Probe{}, fmt.Errorf("probe redis for cache %q: address is empty", cache)
	case cache == "":
		return probes.Probe{}, fmt.Errorf("probe redis %q: cache name is empty", addr)
	}
	if o.Name == "" {
		o.Name = InfoName
	}
	if o.Service == "" {
		o.Service = "redis"
	}
	client := goredis.NewClient(clientOptions(addr, o))
	p := info{client: client, source: signal.Source{Service: o.Service, Instance: addr}, cache: cache}
	return probes.Probe{
		Name:     o.Name,
		Target:   addr,
		Interval: o.Interval,
		Timeout:  o.Timeout,
		Run:      p.run,
		Close:    client.Close,
	}, nil
}

// clientOptions are those of a client that does what it is told, once, and
// leaves the rest to the runner: no retry, no deadline but the run's. As runs do
// not overlap, it opens one connection, whatever the size of its pool.
func clientOptions(addr string, o Options) *goredis.Options {
	return &goredis.Options{
		Addr:                     addr,
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

type info struct {
	client *goredis.Client
	source signal.Source
	cache  string
}

func (p info) run(ctx context.Context) ([]*signal.Window, []*signal.Vitals, error) {
	text, err := p.client.Info(ctx).Result()
	if err != nil {
		return nil, nil, fmt.Errorf("ask for INFO: %w", err)
	}
	v, err := parseInfo(text)
	if err != nil {
		return nil, nil, err
	}
	v.Service, v.Instance = p.source.Service, p.source.Instance
	v.Cache, v.At = p.cache, signal.At(time.Now())
	return nil, []*signal.Vitals{v}, nil
}
