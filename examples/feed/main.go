// Command feed is a small web service with a cache, complete with the lines
// that make its stampedes visible. Those lines are marked "stampede:"; without
// them it is an ordinary cache-aside service on Redis.
//
//	redis-server &
//	go run ./examples/feed &
//	curl localhost:8080/feed
//
// It answers /feed from the cache, and makes the feed anew, slowly, when the
// cache has none. It sends to the exporter that OTEL_EXPORTER_OTLP_ENDPOINT
// names, by default the one on this machine, and serves its own metrics.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/goredis"
	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
	"github.com/stampede-exporter/stampede-exporter/instrument/prom"
	stampede "github.com/stampede-exporter/stampede-exporter/signal"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to serve on")
	redisAddr := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	takes := flag.Duration("takes", 400*time.Millisecond, "how long it takes to make the feed")
	ttl := flag.Duration("ttl", 10*time.Second, "how long a feed lives in the cache")
	protect := flag.String("protect", "none", "what keeps readers from recomputing at once: none or singleflight")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *listen, *redisAddr, *takes, *ttl, *protect); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, listen, redisAddr string, takes, ttl time.Duration, protect string) error {
	rdb := redis.NewClient(&redis.Options{Addr: redisAddr})
	defer rdb.Close()

	// stampede: the way to the exporter. It never holds the service up.
	exporter, err := otlp.New(ctx, otlp.Options{})
	if err != nil {
		return err
	}
	defer shutdown(exporter.Shutdown)

	// stampede: a monitor for the cache, told what its recomputes spend, and
	// what is meant to protect it.
	var claims stampede.Claims
	if protect == "singleflight" {
		claims.Protection = []string{stampede.ProtectSingleFlight}
	}
	monitor, err := instrument.New("feed", instrument.Options{
		Origin: stampede.Origin{Name: "db", Budget: 8},
		Claims: claims,
	})
	if err != nil {
		return err
	}
	defer monitor.Close() // before the exporter shuts down: it has last words
	monitor.Attach(exporter)

	// stampede: a hook that sees every command.
	hook, err := goredis.NewHook(monitor, goredis.Options{})
	if err != nil {
		return err
	}
	rdb.AddHook(hook)

	// stampede: the way to Prometheus, with the service's other metrics.
	registry := prometheus.NewRegistry()
	registry.MustRegister(prom.NewCollector(monitor))

	feed := newFeed(rdb, monitor, registry, takes, ttl, protect)
	mux := http.NewServeMux()
	mux.Handle("GET /feed", feed)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return serve(ctx, listen, mux)
}

// serve answers requests until ctx is done.
func serve(ctx context.Context, listen string, h http.Handler) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	log.Printf("serving http://%s/feed", l.Addr())
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		shutdown(srv.Shutdown)
	}()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// shutdown gives f a few seconds.
func shutdown(f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := f(ctx); err != nil {
		log.Printf("shut down: %v", err)
	}
}
