//go:build probecost

package benchmarks_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/memcached"
)

// listEvery is the least that may be between two lists of keys.
const listEvery = 5 * time.Second

// memcachedWays are the ways to look at a memcached. The list of keys is asked
// for as often as it may be, and the log has no budget, so that every round meets
// them.
var memcachedWays = []watched{
	{"nothing", nil}, // which shows what is chance
	{"stats", func(addr string) (probes.Probe, error) {
		return memcached.Stats(addr, "feed", memcached.Options{})
	}},
	{"metadump", func(addr string) (probes.Probe, error) {
		return memcached.Metadump(addr, "feed", memcached.Options{}, memcached.MetadumpOptions{Every: listEvery, Within: listEvery})
	}},
	{"watch", func(addr string) (probes.Probe, error) {
		return memcached.Watch(addr, "feed", memcached.Options{}, memcached.WatchOptions{MaxLinesPerSecond: 1_000_000})
	}},
}

// BenchmarkMemcached is [BenchmarkProbes] of a memcached, under a load of
// our own: so many clients that each wait for their answer. The server's time is
// that of all its threads. It takes minutes, and ignores b.N.
func BenchmarkMemcached(t *testing.B) {
	addr := cachetest.MemcachedWith(t, "-m", "512")
	fillMemcached(t, addr)
	fmt.Printf("%-9s  server time while idle\n", "probe")
	for _, w := range memcachedWays {
		cost := memcachedIdleCost(t, addr, w)
		fmt.Printf("%-9s  %.2f ms a second\n", w.name, cost)
		if w.name == "metadump" {
			fmt.Printf("%-9s  or %.2f us for each of %d keys in each list\n", "", cost*listEvery.Seconds()*1000/probedKeys, probedKeys)
		}
	}
	for _, load := range []string{"hit", "miss"} {
		compareMemcached(t, addr, load)
	}
}

// compareMemcached prints the ratios of every probe under a load.
func compareMemcached(t testing.TB, addr, load string) {
	with, without := map[string][]measure{}, map[string][]measure{}
	var all []measure
	for range probeRounds {
		for _, w := range memcachedWays {
			base := memcachedRound(t, addr, load, watched{})
			all = append(all, base)
			without[w.name] = append(without[w.name], base)
			with[w.name] = append(with[w.name], memcachedRound(t, addr, load, w))
		}
	}
	fmt.Printf("\n%s: without a probe %.0f requests/s, p99 %.2f ms, %.2f us of the server's time each (medians)\n",
		load, quartiles(all, perSecond)[1], quartiles(all, p99)[1], quartiles(all, cpu)[1])
	fmt.Printf("%-9s  %-24s  %-24s  %-24s\n", "probe", "throughput", "p99", "server time a request")
	for _, w := range memcachedWays {
		m, base := with[w.name], without[w.name]
		fmt.Printf("%-9s  %-24s  %-24s  %-24s\n", w.name, ratio(m, base, perSecond), ratio(m, base, p99), ratio(m, base, cpu))
	}
	line := make([]measure, probeRounds)
	for i := range line {
		line[i].cpu = with["watch"][i].cpu - without["watch"][i].cpu
	}
	q := quartiles(line, cpu)
	fmt.Printf("a line of the log costs %.2f us of the server's time (%.2f to %.2f)\n", q[1], q[0], q[2])
}

// memcachedRound runs the load once while w watches.
func memcachedRound(t testing.TB, addr, load string, w watched) measure {
	defer watch(t, addr, w)()
	key := "feed:%d"
	if load == "miss" {
		key = "absent:%d"
	}
	took := make([][]time.Duration, probeClients)
	before, began := memcachedTime(t, addr), time.Now()
	var all sync.WaitGroup
	for i := range took {
		all.Go(func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			took[i] = getMany(t, c, key, probeLoad/probeClients)
		})
	}
	all.Wait()
	elapsed, spent := time.Since(began), memcachedTime(t, addr)-before
	sorted := slices.Sorted(slices.Values(slices.Concat(took...)))
	if len(sorted) != probeLoad {
		t.Fatalf("%d requests were answered, want %d", len(sorted), probeLoad)
	}
	return measure{probeLoad / elapsed.Seconds(), sorted[len(sorted)*99/100].Seconds() * 1000, spent / probeLoad * 1e6}
}

// getMany gets n keys at random, one after the other, and returns how long each
// took.
func getMany(t testing.TB, c net.Conn, key string, n int) []time.Duration {
	took := make([]time.Duration, 0, n)
	answer := bufio.NewReader(c)
	for range n {
		began := time.Now()
		if _, err := fmt.Fprintf(c, "get "+key+"\r\n", rand.IntN(probedKeys)); err != nil {
			t.Error(err)
			return nil
		}
		for line := ""; line != "END\r\n"; {
			var err error
			if line, err = answer.ReadString('\n'); err != nil {
				t.Error(err)
				return nil
			}
		}
		took = append(took, time.Since(began))
	}
	return took
}

// memcachedIdleCost is idleCost of a memcached.
func memcachedIdleCost(t testing.TB, addr string, w watched) float64 {
	own := func() float64 {
		before := memcachedTime(t, addr)
		<-time.After(idleSeconds * time.Second)
		return memcachedTime(t, addr) - before
	}
	alone := own()
	defer watch(t, addr, w)()
	return max(0, own()-alone) / idleSeconds * 1000
}

// fillMemcached stores the keys that loads read.
func fillMemcached(t testing.TB, addr string) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := 0; i < probedKeys; {
		var b bytes.Buffer
		for end := i + 10_000; i < end; i++ {
			fmt.Fprintf(&b, "set feed:%d 0 %d 16 noreply\r\n0123456789abcdef\r\n", i, 30_000+i%600)
		}
		if _, err := c.Write(b.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fmt.Fprint(c, "mn\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); line != "MN\r\n" {
		t.Fatalf("filled, it says %q and %v", line, err)
	}
}

// memcachedTime returns how many seconds the server's threads have run.
func memcachedTime(t testing.TB, addr string) float64 {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprint(c, "stats\r\nquit\r\n"); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for lines := bufio.NewScanner(c); lines.Scan(); {
		name, value, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "STAT "), " ")
		if name == "rusage_user" || name == "rusage_system" {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += v
		}
	}
	return sum
}
