package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stampede-exporter/stampede-exporter/internal/config"
)

// probeFlags are the probes that flags ask for.
type probeFlags struct{ redis, memcached probeURLs }

func (f *probeFlags) add(clause *kingpin.CmdClause) {
	clause.Flag("probe.redis", "Watch a Redis from outside, such as redis://user@host:6379/0?password_file=FILE&cache=NAME (rediss:// for TLS; &mode=cluster or sentinel; &configure=true to let the probe switch key events on). Can be repeated.").
		PlaceHolder("URL").SetValue(&f.redis)
	clause.Flag("probe.memcached", "Watch a memcached from outside, such as memcached://host:11211?cache=NAME, or host:port. Can be repeated.").
		PlaceHolder("URL").SetValue(&f.memcached)
	f.redis.kind, f.memcached.kind = "redis", "memcached"
}

// all returns the probes, in the order of their types.
func (f *probeFlags) all() []config.Probe { return append(f.redis.list, f.memcached.list...) }

// load returns a function that reads a configuration, if read is not nil, and
// adds the probes to it.
func (f *probeFlags) load(read func() (*config.Config, error)) func() (*config.Config, error) {
	return func() (*config.Config, error) {
		c := config.Default()
		if read != nil {
			var err error
			if c, err = read(); err != nil {
				return nil, err
			}
		}
		return c.WithProbes(f.all())
	}
}

// probeURLs is a flag that can be repeated. It implements [kingpin.Value].
type probeURLs struct {
	kind string
	list []config.Probe
}

// Set adds a probe. Its error does not repeat the text, which may hold a
// password.
func (p *probeURLs) Set(text string) error {
	if !strings.Contains(text, "://") {
		text = p.kind + "://" + text
	}
	probe, err := config.ProbeFromURL(text)
	if err != nil {
		return err
	}
	if probe.Type != p.kind {
		return fmt.Errorf("a URL of scheme %s is for another flag: want %s://host:port", probe.Type, p.kind)
	}
	p.list = append(p.list, probe)
	return nil
}

// String returns what the help may show as the default: nothing.
func (*probeURLs) String() string { return "" }

// IsCumulative makes the flag one that can be repeated.
func (*probeURLs) IsCumulative() bool { return true }
