package memcached_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes/memcached"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func metadump(t testing.TB, addr string, m memcached.MetadumpOptions) *run {
	t.Helper()
	p, err := memcached.Metadump(addr, "feed", memcached.Options{}, m)
	return running(t, p, err)
}

// fill stores so many values of a group that live so many seconds.
func fill(t testing.TB, addr, group string, n, ttl int) {
	t.Helper()
	c := dial(t, addr)
	for i := 0; i < n; {
		var b bytes.Buffer
		for end := min(n, i+5000); i < end; i++ {
			fmt.Fprintf(&b, "set %s:%d 0 %d 1 noreply\r\nx\r\n", group, i, ttl)
		}
		if _, err := c.Write(b.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.do("mn"); got != "MN" {
		t.Fatal(got)
	}
}

// expiring returns how many values of a group expire within the given time, and
// how many in all.
func expiring(v *signal.Vitals, group string, within time.Duration) (soon, all uint64) {
	for _, bin := range v.Expiries {
		if bin.Group != group {
			continue
		}
		all += uint64(bin.Keys)
		if bin.At.Sub(v.At) <= within {
			soon += uint64(bin.Keys)
		}
	}
	return soon, all
}

func TestMetadumpSeesWhatExpiresTogether(t *testing.T) {
	addr := cachetest.Memcached(t)
	fill(t, addr, "feed", 2000, 60)
	fill(t, addr, "user", 500, 1200)
	fill(t, addr, "forever", 100, 0)
	r := metadump(t, addr, memcached.MetadumpOptions{})
	r.until("list", func() bool { return r.vitals != nil && len(r.vitals.Expiries) > 0 })

	if soon, all := expiring(r.vitals, "feed:*", 65*time.Second); soon != 2000 || all != 2000 {
		t.Errorf("of feed:* %d expire within 65 s and %d at all, want 2000", soon, all)
	}
	if soon, all := expiring(r.vitals, "user:*", 1000*time.Second); soon != 0 || all != 500 {
		t.Errorf("of user:* %d expire within 1000 s and %d at all, want none and 500", soon, all)
	}
	if s := r.vitals.Sample; s.Keys != 2600 || s.Population != 2600 || s.Weight != 1 {
		t.Errorf("from %+v, want every one of 2600 keys", s)
	}
	if bins := len(r.vitals.Expiries); bins > 10 {
		t.Errorf("they expire in %d different seconds: they were written in one go", bins)
	}
}

func TestMetadumpListsAMillionKeysInLittleMemory(t *testing.T) {
	const keys = 1_000_000
	addr := cachetest.MemcachedWith(t, "-m", "512")
	fill(t, addr, "feed", keys, 600)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := metadump(t, addr, memcached.MetadumpOptions{})
	r.until("list", func() bool { return r.vitals != nil && len(r.vitals.Expiries) > 0 })
	runtime.GC()
	runtime.ReadMemStats(&after)
	// A walk in order of use passes over keys that are moved in it meanwhile.
	if _, all := expiring(r.vitals, "feed:*", 0); all < keys*99/100 || all > keys {
		t.Errorf("%d expire, want at least 99 %% of %d", all, keys)
	}
	const most = 4 << 20 // two connections' buffers are half a megabyte
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > most {
		t.Errorf("the heap has grown by %d bytes, want at most %d", grown, most)
	}
	runtime.KeepAlive(r)
}

func TestMetadumpScalesUpAPartialListIfItIsAFairSample(t *testing.T) {
	addr := cachetest.Memcached(t)
	fill(t, addr, "feed", 50_000, 600)
	r := metadump(t, addr, memcached.MetadumpOptions{MaxKeys: 1000})
	r.until("end of the list", func() bool { return len(r.limits) > 0 || r.vitals != nil && len(r.vitals.Expiries) > 0 })
	if r.vitals.Server.Keys != 50_000 {
		t.Errorf("the server holds %d keys, want 50000", r.vitals.Server.Keys)
	}
	if len(r.limits) > 0 { // it walks its keys in order of use
		if !strings.Contains(r.limits[0], "list of keys has more than 1000") {
			t.Errorf("limits are %q", r.limits)
		}
		if len(r.vitals.Expiries) > 0 || !r.vitals.Sample.IsZero() {
			t.Errorf("it tells of %d expiries from %+v, want none", len(r.vitals.Expiries), r.vitals.Sample)
		}
		return
	}
	if s := r.vitals.Sample; s.Keys < 1000 || s.Keys > 20_000 || s.Population != 50_000 {
		t.Errorf("from %+v, want a part of 50000 keys", s)
	}
	if _, all := expiring(r.vitals, "feed:*", 0); all < 49_900 || all > 50_100 {
		t.Errorf("%d expire, want about 50000", all)
	}
}

func TestMetadumpDoesNotMindABusyServer(t *testing.T) {
	addr := cachetest.MemcachedWith(t, "-m", "128")
	fill(t, addr, "feed", 200_000, 600)
	other := dial(t, addr)
	if _, err := fmt.Fprint(other, "lru_crawler metadump all\r\n"); err != nil { // and does not read what comes
		t.Fatal(err)
	}
	if _, err := other.r.Peek(1); err != nil {
		t.Fatal(err)
	}
	r := metadump(t, addr, memcached.MetadumpOptions{})
	if r.ok(); len(r.vitals.Expiries) > 0 {
		t.Error("it has listed keys while somebody else did")
	}
}

func TestMetadumpForgetsKeysThatWereFlushed(t *testing.T) {
	addr := cachetest.Memcached(t)
	fill(t, addr, "feed", 1000, 600)
	r := metadump(t, addr, memcached.MetadumpOptions{})
	r.until("list", func() bool { return r.vitals != nil && len(r.vitals.Expiries) > 0 })
	c := dial(t, addr)
	for c.do("flush_all"); c.get("feed:1"); c.do("flush_all") {
	}
	if r.ok(); len(r.vitals.Expiries) > 0 {
		t.Errorf("it still tells of %d expiries", len(r.vitals.Expiries))
	}
}

func TestMetadumpComesBackWithTheServer(t *testing.T) {
	server := cachetest.MemcachedServer(t)
	fill(t, server.Addr(), "feed", 1000, 600)
	r := metadump(t, server.Addr(), memcached.MetadumpOptions{})
	r.until("list", func() bool { return r.vitals != nil && len(r.vitals.Expiries) > 0 })
	server.Kill()
	if err := r.once(); err == nil {
		t.Error("no error from a server that is gone")
	}
	server.Restart()
	fill(t, server.Addr(), "user", 500, 600)
	r.until("list", func() bool { _, n := expiring(r.vitals, "user:*", 0); return n == 500 })
	if _, n := expiring(r.vitals, "feed:*", 0); n != 0 {
		t.Errorf("it still tells of %d keys of the server that is gone", n)
	}
}

func TestMetadumpSaysThatTheServerDoesNotAllowIt(t *testing.T) {
	for flag, want := range map[string]string{"-X": "metadump not allowed", "-o=no_lru_crawler": "lru crawler disabled"} {
		args := strings.SplitN(flag, "=", 2)
		r := metadump(t, cachetest.MemcachedWith(t, args...), memcached.MetadumpOptions{})
		if err := r.once(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %s: got %v, want an error with %q", flag, err, want)
		}
	}
}

func TestMetadumpOptionsAreChecked(t *testing.T) {
	for want, m := range map[string]memcached.MetadumpOptions{
		"Every is 1s":     {Every: time.Second},
		"Every is 2h0m0s": {Every: 2 * time.Hour},
		"Within is 2m0s":  {Within: 2 * time.Minute},
		"Within is 1ms":   {Within: time.Millisecond},
		"MaxKeys is 999":  {MaxKeys: 999},
	} {
		if _, err := memcached.Metadump("localhost:11211", "feed", memcached.Options{}, m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
