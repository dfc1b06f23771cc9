package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/stampede-exporter/stampede-exporter/instrument"
)

// feedKey is where the feed is cached.
const feedKey = "feed:front-page"

// feed answers requests for the feed.
type feed struct {
	rdb     *redis.Client
	monitor *instrument.Monitor
	takes   time.Duration
	ttl     time.Duration
	flight  *singleflight.Group // nil if every reader recomputes for itself
	queries prometheus.Counter  // what the database counts
}

func newFeed(rdb *redis.Client, m *instrument.Monitor, r prometheus.Registerer, takes, ttl time.Duration, protect string) *feed {
	f := &feed{rdb: rdb, monitor: m, takes: takes, ttl: ttl, queries: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "feed_database_queries_total", Help: "Queries the service has begun.",
	})}
	r.MustRegister(f.queries)
	if protect == "singleflight" {
		f.flight = new(singleflight.Group)
	}
	return f
}

// ServeHTTP answers from the cache if it can: cache-aside, as most services do.
func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := f.rdb.Get(r.Context(), feedKey).Result()
	if errors.Is(err, redis.Nil) {
		body, err = f.rebuild(r.Context())
	}
	if err != nil {
		http.Error(w, "the feed is not to be had just now", http.StatusServiceUnavailable)
		return
	}
	w.Write([]byte(body))
}

// rebuild makes the feed anew and stores it, together with whoever else wants
// it if single-flight is on.
func (f *feed) rebuild(ctx context.Context) (string, error) {
	if f.flight == nil {
		return f.recompute(ctx)
	}
	led := false
	body, err, _ := f.flight.Do(feedKey, func() (any, error) {
		led = true
		// One caller that goes away must not take the others' feed along.
		return f.recompute(context.WithoutCancel(ctx))
	})
	if !led {
		// stampede: this caller waited for another's recompute.
		f.monitor.Follow(feedKey).Done()
	}
	if err != nil {
		return "", err
	}
	return body.(string), nil
}

// recompute does the work.
func (f *feed) recompute(ctx context.Context) (string, error) {
	// stampede: the hook would infer this recompute from the miss and the
	// store, but only once it has ended. Marked, it is seen while it runs.
	return instrument.Recompute(ctx, f.monitor, feedKey, func(ctx context.Context) (string, error) {
		body, err := f.query(ctx)
		if err != nil {
			return "", err
		}
		return body, f.rdb.Set(ctx, feedKey, body, f.ttl).Err()
	})
}

// query stands for the slow query of a real service.
func (f *feed) query(ctx context.Context) (string, error) {
	f.queries.Inc()
	select {
	case <-time.After(f.takes):
		return "the feed, as of " + time.Now().Format(time.RFC3339), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
