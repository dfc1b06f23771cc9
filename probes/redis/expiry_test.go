package redis_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/redis"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// expiryProbe returns a probe of addr that is closed when t ends.
func expiryProbe(t *testing.T, addr string, o redis.Options, e redis.ExpiryOptions) probes.Probe {
	t.Helper()
	p, err := redis.Expiry([]string{addr}, "feed", o, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// fill writes n keys of a group that expire in ttl, or never if that is zero.
func fill(t *testing.T, c *goredis.Client, group string, n int, ttl time.Duration) {
	t.Helper()
	for done := 0; done < n; {
		pipe := c.Pipeline()
		for range min(5000, n-done) {
			pipe.Set(t.Context(), fmt.Sprint(group, done), "value", ttl)
			done++
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// expected sums what bins expect by group.
func expected(bins []signal.ExpiryBin) map[string]int {
	sums := map[string]int{}
	for _, b := range bins {
		sums[b.Group] += int(b.Keys)
	}
	return sums
}

// run runs p once, within the time its runner would give it.
func run(t *testing.T, p probes.Probe) (probes.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
	defer cancel()
	return p.Run(ctx)
}

func TestAWaveOfExpiriesIsSeenWithItsGroupAndItsSecond(t *testing.T) {
	addr := cachetest.Redis(t)
	c := dial(t, addr)
	before := time.Now()
	fill(t, c, "feed:", 1500, 20*time.Second)
	fill(t, c, "user:", 300, 40*time.Second)
	fill(t, c, "config:", 100, 0)
	took := time.Since(before)

	v := ask(t, expiryProbe(t, addr, redis.Options{}, redis.ExpiryOptions{KeysPerSecond: 5000}))
	if diff := cmp.Diff(map[string]int{"feed:*": 1500, "user:*": 300}, expected(v.Expiries)); diff != "" {
		t.Errorf("keys by group (-want +got):\n%s", diff)
	}
	low, high := before.Add(19*time.Second), before.Add(21*time.Second+took)
	for _, b := range v.Expiries {
		if at := b.At.Time(); b.Group == "feed:*" && (at.Before(low) || at.After(high)) {
			t.Errorf("%d keys of feed:* at %v; want %v to %v", b.Keys, at, low, high)
		}
	}
	if want := (signal.Sample{Keys: 1900, Population: 1900, Weight: 1}); v.Sample != want {
		t.Errorf("sample is %+v; want %+v", v.Sample, want)
	}
	if v.Service != "redis" || v.Instance != addr+"#expiry" || v.Cache != "feed" || !v.Probe {
		t.Errorf("got %+v", v)
	}
}

func TestASampleIsScaledUpToAllKeysWithAMargin(t *testing.T) {
	addr := cachetest.Redis(t)
	c := dial(t, addr)
	const all = 100_000
	fill(t, c, "feed:", all/2, time.Hour-time.Minute)
	fill(t, c, "user:", all/4, 10*time.Minute)
	fill(t, c, "other-things:", all/4, 0)
	p := expiryProbe(t, addr, redis.Options{}, redis.ExpiryOptions{KeysPerSecond: 2000})
	for range 3 {
		ask(t, p)
	}
	v := ask(t, p)
	if v.Sample.Keys < 8000 || v.Sample.Keys > 9000 || v.Sample.Population != all || v.Sample.Weight < 11 || v.Sample.Weight > 12.5 {
		t.Errorf("sample is %+v; want four slices of 2000 keys or a little more, of %d", v.Sample, all)
	}
	got := expected(v.Expiries)
	for group, want := range map[string]float64{"feed:*": all / 2, "user:*": all / 4} {
		// Twice the margin is off by chance once in ten thousand runs.
		if off := float64(got[group]) - want; off > 2*v.Sample.Margin(want) || -off > 2*v.Sample.Margin(want) {
			t.Errorf("%s: %d keys, want %.0f within %.0f", group, got[group], want, 2*v.Sample.Margin(want))
		}
	}
}

func TestAWalkGoesOnWhereItLeftOff(t *testing.T) {
	addr := cachetest.Redis(t)
	c := dial(t, addr)
	fill(t, c, "feed:", 5000, time.Minute)
	p := expiryProbe(t, addr, redis.Options{}, redis.ExpiryOptions{KeysPerSecond: 1000})
	var v *signal.Vitals
	for range 7 { // one more than a round may take
		v = ask(t, p)
	}
	if got := expected(v.Expiries)["feed:*"]; got != 5000 || v.Sample.Weight != 1 {
		t.Errorf("%d keys of feed:* with weight %v, want all 5000 with 1", got, v.Sample.Weight)
	}
}

func TestKeysOfAnyBytesAreCounted(t *testing.T) {
	addr := cachetest.Redis(t)
	c, ctx := dial(t, addr), t.Context()
	for _, key := range []string{"a b\r\nc", "\x00\xff\xfe", "\x1b[31m:red", strings.Repeat("k", 1<<20), "feed:\u202e42", ""} {
		must(t, c.Set(ctx, key, "1", time.Minute))
	}
	v := ask(t, expiryProbe(t, addr, redis.Options{}, redis.ExpiryOptions{Group: func(key string) string { return key[:min(len(key), 300)] }}))
	n := 0
	for group, keys := range expected(v.Expiries) {
		n += keys
		if len(group) > 64 || strings.ContainsAny(group, "\x00\x1b\r\n\u202e") {
			t.Errorf("the group %q is not fit to be shown", group)
		}
	}
	if n != 6 {
		t.Errorf("%d keys, want 6", n)
	}
}

func TestAnotherDatabaseIsAnotherCache(t *testing.T) {
	addr := cachetest.Redis(t)
	fill(t, dial(t, addr), "feed:", 10, time.Minute)
	if v := ask(t, expiryProbe(t, addr, redis.Options{Database: 3}, redis.ExpiryOptions{})); len(v.Expiries) != 0 || v.Sample.Population != 0 {
		t.Errorf("got %+v, want nothing of database 0", v)
	}
}

func TestAFlushInTheMiddleOfAWalkIsSeenAtOnce(t *testing.T) {
	addr := cachetest.Redis(t)
	c := dial(t, addr)
	fill(t, c, "feed:", 20_000, time.Minute)
	p := expiryProbe(t, addr, redis.Options{}, redis.ExpiryOptions{KeysPerSecond: 1000})
	ask(t, p)
	ask(t, p)
	must(t, c.FlushAll(t.Context()))
	if v := ask(t, p); len(v.Expiries) != 0 || v.Sample.Keys != 0 {
		t.Errorf("after a flush there are %v expiries of %+v", expected(v.Expiries), v.Sample)
	}
	fill(t, c, "user:", 300, time.Minute)
	if diff := cmp.Diff(map[string]int{"user:*": 300}, expected(ask(t, p).Expiries)); diff != "" {
		t.Errorf("keys by group, refilled (-want +got):\n%s", diff)
	}
}

func TestAServerThatIsStartedAnewInTheMiddleOfAWalkIsWalkedAnew(t *testing.T) {
	server := cachetest.RedisServer(t)
	fill(t, dial(t, server.Addr()), "feed:", 20_000, time.Minute)
	p := expiryProbe(t, server.Addr(), redis.Options{}, redis.ExpiryOptions{KeysPerSecond: 1000})
	ask(t, p)
	server.Kill()
	if _, err := run(t, p); err == nil {
		t.Error("no error although the server is gone")
	}
	server.Restart()
	fill(t, dial(t, server.Addr()), "user:", 300, time.Minute)
	if diff := cmp.Diff(map[string]int{"user:*": 300}, expected(ask(t, p).Expiries)); diff != "" {
		t.Errorf("keys by group (-want +got):\n%s", diff)
	}
}

func TestEveryPrimaryOfAClusterIsWalked(t *testing.T) {
	cluster := cachetest.RedisCluster(t, 3, false)
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { c.Close() })
	for i := range 900 {
		must(t, c.Set(t.Context(), fmt.Sprint("feed:", i), "v", time.Minute))
	}
	p, err := redis.Expiry(cluster.Addrs()[:1], "feed", redis.Options{Mode: redis.Cluster}, redis.ExpiryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	res, err := run(t, p)
	if err != nil {
		t.Fatal(err)
	}
	keys, sources := 0, map[string]bool{}
	for _, v := range res.Vitals {
		sources[v.Instance] = true
		keys += expected(v.Expiries)["feed:*"]
		if n := expected(v.Expiries)["feed:*"]; n < 200 || n > 400 {
			t.Errorf("%s has %d keys, want about a third of 900", v.Instance, n)
		}
	}
	if keys != 900 || len(sources) != 3 {
		t.Errorf("%d keys of %d primaries, want 900 of 3", keys, len(sources))
	}
	cluster.Primaries[2].Kill()
	if res, err := run(t, p); err == nil || !strings.Contains(err.Error(), cluster.Primaries[2].Addr()) {
		t.Errorf("got %d vitals and %v; want an error that names the primary that is gone", len(res.Vitals), err)
	}
}

func TestThePrimaryThatASentinelNamesIsWalked(t *testing.T) {
	addr := cachetest.Redis(t)
	fill(t, dial(t, addr), "feed:", 10, time.Minute)
	sentinel := cachetest.RedisSentinel(t, "main", addr)
	p, err := redis.Expiry([]string{sentinel.Addr()}, "feed", redis.Options{Mode: redis.Sentinel, Master: "main"}, redis.ExpiryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if v := ask(t, p); v.Instance != addr+"#expiry" || expected(v.Expiries)["feed:*"] != 10 {
		t.Errorf("got %+v", v)
	}
}

func TestWhoMayNotScanIsToldSo(t *testing.T) {
	addr := cachetest.Redis(t)
	c, ctx := dial(t, addr), t.Context()
	fill(t, c, "feed:", 10, time.Minute)
	must(t, c.Do(ctx, "ACL", "SETUSER", "noscan", "on", ">pw", "~*", "+pttl", "+dbsize"))
	must(t, c.Do(ctx, "ACL", "SETUSER", "nopttl", "on", ">pw", "~*", "+scan", "+dbsize"))
	must(t, c.Do(ctx, "ACL", "SETUSER", "least", "on", ">pw", "%R~*", "+scan", "+pttl", "+dbsize"))
	for user, want := range map[string]string{"noscan": "'scan'", "nopttl": "'pttl'", "least": ""} {
		_, err := run(t, expiryProbe(t, addr, redis.Options{Username: user, Password: "pw"}, redis.ExpiryOptions{}))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", user, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want an error that names %s", user, err, want)
		}
	}
}

func TestASlowServerEndsARunAndNotTheProbe(t *testing.T) {
	addr := cachetest.Redis(t)
	c := dial(t, addr)
	fill(t, c, "feed:", 100, time.Minute)
	p := expiryProbe(t, addr, redis.Options{}, redis.ExpiryOptions{})
	ask(t, p)
	must(t, c.ClientPause(t.Context(), 500*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Run(ctx); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a deadline exceeded", err)
	}
	if got := expected(ask(t, p).Expiries)["feed:*"]; got != 100 {
		t.Errorf("%d keys afterwards, want 100", got)
	}
}

func TestARunOverAMillionKeysStaysWithinItsBudget(t *testing.T) {
	addr := cachetest.Redis(t)
	c, ctx := dial(t, addr), t.Context()
	for i := range 20 { // one script for all would make the server look dead
		must(t, c.Eval(ctx, `for i = 1, 50000 do redis.call("SET", "feed:" .. ARGV[1] .. ":" .. i, "", "EX", 600 + i % 2400) end`, nil, i))
	}
	must(t, c.ConfigResetStat(ctx))
	v := ask(t, expiryProbe(t, addr, redis.Options{}, redis.ExpiryOptions{}))
	if v.Sample.Population != 1_000_000 || v.Sample.Keys < 1000 || v.Sample.Keys > 1200 {
		t.Errorf("sample is %+v; want 1000 keys, or a chunk more, of a million", v.Sample)
	}
	got := float64(expected(v.Expiries)["feed:*"])
	if got < 990_000 || got > 1_010_000 {
		t.Errorf("%.0f keys, want about a million: all expire within the hour", got)
	}
	if bins := len(v.Expiries); bins > signal.MaxExpiryBins {
		t.Errorf("%d bins", bins)
	}
	stats := c.Info(ctx, "commandstats").Val()
	for _, never := range []string{"cmdstat_keys:", "cmdstat_monitor:", "cmdstat_get:"} {
		if strings.Contains(stats, never) {
			t.Errorf("the probe sent %s", never)
		}
	}
}

func TestExpiryRefusesWhatIsOutOfRange(t *testing.T) {
	for name, e := range map[string]redis.ExpiryOptions{
		"KeysPerSecond": {KeysPerSecond: -1}, "Keep": {Keep: time.Millisecond}, "Groups": {Groups: 1000},
	} {
		if _, err := redis.Expiry([]string{"127.0.0.1:1"}, "feed", redis.Options{}, e); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: got %v, want an error that names %s", e, err, name)
		}
	}
}
