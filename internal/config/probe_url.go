package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	promconfig "github.com/prometheus/common/config"
)

// ProbeFromURL returns the probe that a URL asks for:
//
//	redis://user:password@host:6379/0?cache=feed
//	rediss://host:6379?mode=cluster&target=host2:6379&configure=true&lock=lock:{key}
//	memcached://host:11211?cache=feed
//
// The scheme is the type, with an s at its end for TLS; a path is the database.
// Parameters are called like the fields of a file: mode, master, service, name,
// cache, username, password_file; those that may come several times are target,
// watch and lock; configure and raw_keys are true or false. The cache is called
// by the address, unless the URL says how. No error repeats the URL, which may
// hold a password.
func ProbeFromURL(text string) (Probe, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return Probe{}, errors.New("this is not a URL: want one such as redis://host:6379/0?cache=feed")
	}
	p := Probe{Type: u.Scheme}
	if kind, secure := strings.CutSuffix(u.Scheme, "s"); secure && watched[kind] != nil {
		p.Type, p.TLS = kind, &promconfig.TLSConfig{}
	}
	if p.Target, err = address(u, p.Type); err != nil {
		return Probe{}, err
	}
	if u.User != nil {
		secret, _ := u.User.Password()
		p.Username, p.Password = u.User.Username(), promconfig.Secret(secret)
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		n, err := strconv.Atoi(path)
		if err != nil {
			return Probe{}, fmt.Errorf("probe of %s: the path is not the number of a database", p.Target)
		}
		p.Database = Count(n)
	}
	p.Cache = p.Target
	if err := p.setParameters(u.Query()); err != nil {
		return Probe{}, fmt.Errorf("probe of %s: %w", p.Target, err)
	}
	p.setDefaults()
	var k checker
	k.probe(&p, "0")
	if len(k.errs) > 0 {
		return Probe{}, fmt.Errorf("probe of %s: %w", p.Target, errors.Join(k.errs...))
	}
	return p, nil
}

// address returns the host and port of u, with the port that is usual.
func address(u *url.URL, kind string) (string, error) {
	port := u.Port()
	switch {
	case u.Hostname() == "":
		return "", errors.New("the URL has no host: want one such as redis://host:6379/0?cache=feed")
	case port != "":
	case kind == "memcached":
		port = "11211"
	default:
		port = "6379"
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// setParameters takes what comes after the question mark of a URL.
func (p *Probe) setParameters(q url.Values) error {
	single := map[string]*string{
		"cache": &p.Cache, "mode": &p.Mode, "master": &p.Master, "name": &p.Name, "service": &p.Service,
		"username": &p.Username, "password_file": &p.PasswordFile,
	}
	several := map[string]*[]string{"target": &p.Targets, "watch": &p.Watch, "lock": &p.Keyspace.Locks}
	flags := map[string]*bool{"configure": &p.Keyspace.Configure, "raw_keys": &p.Keyspace.RawKeys}
	for name, values := range q {
		switch {
		case several[name] != nil:
			for _, v := range values {
				*several[name] = append(*several[name], strings.Split(v, ",")...)
			}
		case len(values) != 1:
			return fmt.Errorf("parameter %q is there %d times: want once", name, len(values))
		case single[name] != nil:
			*single[name] = values[0]
		case flags[name] != nil:
			v, err := strconv.ParseBool(values[0])
			if err != nil {
				return fmt.Errorf("parameter %q is %q: want true or false", name, values[0])
			}
			*flags[name] = v
		default:
			return fmt.Errorf("parameter %q is not known", name)
		}
	}
	return nil
}

// WithProbes returns a copy of c that has those probes too. It fails if one of
// them is there already.
func (c *Config) WithProbes(more []Probe) (*Config, error) {
	all := *c
	all.Probes = append(slices.Clone(c.Probes), more...)
	var k checker
	k.probes(all.Probes)
	if len(k.errs) > 0 {
		return nil, fmt.Errorf("add probes to the configuration: %w", errors.Join(k.errs...))
	}
	return &all, nil
}
