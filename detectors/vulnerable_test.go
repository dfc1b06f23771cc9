package detectors_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func newVulnerable(t testing.TB, c detectors.VulnerableConfig) *timeline {
	d, err := detectors.NewVulnerable(c)
	return newTimeline(t, d, err)
}

// tries declares how often readers try.
func tries(n int) func(*traffic) {
	return func(x *traffic) { x.change = func(c *signal.CacheState) { c.Claims.Attempts = n } }
}

func fewer(x *traffic) { x.hits, x.misses, x.requests, x.attempts, x.ok = 30, 10, 10, 10, 10 }

func TestVulnerable(t *testing.T) {
	const hour = 60 * 60
	t.Run("100 reads a second of an origin that does 80 are told after an hour", func(t *testing.T) {
		newVulnerable(t, detectors.VulnerableConfig{}).run(hour+400, usually(tries(1))).check(t, "1h0m3s info")
	})
	t.Run("40 of one attempt are not", func(t *testing.T) {
		newVulnerable(t, detectors.VulnerableConfig{}).run(hour+400, usually(tries(1), fewer)).check(t)
	})
	t.Run("40 of three attempts are, and as a ticket if that is asked for", func(t *testing.T) {
		l := newVulnerable(t, detectors.VulnerableConfig{Ticket: true}).run(hour+400, usually(tries(3), fewer))
		l.check(t, "1h0m3s ticket")
		if bound, _ := l.f.Get("load.bound"); bound < 26 || bound > 28 {
			t.Errorf("it would come back below %g reads a second, want 80/3", bound)
		}
	})
	t.Run("it is over once it has not been so for an hour", func(t *testing.T) {
		l := newVulnerable(t, detectors.VulnerableConfig{Hold: 10 * time.Minute}).run(1200, usually(tries(1)))
		l.zero, l.found = l.now, nil
		l.run(1200, usually(tries(1), fewer)).check(t, "10m28s cleared")
	})
	t.Run("without attempts declared the least is taken, and said", func(t *testing.T) {
		want := []string{"partial: How often its readers try is not declared: one attempt is taken, which is the least."}
		if diff := cmp.Diff(want, reasons(newVulnerable(t, detectors.VulnerableConfig{}).run(hour+400, usually()).d)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
