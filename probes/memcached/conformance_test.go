package memcached_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes"
	"github.com/stampede-exporter/stampede-exporter/probes/memcached"
	"github.com/stampede-exporter/stampede-exporter/probes/probetest"
)

// TestProbesKeepTheContract holds every probe of a memcached to what runners
// count on.
func TestProbesKeepTheContract(t *testing.T) {
	kinds := map[string]struct {
		make func(addr string, o memcached.Options) (probes.Probe, error)
		keys int
	}{
		"stats": {func(addr string, o memcached.Options) (probes.Probe, error) {
			return memcached.Stats(addr, "feed", o)
		}, 0},
		"watch": {func(addr string, o memcached.Options) (probes.Probe, error) {
			return memcached.Watch(addr, "feed", o, memcached.WatchOptions{RawKeys: true})
		}, len(keysThatFit())},
		"metadump": {func(addr string, o memcached.Options) (probes.Probe, error) {
			return memcached.Metadump(addr, "feed", o, memcached.MetadumpOptions{})
		}, 0},
	}
	auth := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(auth, []byte("probe:s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, p := range kinds {
		t.Run(name, func(t *testing.T) {
			made := func(t testing.TB, addr string, o memcached.Options) probes.Probe {
				t.Helper()
				probe, err := p.make(addr, o)
				if err != nil {
					t.Fatal(err)
				}
				return probe
			}
			s := cachetest.MemcachedServer(t)
			locked := cachetest.MemcachedWith(t, "-Y", auth)
			probetest.Run(t, probetest.Case{
				New: func(t testing.TB) probes.Probe { return made(t, s.Addr(), memcached.Options{}) },
				At:  func(t testing.TB, addr string) probes.Probe { return made(t, addr, memcached.Options{}) },
				WrongPassword: func(t testing.TB, password string) probes.Probe {
					return made(t, locked, memcached.Options{Username: "probe", Password: password})
				},
				Break:   func(testing.TB) { s.Kill() },
				Repair:  func(testing.TB) { s.Restart() },
				Clients: func(t testing.TB) int { return clients(t, s.Addr()) },
				Touch:   func(t testing.TB, key []byte) { touch(t, s.Addr(), key) },
				Keys:    p.keys,
			})
		})
	}
}

// keysThatFit returns those keys nobody chooses that a memcached takes: at most
// 250 bytes as they are sent.
func keysThatFit() (keys [][]byte) {
	for _, k := range probetest.HostileKeys() {
		if len(wire(k)) <= 250 {
			keys = append(keys, k)
		}
	}
	return keys
}

// wire returns how a key of any bytes is sent.
func wire(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

// touch misses a key and stores it, if it fits.
func touch(t testing.TB, addr string, key []byte) {
	t.Helper()
	if len(wire(key)) > 250 {
		return
	}
	c := dial(t, addr)
	defer c.Close()
	c.do("mg %s b v", wire(key)) // it is not there
	if got := c.do("ms %s 1 b T60\r\nx", wire(key)); got != "HD" {
		t.Fatalf("store %q: %s", key, got)
	}
}

// clients returns how many connections a server counts, without that of who
// asks.
func clients(t testing.TB, addr string) int {
	n, err := strconv.Atoi(stat(t, addr, "curr_connections"))
	if err != nil {
		t.Fatal(err)
	}
	return n - 1
}
