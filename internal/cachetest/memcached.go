package cachetest

import (
	"os"
	"testing"
)

// Memcached starts a memcached of 64 MiB for t and returns its address,
// host:port. It accepts connections from this machine only and is killed when t
// ends. It fails t if memcached is not installed.
func Memcached(t testing.TB) string {
	t.Helper()
	return server{
		binary: "memcached",
		args: func(port string) []string {
			args := []string{"-l", "127.0.0.1", "-p", port, "-U", "0", "-m", "64", "-c", "1000"}
			if os.Geteuid() == 0 {
				args = append(args, "-u", "root") // it refuses to run as root unless told to
			}
			return args
		},
		ask: "stats\r\n",
		pid: "STAT pid ",
	}.start(t)
}
