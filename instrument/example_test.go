package instrument_test

import (
	"context"
	"fmt"
	"time"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// A service that reads from a cache of its own marks what it does. With a client
// hook, such as instrument/goredis, only Recompute is left to do by hand, and
// even that is inferred, if later.
func Example() {
	monitor, err := instrument.New("feed", instrument.Options{
		Origin: signal.Origin{Name: "db", Budget: 8},
	})
	if err != nil {
		panic(err)
	}
	defer monitor.Close()

	wait := monitor.Miss("feed:home") // the cache had nothing
	value, err := instrument.Recompute(context.Background(), monitor, "feed:home",
		func(context.Context) (string, error) {
			// Ask the database; then, with the value:
			monitor.Store("feed:home", instrument.Expiry{TTL: time.Minute})
			return "news", nil
		})
	wait.Done()
	fmt.Println(value, err)

	for _, g := range monitor.Snapshot().Groups {
		fmt.Println(g.Group, "misses", g.Lookups.Misses, "recomputes", g.Recomputes.Starts())
	}
	// Output:
	// news <nil>
	// feed:* misses 1 recomputes 1
	// other misses 0 recomputes 0
}
