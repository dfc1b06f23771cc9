package redis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// maxBuild bounds what is kept of a server's version: it comes from outside.
const maxBuild = 64

// parseInfo reads a server's answers to INFO and to INFO commandstats: lines of
// the form name:value, in sections whose headings start with #. Unknown lines
// are passed over; the counts that vitals are made of must be there, once, and be
// numbers. Those that not every server has are zero where they are missing.
func parseInfo(sections, commands string) (*signal.Vitals, error) {
	v := &signal.Vitals{}
	var uptime, blocked uint64
	fields := []infoField{
		{name: "uptime_in_seconds", to: &uptime, needed: true},
		{name: "keyspace_hits", to: &v.Lookups.Hits, needed: true},
		{name: "keyspace_misses", to: &v.Lookups.Misses, needed: true},
		{name: "expired_keys", to: &v.Expired, needed: true},
		{name: "evicted_keys", to: &v.Evicted, needed: true},
		{name: "blocked_clients", to: &blocked},
	}
	for name, value := range infoLines(sections) {
		switch {
		case name == "redis_version":
			v.Build = value[:min(len(value), maxBuild)]
		case strings.HasPrefix(name, "db"):
			v.Server.Keys += keysOf(value)
		}
		if err := readField(fields, name, value); err != nil {
			return nil, err
		}
	}
	for _, f := range fields {
		if f.needed && !f.seen {
			return nil, fmt.Errorf("parse INFO: %s is missing: is this a cache server, and may this user run INFO?", f.name)
		}
	}
	if uptime > math.MaxInt64/uint64(time.Second) {
		return nil, fmt.Errorf("parse INFO: uptime_in_seconds is %d: want less than 292 years", uptime)
	}
	v.Uptime = time.Duration(uptime) * time.Second
	v.Server.Blocked = uint32(min(blocked, math.MaxUint32))
	addCommands(v, commands)
	return v, nil
}

// infoField is a line that is looked for.
type infoField struct {
	name         string
	to           *uint64
	needed, seen bool
}

// readField sets the field of that name, if there is one.
func readField(fields []infoField, name, value string) error {
	for i := range fields {
		f := &fields[i]
		if f.name != name {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || f.seen {
			return fmt.Errorf("parse INFO: %s is %q: want one whole number", name, value)
		}
		*f.to, f.seen = n, true
	}
	return nil
}

// infoLines returns the names and values in an answer to INFO.
func infoLines(text string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for line := range strings.Lines(text) {
			name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
			if ok && !strings.HasPrefix(name, "#") && !yield(name, value) {
				return
			}
		}
	}
}

// keysOf returns how many keys a line such as db0:keys=5,expires=2 tells of; zero
// if it is something else.
func keysOf(value string) uint64 { return firstOf(value, "keys=") }

// addCommands takes the statistics of commands into account.
func addCommands(v *signal.Vitals, text string) {
	var pttls uint64
	for name, value := range infoLines(text) {
		calls := firstOf(value, "calls=")
		switch name {
		case "cmdstat_flushall", "cmdstat_flushdb":
			v.Server.Flushes += calls
		case "cmdstat_set", "cmdstat_setex", "cmdstat_psetex", "cmdstat_setnx":
			v.Server.Sets += calls
		case "cmdstat_pttl":
			pttls += calls
		}
	}
	v.Lookups.Hits -= min(pttls, v.Lookups.Hits)
}

// firstOf returns the number that follows prefix at the start of a list such as
// calls=5,usec=2; zero if there is none.
func firstOf(list, prefix string) uint64 {
	first, _, _ := strings.Cut(list, ",")
	digits, ok := strings.CutPrefix(first, prefix)
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
