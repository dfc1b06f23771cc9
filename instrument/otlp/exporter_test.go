package otlp_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdklog "go.opentelemetry.io/otel/sdk/log"

	"github.com/stampede-exporter/stampede-exporter/instrument"
	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// client stands in for the network: it takes delay to answer, and fails while
// broken is set.
type client struct {
	mu     sync.Mutex
	sizes  []int // of requests that were taken
	tries  int
	broken bool
	answer error // to requests that are taken
	delay  time.Duration
	closed bool
}

var errBroken = errors.New("broken")

func (c *client) Export(ctx context.Context, rs []sdklog.Record) error {
	if c.delay > 0 {
		select {
		case <-time.After(c.delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries++
	if c.broken {
		return errBroken
	}
	c.sizes = append(c.sizes, len(rs))
	return c.answer
}

func (c *client) ForceFlush(context.Context) error { return nil }

func (c *client) Shutdown(context.Context) error {
	c.closed = true
	return nil
}

// sent returns how many records were taken, and in how many requests.
func (c *client) sent() (records, requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.sizes {
		records += n
	}
	return records, len(c.sizes)
}

// tried returns how many requests there were, once all is quiet.
func (c *client) tried() int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tries
}

func (c *client) set(broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = broken
}

// startWith returns an exporter over c for use in a bubble.
func startWith(t *testing.T, c *client, o otlp.Options) *otlp.Exporter {
	t.Helper()
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	exp, err := otlp.Start(c, o)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, exp)
	return exp
}

func wantSent(t *testing.T, c *client, records, requests int) {
	t.Helper()
	synctest.Wait()
	if r, q := c.sent(); r != records || q != requests {
		t.Errorf("%d records in %d requests: want %d in %d", r, q, records, requests)
	}
}

func wantDropped(t *testing.T, exp *otlp.Exporter, n uint64) {
	t.Helper()
	synctest.Wait()
	if got := exp.Dropped(); got != n {
		t.Errorf("dropped %d: want %d", got, n)
	}
}

func TestRecordsLeaveTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &client{}
		exp := startWith(t, c, otlp.Options{})
		exp.Window(window(), false)
		exp.Window(window(), false)
		exp.Vitals(vitals())
		wantSent(t, c, 0, 0)
		time.Sleep(otlp.Linger)
		wantSent(t, c, 3, 1)
	})
}

func TestAnUrgentWindowTakesWhatIsQueuedAlong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &client{}
		exp := startWith(t, c, otlp.Options{})
		exp.Window(window(), true)
		wantSent(t, c, 1, 1) // with no time passing
		exp.Vitals(vitals())
		wantSent(t, c, 1, 1)
		exp.Window(window(), true)
		wantSent(t, c, 3, 2)
	})
}

func TestAFullBatchDoesNotLinger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &client{}
		exp := startWith(t, c, otlp.Options{BatchSize: 2})
		for range 5 {
			exp.Window(window(), false)
		}
		wantSent(t, c, 5, 3)
	})
}

func TestABatchOfMergedWindowsStaysSmall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &client{}
		exp := startWith(t, c, otlp.Options{})
		for range 20 {
			w := window()
			w.Intervals = intervals(w.Start, 4096)
			exp.Window(w, false)
		}
		time.Sleep(otlp.Linger)
		wantSent(t, c, 20, 2)
	})
}

func TestASlowReceiverNeverBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &client{delay: time.Hour}
		exp := startWith(t, c, otlp.Options{QueueSize: 100, BatchSize: 10})
		exp.Window(window(), true)
		synctest.Wait() // the first is on its way
		began := time.Now()
		for range 1000 {
			exp.Window(window(), true)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("1000 windows took %v", d)
		}
		wantDropped(t, exp, 900)
		// No request outlives the bound, whatever the client does.
		time.Sleep(time.Minute)
		wantDropped(t, exp, 901)
	})
}

func TestWhileTheReceiverIsAwayTheNewestAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &client{broken: true}
		var errs []error
		exp := startWith(t, c, otlp.Options{QueueSize: 50, BatchSize: 10, OnError: func(err error) { errs = append(errs, err) }})
		for range 10 {
			exp.Window(window(), false)
		}
		wantDropped(t, exp, 10) // the batch that found out
		time.Sleep(time.Minute)
		exp.Window(window(), true)
		wantDropped(t, exp, 10+1) // and one that was tried, before a pause
		for range 70 {
			exp.Window(window(), true)
		}
		wantDropped(t, exp, 10+1+20) // pushed out
		before := c.tried()
		time.Sleep(time.Minute)
		n := c.tried() - before
		if n < 12 || n > 25 {
			t.Errorf("%d tries in a minute: want one each 2.5 to 5 s", n)
		}
		wantDropped(t, exp, 10+20+1+uint64(n))
		if len(errs) != 1 || !errors.Is(errs[0], errBroken) {
			t.Errorf("told of %v: want the first error, once", errs)
		}

		lost := exp.Dropped()
		c.set(false)
		time.Sleep(otlp.MaxPause)
		wantSent(t, c, 81-int(lost), 1+(81-int(lost)-1+9)/10) // one to see, then whole batches
		wantDropped(t, exp, lost)

		c.set(true)
		exp.Window(window(), true)
		wantDropped(t, exp, lost+1)
		if len(errs) != 2 {
			t.Errorf("told of %d errors: want another after it went well", len(errs))
		}
	})
}

func TestRefusedRecordsAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &client{answer: errors.New("OTLP partial success: no (2 logs rejected)")}
		exp := startWith(t, c, otlp.Options{BatchSize: 3})
		for range 6 {
			exp.Window(window(), false)
		}
		wantSent(t, c, 6, 2) // and no pause between: the receiver is there
		wantDropped(t, exp, 4)
	})
}

func TestShutdownDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &client{delay: time.Second}
		exp := startWith(t, c, otlp.Options{BatchSize: 10})
		for range 25 {
			exp.Window(window(), false)
		}
		if err := exp.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantSent(t, c, 25, 3)
		exp.Window(window(), true)
		wantDropped(t, exp, 1)
		if !c.closed {
			t.Error("the client was not shut down")
		}
	})
}

func TestShutdownDoesNotWaitForADeadReceiver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		client *client
		takes  time.Duration
	}{
		{"one that refuses", &client{broken: true}, 0},
		{"one that never answers", &client{delay: time.Hour}, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				exp := startWith(t, tt.client, otlp.Options{BatchSize: 10})
				for range 25 {
					exp.Window(window(), true)
				}
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				began := time.Now()
				if err := exp.Shutdown(ctx); err != nil {
					t.Error(err)
				}
				if d := time.Since(began); d != tt.takes {
					t.Errorf("took %v: want %v", d, tt.takes)
				}
				wantDropped(t, exp, 25)
			})
		})
	}
}

func TestQueueKeepsOrder(t *testing.T) {
	t.Parallel()
	c := newCollector()
	addr, _ := c.serveGRPC(t, "localhost:0")
	exp := newExporter(t, otlp.Options{Endpoint: addr, Insecure: true, BatchSize: 7})
	const n = 1000
	for i := range n {
		w := window()
		w.End += 1 + signal.Nanos(i)
		exp.Window(w, i == n-1)
	}
	for i, e := range c.events(t, n) {
		if got := signal.Nanos(e.record.TimeUnixNano) - window().End - 1; int(got) != i {
			t.Fatalf("record %d came at place %d", got, i)
		}
	}
	if n := exp.Dropped(); n != 0 {
		t.Errorf("dropped %d", n)
	}
}

func TestAReceiverThatComesBack(t *testing.T) {
	t.Parallel()
	c := newCollector()
	addr, stop := c.serveGRPC(t, "localhost:0")
	failed := make(chan error, 100)
	exp := newExporter(t, otlp.Options{Endpoint: addr, Insecure: true, OnError: func(err error) { failed <- err }})
	exp.Window(window(), true)
	c.events(t, 1)

	stop()
	exp.Window(window(), true)
	<-failed
	if n := exp.Dropped(); n != 1 {
		t.Errorf("dropped %d: want the 1 that failed", n)
	}

	back := newCollector()
	back.serveGRPC(t, addr)
	for range 20 {
		exp.Window(window(), true)
	}
	// Tries go on until one succeeds, each at the cost of one record.
	back.events(t, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := exp.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if n := exp.Dropped(); n > 10 {
		t.Errorf("dropped %d in a restart: want a few", n)
	}
}

func TestAMonitorsWindowsArrive(t *testing.T) {
	t.Parallel()
	c := newCollector()
	addr, _ := c.serveGRPC(t, "localhost:0")
	exp := newExporter(t, otlp.Options{Endpoint: addr, Insecure: true})
	m, err := instrument.New("feeds", instrument.Options{Service: "shop", Instance: "shop-1", Interval: -1})
	if err != nil {
		t.Fatal(err)
	}
	m.Attach(exp)
	for range 2 {
		w := m.Miss("feed:7")
		defer w.Done()
		m.Begin("feed:7", instrument.Start{})
	}
	m.FlushUrgent()
	e := c.events(t, 1)[0]
	attrs := attributes(e.record.Attributes)
	if e.resource["service.instance.id"] != "shop-1" || attrs["cache.name"] != "feeds" || attrs["stampede.recompute.in_flight.peak"] != int64(2) {
		t.Errorf("%v under %v", attrs, e.resource)
	}
}
