package ingest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const epoch = signal.Nanos(1_790_000_000_123_456_789)

// sink keeps batches, and counts what was rejected.
type sink struct {
	batches chan ingest.Batch

	mu       sync.Mutex
	rejected map[string]int // by "transport reason"
}

func newSink() *sink {
	return &sink{batches: make(chan ingest.Batch, 10_000), rejected: map[string]int{}}
}

func (s *sink) Ingest(b ingest.Batch) { s.batches <- b }

func (s *sink) reject(transport, reason string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected[transport+" "+reason] += n
}

// counts returns a copy of what was rejected so far.
func (s *sink) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for k, v := range s.rejected {
		out[k] = v
	}
	return out
}

// receiver returns a Receiver that passes on to s.
func (s *sink) receiver(o ingest.Options) *ingest.Receiver {
	o.Rejected = s.reject
	return ingest.NewReceiver(s, o)
}

func exporter(t *testing.T, o otlp.Options) *otlp.Exporter {
	t.Helper()
	exp, err := otlp.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := exp.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if n := exp.Dropped(); n != 0 {
			t.Errorf("the exporter dropped %d records", n)
		}
	})
	return exp
}
