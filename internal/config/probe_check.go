package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// probes complains of what is wrong with probes, each by itself and together.
func (k *checker) probes(probes []Probe) {
	seen := map[string]int{}
	for i := range probes {
		p, n := &probes[i], strconv.Itoa(i)
		k.probe(p, n)
		for _, what := range p.Watch {
			id := fmt.Sprint(p.Type, p.NameOf(what), what, p.Addresses())
			if first, twice := seen[id]; twice && first != i {
				k.add(fmt.Sprintf("probe %d has the same name and target: want another name", first), "probes", n, "name")
				break
			}
			seen[id] = i
		}
	}
}

func (k *checker) probe(p *Probe, n string) {
	can, known := watched[p.Type]
	if !known {
		types := strings.Join(slices.Sorted(maps.Keys(watched)), " or ")
		k.add(fmt.Sprintf("%q is not a type of probe: want %s", p.Type, types), "probes", n, "type")
	}
	k.addresses(p, n)
	k.required(p.Cache, "probes", n, "cache")
	inRange(k, p.Interval, 100*time.Millisecond, 4*time.Second, "probes", n, "interval")
	if p.Timeout != 0 {
		inRange(k, p.Timeout, time.Millisecond, p.Interval, "probes", n, "timeout")
	}
	for _, what := range p.Watch {
		if known && !slices.Contains(can, what) {
			k.add(fmt.Sprintf("%q cannot be watched: want %s", what, strings.Join(can, ", ")), "probes", n, "watch")
		}
	}
	if len(p.Watch) == 0 && known {
		k.add("is empty: want one of "+strings.Join(can, ", "), "probes", n, "watch")
	}
	if p.Username != "" && p.Password == "" {
		k.required(p.PasswordFile, "probes", n, "password_file")
	}
	if p.SentinelUsername != "" {
		k.required(p.SentinelPasswordFile, "probes", n, "sentinel_password_file")
	}
	k.mode(p, n)
	k.keyspace(p, n)
	k.walks(p, n)
}

func (k *checker) addresses(p *Probe, n string) {
	if p.Target == "" && len(p.Targets) == 0 {
		k.add("is missing or empty", "probes", n, "target")
	}
	field := "target"
	for _, addr := range p.Addresses() {
		if addr != p.Target {
			field = "targets"
		}
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
			k.add(fmt.Sprintf("%q is not an address: want host:port", addr), "probes", n, field)
		}
	}
	if p.Type == "memcached" && len(p.Addresses()) > 1 {
		k.add("has more than one address: want a probe for each memcached", "probes", n, "targets")
	}
}

// mode checks what only a Redis has.
func (k *checker) mode(p *Probe, n string) {
	switch p.Mode {
	case "", "standalone", "cluster":
		if p.Master != "" {
			k.add("is for mode sentinel only", "probes", n, "master")
		}
	case "sentinel":
		k.required(p.Master, "probes", n, "master")
	default:
		k.add(fmt.Sprintf("%q is out of range: want standalone, cluster or sentinel", p.Mode), "probes", n, "mode")
	}
	if p.Type != "redis" && (p.Mode != "" || p.Master != "" || p.Database != 0) {
		k.add("is for redis only, as are master and database", "probes", n, "mode")
	}
	if p.Mode == "cluster" {
		inRange(k, p.Database, 0, 0, "probes", n, "database")
	}
	inRange(k, p.Database, 0, 1<<20, "probes", n, "database")
}

func (k *checker) keyspace(p *Probe, n string) {
	s := &p.Keyspace
	optional(k, s.MaxEventsPerSecond, 100, 1_000_000, "probes", n, "keyspace", "max_events_per_second")
	optional(k, s.MaxKeys, 64, 10_000_000, "probes", n, "keyspace", "max_keys")
	optional(k, s.GiveUp, time.Second, time.Hour, "probes", n, "keyspace", "give_up")
	inRange(k, s.TTLLookups, -1, 1000, "probes", n, "keyspace", "ttl_lookups")
	if p.Type != "redis" && (s.Configure || s.TTLLookups != 0) {
		k.add("is for redis only, as is ttl_lookups", "probes", n, "keyspace", "configure")
	}
	for _, pattern := range s.Locks {
		text := strings.Replace(pattern, "{key}", "*", 1)
		if strings.Count(text, "*") != 1 || len(text) < 2 {
			k.add(fmt.Sprintf("%q is not a pattern of locks: want one * or {key}, and text before or after it", pattern), "probes", n, "keyspace", "locks")
		}
	}
}

// walks checks the budgets of what looks at one key after the other.
func (k *checker) walks(p *Probe, n string) {
	optional(k, p.Expiry.KeysPerSecond, 1, 100_000, "probes", n, "expiry", "keys_per_second")
	optional(k, p.Expiry.Keep, time.Second, time.Hour, "probes", n, "expiry", "keep")
	optional(k, p.Expiry.Groups, 1, 100, "probes", n, "expiry", "groups")
	optional(k, p.HotKeys.KeysPerSecond, 1, 100_000, "probes", n, "hotkeys", "keys_per_second")
	optional(k, p.Metadump.Every, 5*time.Second, time.Hour, "probes", n, "metadump", "every")
	if p.Metadump.Within != 0 && p.Metadump.Every != 0 {
		inRange(k, p.Metadump.Within, time.Second, p.Metadump.Every, "probes", n, "metadump", "within")
	}
	optional(k, p.Metadump.MaxKeys, 1000, 1_000_000_000, "probes", n, "metadump", "max_keys")
}

// optional is inRange for a field that may be left out.
func optional[T Count | time.Duration](k *checker, v, low, high T, path ...string) {
	if v != 0 {
		inRange(k, v, low, high, path...)
	}
}
