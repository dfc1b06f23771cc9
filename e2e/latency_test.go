package e2e_test

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

var runs = flag.Int("runs", 3, "how often the latency is measured")

// TestLatencyFromTheFirstDuplicateToTheActiveAlert measures how long it takes
// from the first duplicate recompute until Alertmanager has the page, with 20
// instances at 300 reads/s. It asserts that the page comes, not when.
func TestLatencyFromTheFirstDuplicateToTheActiveAlert(t *testing.T) {
	r := newRig(t)
	var took []time.Duration
	for i := range *runs {
		took = append(took, dogpile(t, r, fmt.Sprintf("cache-%02d", i)))
	}
	slices.Sort(took)
	t.Logf("%d runs: p50 %v, p95 %v, max %v", len(took), took[len(took)/2], took[len(took)*95/100], took[len(took)-1])
}

// dogpile lets a hot key of a cache expire, once, and returns the latency.
func dogpile(t *testing.T, r *rig, cache string) time.Duration {
	const instances, readers, apart, takes = 20, 121, time.Second / 300, 400 * time.Millisecond
	var monitors []*instrument.Monitor
	for i := range instances {
		out, err := otlp.New(t.Context(), otlp.Options{Endpoint: r.grpc, Insecure: true})
		if err != nil {
			t.Fatal(err)
		}
		m, err := instrument.New(cache, instrument.Options{Service: "latency", Instance: fmt.Sprint(i), Origin: signal.Origin{Name: "db", Budget: 8}})
		if err != nil {
			t.Fatal(err)
		}
		m.Attach(out)
		m.Store("feed:1", instrument.Expiry{TTL: time.Millisecond})
		monitors = append(monitors, m)
		defer func() { m.Close(); out.Shutdown(t.Context()) }()
	}
	time.Sleep(1500 * time.Millisecond) // two heartbeats: a fleet that has been there

	var all sync.WaitGroup
	defer all.Wait()
	var first time.Time
	paged := make(chan time.Time, 1)
	all.Go(func() {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			for _, a := range r.firing() {
				if a.Labels["cache"] == cache && a.Labels["severity"] == "page" {
					paged <- time.Now()
					return
				}
			}
		}
		close(paged)
	})
	for i := range readers {
		if i == 1 {
			first = time.Now()
		}
		m := monitors[i%instances]
		m.ObserveMiss(t.Context(), "feed:1")
		run := m.Begin("feed:1", instrument.Start{})
		all.Go(func() { time.Sleep(takes); run.End(signal.OutcomeOK) })
		time.Sleep(apart)
	}
	at, ok := <-paged
	if !ok {
		t.Fatalf("nobody was paged about %s", cache)
	}
	return at.Sub(first)
}
