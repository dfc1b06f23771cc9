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

// parseInfo reads a server's answer to INFO: lines of the form name:value, in
// sections whose headings start with #. Unknown lines are passed over; the
// fields that vitals are made of must be there, once, and be numbers.
func parseInfo(text string) (*signal.Vitals, error) {
	v := &signal.Vitals{}
	var uptime uint64
	fields := []struct {
		name string
		to   *uint64
		seen bool
	}{
		{"uptime_in_seconds", &uptime, false},
		{"keyspace_hits", &v.Lookups.Hits, false},
		{"keyspace_misses", &v.Lookups.Misses, false},
		{"expired_keys", &v.Expired, false},
		{"evicted_keys", &v.Evicted, false},
	}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if name == "redis_version" {
			v.Build = value[:min(len(value), maxBuild)]
		}
		for i := range fields {
			f := &fields[i]
			if f.name != name {
				continue
			}
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil || f.seen {
				return nil, fmt.Errorf("parse INFO: %s is %q: want one whole number", name, value)
			}
			*f.to, f.seen = n, true
		}
	}
	for _, f := range fields {
		if !f.seen {
			return nil, fmt.Errorf("parse INFO: %s is missing: is this a cache server, and may this user run INFO?", f.name)
		}
	}
	if uptime > math.MaxInt64/uint64(time.Second) {
		return nil, fmt.Errorf("parse INFO: uptime_in_seconds is %d: want less than 292 years", uptime)
	}
	v.Uptime = time.Duration(uptime) * time.Second
	return v, nil
}
