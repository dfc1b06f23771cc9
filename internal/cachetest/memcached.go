package cachetest

import (
	"net"
	"os"
	"testing"
)

// Memcached starts a memcached of 64 MiB for t and returns its address,
// host:port. It accepts connections from this machine only and is killed when t
// ends. It fails t if memcached is not installed.
func Memcached(t testing.TB) string {
	t.Helper()
	return MemcachedWith(t)
}

// MemcachedWith is [Memcached] with more arguments, as memcached takes them:
// "-m", "512". A later argument overrides an earlier one.
func MemcachedWith(t testing.TB, args ...string) string {
	t.Helper()
	return MemcachedServer(t, args...).Addr()
}

// MemcachedServer is [MemcachedWith] for a server that the test takes away and
// brings back.
func MemcachedServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return memcached(func(port string) []string {
		return append([]string{"-l", net.JoinHostPort("127.0.0.1", port)}, args...)
	}).run(t)
}

// MemcachedTLS is [Memcached] that speaks TLS, with a certificate and its key in
// PEM files.
func MemcachedTLS(t testing.TB, certFile, keyFile string) string {
	t.Helper()
	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	memcached(func(port string) []string {
		// It is asked whether it is up on a port of its own, without TLS.
		return []string{
			"-Z", "-o", "ssl_chain_cert=" + certFile + ",ssl_key=" + keyFile,
			"-l", "notls:" + net.JoinHostPort("127.0.0.1", port), "-l", addr,
		}
	}).start(t)
	return addr
}

func memcached(listen func(port string) []string) server {
	return server{
		binary: "memcached",
		args: func(port string) []string {
			args := []string{"-U", "0", "-m", "64", "-c", "1000"}
			if os.Geteuid() == 0 {
				args = append(args, "-u", "root") // it refuses to run as root unless told to
			}
			return append(args, listen(port)...)
		},
		ask:    "stats\r\n",
		pid:    "STAT pid ",
		locked: "CLIENT_ERROR unauthenticated", // it was started with an auth file
	}
}
