package cachetest

import "testing"

// Redis starts a redis-server for t and returns its address, host:port. It
// keeps nothing on disk, accepts connections from this machine only and is
// killed when t ends. It fails t if redis-server is not installed.
func Redis(t testing.TB) string {
	t.Helper()
	return RedisWith(t)
}

// RedisWith is [Redis] with more arguments, as redis-server takes them:
// "--maxmemory", "1mb". A later argument overrides an earlier one.
func RedisWith(t testing.TB, args ...string) string {
	t.Helper()
	return redisServer(t, args).start(t)
}

// RedisServer is [RedisWith] for a server that the test takes away and brings
// back.
func RedisServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return redisServer(t, args).run(t)
}

func redisServer(t testing.TB, args []string) server {
	dir := t.TempDir()
	return server{
		binary: "redis-server",
		args: func(port string) []string {
			return append([]string{
				"--port", port,
				"--bind", "127.0.0.1",
				"--dir", dir,
				"--save", "",
				"--appendonly", "no",
				"--daemonize", "no",
				// 10,000, the default, needs more open files than many machines allow.
				"--maxclients", "1000",
			}, args...)
		},
		ask:    "INFO server\r\n",
		pid:    "process_id:",
		locked: "-NOAUTH ", // it was started with a password
	}
}
