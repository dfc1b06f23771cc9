package memcached_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stampede-exporter/stampede-exporter/internal/cachetest"
	"github.com/stampede-exporter/stampede-exporter/probes/memcached"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func stats(t testing.TB, addr string, o memcached.Options) *run {
	t.Helper()
	p, err := memcached.Stats(addr, "feed", o)
	return running(t, p, err)
}

func TestStatsCountWhatARealServerCounts(t *testing.T) {
	addr := cachetest.Memcached(t)
	c := dial(t, addr)
	r := stats(t, addr, memcached.Options{}).ok()
	before := r.vitals

	c.set("a", 0)
	for range 3 {
		c.get("a")
	}
	c.get("b")
	c.get("c")
	c.do("flush_all")

	got := r.ok().vitals
	want := &signal.Vitals{
		Source:  signal.Source{Service: "memcached", Instance: addr},
		Cache:   "feed",
		Lookups: signal.Lookups{Hits: 3, Misses: 2},
		Server:  signal.Server{Flushes: 1, Sets: 1},
		Probe:   true,
	}
	ignore := cmpopts.IgnoreFields(signal.Vitals{}, "At", "Uptime", "Source.Build", "Server.Keys")
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.At <= before.At || got.Build == "" {
		t.Errorf("of %v and version %q, after %v", got.At.Time(), got.Build, before.At.Time())
	}
}

func TestStatsCountEvictionsAndReadsOfExpiredValues(t *testing.T) {
	addr := cachetest.MemcachedWith(t, "-m", "1", "-I", "512k")
	c := dial(t, addr)
	value := strings.Repeat("x", 100_000)
	for i := range 100 {
		c.do("set big:%d 0 0 %d\r\n%s", i, len(value), value)
	}
	c.set("brief", 1)
	for c.get("brief") { // until it has expired
	}
	r := stats(t, addr, memcached.Options{}).ok()
	if v := r.vitals; v.Evicted == 0 || v.Expired != 1 || v.Server.Keys == 0 {
		t.Errorf("%d evicted, %d expired, %d keys: want some, one and some", v.Evicted, v.Expired, v.Server.Keys)
	}
}

func TestStatsLogIn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(file, []byte("probe:s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := cachetest.MemcachedWith(t, "-Y", file)
	tests := []struct {
		name string
		o    memcached.Options
		err  string
	}{
		{"the right password is let in", memcached.Options{Username: "probe", Password: "s3cret"}, ""},
		{"no password is refused", memcached.Options{}, "unauthenticated"},
		{"a wrong password is refused", memcached.Options{Username: "probe", Password: "wr0ng"}, "log in: the server answers \"CLIENT_ERROR authentication failure\""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			err := stats(t, addr, tc.o).once()
			switch {
			case tc.err == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("got %v, want an error with %q", err, tc.err)
			case err != nil && tc.o.Password != "" && strings.Contains(err.Error(), tc.o.Password):
				t.Errorf("%v holds the password", err)
			}
		})
	}
}

func TestStatsSpeakTLS(t *testing.T) {
	certFile, keyFile, roots := certificate(t, "cache.example")
	addr := cachetest.MemcachedTLS(t, certFile, keyFile)
	stats(t, addr, memcached.Options{TLS: &tls.Config{RootCAs: roots, ServerName: "cache.example"}}).ok().ok()

	err := stats(t, addr, memcached.Options{TLS: &tls.Config{RootCAs: roots}}).once()
	if err == nil || !strings.Contains(err.Error(), "switch TLS on") {
		t.Errorf("got %v for a certificate of another host", err)
	}
	if err := stats(t, addr, memcached.Options{}).once(); err == nil {
		t.Error("no error from a server that wants TLS")
	}
}

// certificate writes a certificate of a host and its key to files.
func certificate(t *testing.T, host string) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(cert)
	return certFile, keyFile, roots
}

func TestStatsComeBackWithTheServer(t *testing.T) {
	server := cachetest.MemcachedServer(t)
	r := stats(t, server.Addr(), memcached.Options{}).ok()
	server.Kill()
	if err := r.once(); err == nil {
		t.Error("no error from a server that is gone")
	}
	server.Restart()
	r.until("answer", func() bool { return r.once() == nil })
}

func TestStatsRefuseWhatIsNotMemcached(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":             "",
		"another server":      "-ERR unknown command 'stats'\r\n",
		"a web server":        "HTTP/1.1 400 Bad Request\r\n\r\n",
		"half an answer":      "STAT pid 1\r\nSTAT up",
		"no end of an answer": strings.Repeat("STAT x 1\r\n", 20_000),
		"no end of a line":    strings.Repeat("x", 1<<20),
		"bytes":               "\x81\x10\x00\x00\x00\x00\x00\x00\n",
	} {
		t.Run(name, func(t *testing.T) {
			addr := serve(t, func(c net.Conn) {
				_, _ = c.Write([]byte(answer))
				_ = c.(*net.TCPConn).CloseWrite()
			})
			if err := stats(t, addr, memcached.Options{}).once(); err == nil {
				t.Error("no error")
			}
		})
	}
}

// serve starts a server that does with each connection what do does, and then
// waits for its client to hang up.
func serve(t testing.TB, do func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				do(c)
				_, _ = io.Copy(io.Discard, c)
			})
		}
	})
	// Cleanups run last first: by then the probe has hung up.
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

func TestOptionsAreChecked(t *testing.T) {
	tests := []struct {
		name, addr, cache string
		o                 memcached.Options
		err               string
	}{
		{"no port", "localhost", "feed", memcached.Options{}, "is not an address"},
		{"an empty port", "localhost:", "feed", memcached.Options{}, "is not an address"},
		{"no cache", "localhost:11211", "", memcached.Options{}, "cache name is empty"},
		{"a password and no name", "localhost:11211", "feed", memcached.Options{Password: "hunter2"}, "no username"},
		{"a name of two words", "localhost:11211", "feed", memcached.Options{Username: "a b", Password: "hunter2"}, "the username has a space"},
		{"a password of two lines", "localhost:11211", "feed", memcached.Options{Username: "a", Password: "hunter2\r\nflush_all"}, "the password has a space or an end of line"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, errStats := memcached.Stats(tc.addr, tc.cache, tc.o)
			_, errWatch := memcached.Watch(tc.addr, tc.cache, tc.o, memcached.WatchOptions{})
			_, errDump := memcached.Metadump(tc.addr, tc.cache, tc.o, memcached.MetadumpOptions{})
			for _, err := range []error{errStats, errWatch, errDump} {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want an error with %q", err, tc.err)
				}
				if err != nil && tc.o.Password != "" && strings.Contains(err.Error(), tc.o.Password) {
					t.Errorf("%v holds the password", err)
				}
			}
		})
	}
}
