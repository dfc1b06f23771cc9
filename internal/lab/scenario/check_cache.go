package scenario

import (
	"fmt"
	"time"
)

func (k *checker) cache(s *Scenario, name string) {
	c := s.Caches[name]
	in := func(fields ...string) []string { return append([]string{"caches", name}, fields...) }
	k.name(name, in()...)
	if _, ok := s.Origins[c.Origin]; !ok {
		k.add(fmt.Sprintf("%q is not one of origins", c.Origin), in("origin")...)
	}
	inRange(k, c.TTL, 10*time.Millisecond, maxTTL, in("ttl")...)
	inRange(k, c.Jitter.Spread, 0, maxTTL, in("jitter", "spread")...)
	k.choice(c.Jitter.Shape, []string{JitterAdditive, JitterSymmetric}, in("jitter", "shape")...)
	if c.Jitter.Shape == JitterSymmetric && c.Jitter.Spread >= c.TTL && c.TTL > 0 {
		k.add(fmt.Sprintf("%v would make values that are expired when written: want less than ttl (%v)", c.Jitter.Spread, c.TTL), in("jitter", "spread")...)
	}
	k.sweep(c, in("sweep")...)
	k.recompute(c.Recompute, in("recompute")...)
	inRange(k, c.SingleFlight.Waiters, 0, 1_000_000, in("singleflight", "waiters")...)
	inRange(k, c.XFetch.Beta, 0.001, 1000, in("xfetch", "beta")...)
	inRange(k, c.XFetch.Clamp, 0, time.Hour, in("xfetch", "clamp")...)
	inRange(k, c.RefreshAhead.Ratio, 0.001, 1, in("refresh_ahead", "ratio")...)
	k.lock(c.Lock, in("lock")...)
	inRange(k, c.Lease.Every, time.Millisecond, 24*time.Hour, in("lease", "every")...)
	if c.Protect.Has(ProtectLock | ProtectLease) {
		k.add("has both lock and lease: want one of them", in("protect")...)
	}
	if c.Protect.Has(ProtectSWR) && c.StaleGrace == 0 {
		k.add("is zero, so swr has nothing to serve: want how long an old value may be served", in("stale_grace")...)
	}
	inRange(k, c.StaleGrace, 0, maxTTL, in("stale_grace")...)
	k.client(c.Client, in("client")...)
	inRange(k, c.Negative, 0, 1, in("negative")...)
}

func (k *checker) sweep(c Cache, path ...string) {
	at := func(f string) []string { return append(path[:len(path):len(path)], f) }
	inRange(k, c.Sweep.Every, 0, maxTTL, at("every")...)
	if p := c.Sweep.Phase; p < 0 || p > 0 && p >= c.Sweep.Every {
		k.add(fmt.Sprintf("%v is out of range: want 0s or more, and less than every (%v)", p, c.Sweep.Every), at("phase")...)
	}
}

func (k *checker) lock(l Lock, path ...string) {
	at := func(f string) []string { return append(path[:len(path):len(path)], f) }
	inRange(k, l.TTL, time.Millisecond, 24*time.Hour, at("ttl")...)
	k.choice(l.Wait, []string{WaitBlock, WaitStale, WaitNotFound}, at("wait")...)
	k.choice(l.Release, []string{ReleaseAlways, ReleaseOnSuccess, ReleaseNever}, at("release")...)
}

func (k *checker) client(c Client, path ...string) {
	at := func(f string) []string { return append(path[:len(path):len(path)], f) }
	inRange(k, c.Timeout, time.Millisecond, 24*time.Hour, at("timeout")...)
	inRange(k, c.Attempts, 1, 100, at("attempts")...)
	inRange(k, c.Backoff, 0, time.Hour, at("backoff")...)
	inRange(k, c.CacheErrors, 0, maxTTL, at("cache_errors")...)
	if c.Hedge != 0 {
		inRange(k, c.Hedge, time.Millisecond, c.Timeout, at("hedge")...)
	}
}

func (k *checker) recompute(r Recompute, path ...string) {
	const longest = time.Hour
	at := func(f string) []string { return append(path[:len(path):len(path)], f) }
	switch {
	case r.Fixed != 0 && (r.P50 != 0 || r.P99 != 0):
		k.add("has both fixed and p50 or p99: want fixed, or p50 and p99", path...)
	case r.Fixed != 0:
		inRange(k, r.Fixed, time.Microsecond, longest, at("fixed")...)
	case r.P50 == 0 && r.P99 == 0:
		k.add("is missing: want fixed, or p50 and p99", path...)
	default:
		inRange(k, r.P50, time.Microsecond, longest, at("p50")...)
		inRange(k, r.P99, max(r.P50, time.Microsecond), longest, at("p99")...)
	}
}
