//go:build probecost

// It takes minutes and a real server, and is measured on purpose only.

package benchmarks_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/redis"
)

const (
	probedKeys   = 1_000_000
	probeRounds  = 11
	probeLoad    = 60_000 // requests in a round
	probeClients = 50
	idleSeconds  = 10
)

// watched is a way to look at a server.
type watched struct {
	name string
	make func(addr string) (probes.Probe, error)
}

var ways = []watched{
	{"nothing", nil}, // which shows what is chance
	{"info", func(addr string) (probes.Probe, error) {
		return redis.Info([]string{addr}, "feed", redis.Options{})
	}},
	{"expiry", func(addr string) (probes.Probe, error) {
		return redis.Expiry([]string{addr}, "feed", redis.Options{}, redis.ExpiryOptions{})
	}},
	{"hotkeys", func(addr string) (probes.Probe, error) {
		return redis.HotKeys([]string{addr}, "feed", redis.Options{}, redis.HotKeysOptions{})
	}},
	{"keyspace", func(addr string) (probes.Probe, error) {
		return redis.Keyspace([]string{addr}, "feed", redis.Options{}, redis.KeyspaceOptions{Configure: true})
	}},
}

// measure is what one round came to.
type measure struct{ perSecond, p99, cpu float64 } // p99 in ms, cpu of the server in us a request

// BenchmarkProbes loads a Redis of a million keys with redis-benchmark, while one
// probe after the other watches it, and prints what each costs: the server's
// time while nothing else goes on, and throughput, 99th percentile and the
// server's time for a request as ratios to those without a probe just before.
// Rounds alternate, so that what else goes on on the machine meets all alike; a
// ratio is the median of its rounds, with the quartiles. It takes minutes, and ignores b.N.
func BenchmarkProbes(t *testing.B) {
	addr := cachetest.RedisWith(t, "--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lfu")
	c := goredis.NewClient(&goredis.Options{Addr: addr, ReadTimeout: time.Minute})
	t.Cleanup(func() { c.Close() })
	for i := range 20 {
		script := `for i = ARGV[1] * 50000, ARGV[1] * 50000 + 49999 do redis.call("SET", string.format("feed:%012d", i), "0123456789abcdef", "EX", 3000 + i % 600) end return 1`
		if err := c.Eval(t.Context(), script, nil, i).Err(); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf("%-9s  server time while idle\n", "probe")
	for _, w := range ways {
		fmt.Printf("%-9s  %.2f ms a second\n", w.name, idleCost(t, c, addr, w))
	}
	for _, load := range []string{"hit", "miss"} {
		compare(t, c, addr, load)
	}
}

// compare prints the ratios of every probe under a load.
func compare(t testing.TB, c *goredis.Client, addr, load string) {
	with, without := map[string][]measure{}, map[string][]measure{}
	var all []measure
	for range probeRounds {
		for _, w := range ways {
			base := round(t, c, addr, load, watched{})
			all = append(all, base)
			without[w.name] = append(without[w.name], base)
			with[w.name] = append(with[w.name], round(t, c, addr, load, w))
		}
	}
	fmt.Printf("\n%s: without a probe %.0f requests/s, p99 %.2f ms, %.2f us of the server's time each (medians)\n",
		load, quartiles(all, perSecond)[1], quartiles(all, p99)[1], quartiles(all, cpu)[1])
	fmt.Printf("%-9s  %-24s  %-24s  %-24s\n", "probe", "throughput", "p99", "server time a request")
	for _, w := range ways {
		m, base := with[w.name], without[w.name]
		fmt.Printf("%-9s  %-24s  %-24s  %-24s\n", w.name, ratio(m, base, perSecond), ratio(m, base, p99), ratio(m, base, cpu))
	}
}

func perSecond(m measure) float64 { return m.perSecond }
func p99(m measure) float64       { return m.p99 }
func cpu(m measure) float64       { return m.cpu }

// ratio returns the median and the quartiles of what of says of rounds over what
// it says of those just before them.
func ratio(ms, base []measure, of func(measure) float64) string {
	ratios := make([]measure, len(ms))
	for i := range ms {
		ratios[i].cpu = of(ms[i]) / of(base[i])
	}
	q := quartiles(ratios, cpu)
	return fmt.Sprintf("%.3f (%.3f to %.3f)", q[1], q[0], q[2])
}

// quartiles returns the first, second and third quartile of what of says.
func quartiles(ms []measure, of func(measure) float64) [3]float64 {
	all := make([]float64, len(ms))
	for i := range ms {
		all[i] = of(ms[i])
	}
	slices.Sort(all)
	n := len(all)
	return [3]float64{all[n/4], all[n/2], all[3*n/4]}
}

// round runs the load once while w watches.
func round(t testing.TB, c *goredis.Client, addr, load string, w watched) measure {
	defer watch(t, addr, w)()
	key := "feed:__rand_int__"
	if load == "miss" {
		key = "absent:__rand_int__"
	}
	_, port, _ := strings.Cut(addr, ":")
	before := serverTime(t, c)
	out, err := exec.Command("redis-benchmark", "-p", port, "-n", strconv.Itoa(probeLoad), "-c", strconv.Itoa(probeClients),
		"-r", strconv.Itoa(probedKeys), "--csv", "GET", key).Output()
	if err != nil {
		t.Fatal(err)
	}
	spent := serverTime(t, c) - before
	rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("redis-benchmark said %q", out)
	}
	column := func(name string) float64 {
		i := slices.Index(rows[0], name)
		if i < 0 {
			t.Fatalf("redis-benchmark has no column %q", name)
		}
		v, err := strconv.ParseFloat(rows[1][i], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	return measure{column("rps"), column("p99_latency_ms"), spent / probeLoad * 1e6}
}

// idleCost returns how many milliseconds of the server's time w takes in a
// second.
func idleCost(t testing.TB, c *goredis.Client, addr string, w watched) float64 {
	own := func() float64 { // what an idle server does by itself
		before := serverTime(t, c)
		<-time.After(idleSeconds * time.Second)
		return serverTime(t, c) - before
	}
	alone := own()
	defer watch(t, addr, w)()
	return max(0, own()-alone) / idleSeconds * 1000
}

// watch lets w watch until the function it returns is called. It returns once
// the first run succeeded.
func watch(t testing.TB, addr string, w watched) (stop func()) {
	if w.make == nil {
		return func() {}
	}
	p, err := w.make(addr)
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan error, 1)
	r, err := probes.New([]probes.Probe{p}, probes.Options{Report: func(r probes.Report) {
		select {
		case first <- r.Err:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	if err := <-first; err != nil {
		t.Errorf("%s: %v", w.name, err)
	}
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	}
}

// serverTime returns how many seconds the server's main thread has run.
func serverTime(t testing.TB, c *goredis.Client) float64 {
	text, err := c.Info(t.Context(), "cpu").Result()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys_main_thread" || name == "used_cpu_user_main_thread" {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += v
		}
	}
	return sum
}
