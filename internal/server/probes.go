package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	promconfig "github.com/prometheus/common/config"

	"github.com/stampede-exporter/stampede-exporter/internal/config"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/memcached"
	"github.com/stampede-exporter/stampede-exporter/probes/redis"
)

// newProbes returns the probes c asks for.
func (s *Server) newProbes(c *config.Config) (*probes.Runner, error) {
	var list []probes.Probe
	var errs []error
	for i := range c.Probes {
		of, err := probesOf(&c.Probes[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("configure probes.%d: %w", i, err))
			continue
		}
		list = append(list, of...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return probes.New(list, probes.Options{Sink: s.probed, Report: s.reported})
}

// secrets are what it takes to log in.
type secrets struct {
	password, sentinel string
	tls                *tls.Config
}

func secretsOf(c *config.Probe) (x secrets, err error) {
	if x.password, err = readPassword(c.PasswordFile); err != nil {
		return x, err
	}
	if x.password == "" {
		x.password = string(c.Password)
	}
	if x.sentinel, err = readPassword(c.SentinelPasswordFile); err != nil {
		return x, err
	}
	if c.TLS != nil {
		x.tls, err = promconfig.NewTLSConfig(c.TLS)
	}
	return x, err
}

// probesOf makes the probes of one server: one for each thing that is watched.
// There is a map for each type, with a function for each of its things.
func probesOf(c *config.Probe) ([]probes.Probe, error) {
	x, err := secretsOf(c)
	if err != nil {
		return nil, err
	}
	makers := map[string]map[string]func(*config.Probe, secrets) (probes.Probe, error){
		"redis":     {"info": redisInfo, "keyspace": redisKeyspace, "expiry": redisExpiry, "hotkeys": redisHotKeys},
		"memcached": {"stats": memcachedStats, "watch": memcachedWatch, "metadump": memcachedMetadump},
	}[c.Type]
	var list []probes.Probe
	for _, what := range c.Watch {
		maker := makers[what]
		if maker == nil {
			return nil, fmt.Errorf("%q of %q cannot be watched", what, c.Type)
		}
		p, err := maker(c, x)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func redisOptions(c *config.Probe, x secrets, what string) redis.Options {
	return redis.Options{
		Name: c.NameOf(what), Service: c.Service, Interval: c.Interval, Timeout: c.Timeout,
		Mode: redis.Mode(c.Mode), Master: c.Master, Database: int(c.Database),
		Username: c.Username, Password: x.password,
		SentinelUsername: c.SentinelUsername, SentinelPassword: x.sentinel,
		TLS: x.tls,
	}
}

func redisInfo(c *config.Probe, x secrets) (probes.Probe, error) {
	return redis.Info(c.Addresses(), c.Cache, redisOptions(c, x, "info"))
}

func redisKeyspace(c *config.Probe, x secrets) (probes.Probe, error) {
	k := &c.Keyspace
	return redis.Keyspace(c.Addresses(), c.Cache, redisOptions(c, x, "keyspace"), redis.KeyspaceOptions{
		Configure: k.Configure, Locks: k.Locks,
		MaxEventsPerSecond: int(k.MaxEventsPerSecond), MaxKeys: int(k.MaxKeys),
		GiveUp: k.GiveUp, TTLLookups: int(k.TTLLookups), RawKeys: k.RawKeys,
	})
}

func redisExpiry(c *config.Probe, x secrets) (probes.Probe, error) {
	e := &c.Expiry
	return redis.Expiry(c.Addresses(), c.Cache, redisOptions(c, x, "expiry"), redis.ExpiryOptions{
		KeysPerSecond: int(e.KeysPerSecond), Keep: e.Keep, Groups: int(e.Groups),
	})
}

func redisHotKeys(c *config.Probe, x secrets) (probes.Probe, error) {
	return redis.HotKeys(c.Addresses(), c.Cache, redisOptions(c, x, "hotkeys"), redis.HotKeysOptions{
		KeysPerSecond: int(c.HotKeys.KeysPerSecond), Track: c.HotKeys.Track,
	})
}

func memcachedOptions(c *config.Probe, x secrets, what string) memcached.Options {
	return memcached.Options{
		Name: c.NameOf(what), Service: c.Service, Interval: c.Interval, Timeout: c.Timeout,
		Username: c.Username, Password: x.password, TLS: x.tls,
	}
}

func memcachedStats(c *config.Probe, x secrets) (probes.Probe, error) {
	return memcached.Stats(c.Addresses()[0], c.Cache, memcachedOptions(c, x, "stats"))
}

func memcachedWatch(c *config.Probe, x secrets) (probes.Probe, error) {
	k := &c.Keyspace
	return memcached.Watch(c.Addresses()[0], c.Cache, memcachedOptions(c, x, "watch"), memcached.WatchOptions{
		Locks: k.Locks, MaxLinesPerSecond: int(k.MaxEventsPerSecond), MaxKeys: int(k.MaxKeys),
		GiveUp: k.GiveUp, RawKeys: k.RawKeys,
	})
}

func memcachedMetadump(c *config.Probe, x secrets) (probes.Probe, error) {
	m := &c.Metadump
	return memcached.Metadump(c.Addresses()[0], c.Cache, memcachedOptions(c, x, "metadump"), memcached.MetadumpOptions{
		Every: m.Every, Within: m.Within, MaxKeys: int(m.MaxKeys),
	})
}

// readPassword returns the contents of a file without a newline at its end; no
// file is no password.
func readPassword(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
