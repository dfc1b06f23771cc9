package lab_test

import (
	"context"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// shapes are runs that cost the lab something, each in its own way. Those called
// hours are the size that the lab is made for: an hour of 20 instances and 500
// reads a second. Those called full are as large as their sources are, where
// scenarios of the same name are scaled down.
var shapes = []struct{ name, text string }{
	{"an hour of hits", `
duration: 1h
fleet: {instances: 20}
origins: {db: {concurrency: 64}}
caches:
  feed: {origin: db, ttl: 10m, jitter: {spread: 5m}, recompute: {fixed: 50ms}, protect: singleflight}
workloads: [{cache: feed, keys: 1000, zipf: 1, rate: 500}]
`},
	{"an hour of early refreshes", `
duration: 1h
fleet: {instances: 20}
origins: {db: {concurrency: 64}}
caches:
  feed: {origin: db, ttl: 60s, recompute: {fixed: 400ms}, protect: xfetch}
workloads: [{cache: feed, keys: 20, rate: 500}]
`},
	{"an hour of dogpiles", `
duration: 1h
fleet: {instances: 20}
origins: {db: {concurrency: 0}}
caches:
  feed: {origin: db, ttl: 60s, recompute: {fixed: 400ms}}
workloads: [{cache: feed, keys: 1, rate: 500}]
`},
	{"an hour of misses", `
duration: 1h
fleet: {instances: 20}
origins: {db: {concurrency: 64}}
caches:
  feed: {origin: db, ttl: 1s, recompute: {fixed: 50ms}}
workloads: [{cache: feed, keys: 5000, rate: 500}]
`},
	{"an hour of a loop", `
duration: 1h
fleet: {instances: 20}
origins: {db: {concurrency: 15}}
caches:
  feed: {origin: db, ttl: 30s, jitter: {spread: 60s}, recompute: {fixed: 100ms}, client: {timeout: 1s, attempts: 3}}
workloads: [{cache: feed, keys: 3333, rate: 500}]
events: [{at: 0s, do: warm, cache: feed}, {at: 7m, do: flush, cache: feed}]
`},
	{"full look-aside", `
duration: 10m
fleet: {instances: 4}
origins: {db: {concurrency: 30}}
caches:
  feed: {origin: db, ttl: 30s, jitter: {spread: 60s}, recompute: {fixed: 100ms}, client: {timeout: 1s, attempts: 3}}
workloads: [{cache: feed, keys: 6670, rate: 1000}]
events: [{at: 0s, do: warm, cache: feed}, {at: 7m, do: flush, cache: feed}]
`},
	{"full spike", `
duration: 10m
fleet: {instances: 4}
origins: {db: {concurrency: 100}}
caches:
  feed: {origin: db, ttl: 200ms, recompute: {fixed: 100ms}, client: {timeout: 3s, attempts: 3}}
workloads: [{cache: feed, keys: 10000, rate: 600}]
events: [{at: 7m, do: load, factor: 2.5, for: 15s}]
`},
	{"full retry storm", `
duration: 9m
fleet: {instances: 10}
origins: {db: {concurrency: 640}}
caches:
  feed: {origin: db, ttl: 200ms, recompute: {fixed: 100ms}, client: {timeout: 1s, attempts: 3}}
workloads: [{cache: feed, keys: 20000, rate: 1000}]
events: [{at: 7m, do: fail, origin: db, share: 1, for: 10s}]
`},
	{"ten minutes of 1,000 instances", `
duration: 10m
fleet: {instances: 1000}
origins: {db: {concurrency: 64}}
caches:
  feed: {origin: db, ttl: 2m, jitter: {spread: 30s}, recompute: {fixed: 50ms}, protect: singleflight}
workloads: [{cache: feed, keys: 100, zipf: 1, rate: 500}]
`},
}

func BenchmarkRun(b *testing.B) {
	for _, s := range shapes {
		b.Run(s.name, func(b *testing.B) {
			sc, err := scenario.Parse([]byte("name: bench\n" + s.text))
			if err != nil {
				b.Fatal(err)
			}
			var reads float64
			b.ReportAllocs()
			for b.Loop() {
				r, err := lab.Run(context.Background(), sc, lab.Options{})
				if err != nil {
					b.Fatal(err)
				}
				reads += r.Truth["reads"]
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/reads, "ns/read")
			b.ReportMetric(reads/float64(b.N), "reads")
		})
	}
}
