package ingest_test

import (
	"cmp"
	"math"
	"net"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
	"unicode"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc"
	"pgregory.net/rapid"

	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
	"github.com/stampede-exporter/stampede-exporter/internal/ingest"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// text draws a printable text of at most limit bytes.
func text(t *rapid.T, label string, least, limit int) string {
	runes := rapid.RuneFrom(nil, unicode.Latin, unicode.Greek, unicode.Han, unicode.Digit, unicode.Punct, unicode.Symbol)
	return rapid.StringOfN(runes, least, -1, limit).Draw(t, label)
}

// count draws a number that is often zero, often small and sometimes huge.
func count[N ~int | ~int64 | ~uint16 | ~uint32 | ~uint64](t *rapid.T, label string, most int64) N {
	return N(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 100), rapid.Int64Range(0, most)).Draw(t, label))
}

func n64[N ~int | ~int64 | ~uint64](t *rapid.T) N { return count[N](t, "n", math.MaxInt64) }

func n32(t *rapid.T) uint32 { return count[uint32](t, "n32", math.MaxUint32) }

func drawSource(t *rapid.T) signal.Source {
	return signal.Source{Service: text(t, "service", 1, 256), Instance: text(t, "instance", 0, 256), Build: text(t, "build", 0, 256)}
}

func drawLookups(t *rapid.T) signal.Lookups {
	return signal.Lookups{Hits: n64[uint64](t), Misses: n64[uint64](t), Stale: n64[uint64](t), Errors: n64[uint64](t)}
}

func drawWindow(t *rapid.T) *signal.Window {
	w := &signal.Window{
		Source: drawSource(t), Cache: text(t, "cache", 1, 200),
		Key: signal.Key{
			ID: signal.KeyID(rapid.Uint64().Draw(t, "key")), Group: text(t, "group", 0, 128),
			Text: string(rapid.SliceOfN(rapid.Byte(), 0, 512).Draw(t, "text")),
		},
		Generation: text(t, "generation", 0, 256),
		Start:      signal.Nanos(rapid.Int64Range(1, math.MaxInt64-int64(ingest.MaxSpan)).Draw(t, "start")),
		Unknown:    count[signal.Unknown](t, "unknown", math.MaxUint16),
		Lookups:    drawLookups(t), MissPeak: n32(t), InFlightPeak: n32(t),
		Duplicates: n64[uint64](t), WhileFresh: n64[uint64](t), Coalesced: n64[uint64](t),
		Busy: n64[time.Duration](t), BusyMax: n64[time.Duration](t), Sampled: rapid.Bool().Draw(t, "sampled"),
		Stores: signal.Stores{
			Count: n64[uint64](t), NoExpiry: n64[uint64](t), ExpiryMin: n64[signal.Nanos](t), ExpiryMax: n64[signal.Nanos](t),
			TTLMin: n64[time.Duration](t), TTLMax: n64[time.Duration](t), Stale: n64[uint64](t),
			Versions: signal.Versions{Oldest: n64[uint64](t), OldestAt: n64[signal.Nanos](t), Newest: n64[uint64](t), NewestAt: n64[signal.Nanos](t)},
		},
		Invalidations: n64[uint64](t), InvalidatedAt: n64[signal.Nanos](t),
		Early: signal.Early{Count: n64[uint64](t), LeadSum: n64[time.Duration](t), LeadMax: n64[time.Duration](t), DeltaMax: n64[time.Duration](t)},
		Locks: signal.Locks{
			Attempts: n64[uint64](t), Acquired: n64[uint64](t), Waits: n64[uint64](t), WaitSum: n64[time.Duration](t), WaitMax: n64[time.Duration](t),
			WaitPeak: n32(t), Holds: n64[uint64](t), HoldSum: n64[time.Duration](t), HoldMax: n64[time.Duration](t), Lost: n64[uint64](t),
			Waiting: n32(t), Held: n32(t), HeldSince: n64[signal.Nanos](t),
		},
		Retries: signal.Retries{Requests: n64[uint64](t), Attempts: n64[uint64](t)},
	}
	w.End = w.Start + signal.Nanos(rapid.Int64Range(0, int64(ingest.MaxSpan)).Draw(t, "span"))
	w.Recomputes = drawRecomputes(t)
	w.Intervals = drawIntervals(t)
	w.Shares = drawShares(t)
	if len(w.Shares) > 0 && rapid.Bool().Draw(t, "of several services") {
		w.Source = signal.Source{}
	}
	return w
}

func drawRecomputes(t *rapid.T) (r signal.Recomputes) {
	for c := range r.Started {
		r.Started[c] = n64[uint64](t)
		for o := range r.Ended[c] {
			r.Ended[c][o] = n64[uint64](t)
		}
	}
	return r
}

func drawWork(t *rapid.T) signal.Work {
	w := signal.Work{
		Recomputes: drawRecomputes(t), Busy: n64[time.Duration](t), Duplicates: n64[uint64](t), WhileFresh: n64[uint64](t), Coalesced: n64[uint64](t),
		Stores: n64[uint64](t), Early: n64[uint64](t), Retries: signal.Retries{Requests: n64[uint64](t), Attempts: n64[uint64](t)},
	}
	for i := range w.Durations {
		w.Durations[i] = n64[uint64](t)
	}
	return w
}

func drawClaims(t *rapid.T) signal.Claims {
	c := signal.Claims{
		Timeout: n64[time.Duration](t), Attempts: n64[int](t), Beta: rapid.Float64Range(0, 10).Draw(t, "beta"), RefreshAhead: rapid.Float64Range(0, 1).Draw(t, "ahead"),
		Clamp: n64[time.Duration](t), LockTTL: n64[time.Duration](t), StaleFor: n64[time.Duration](t),
	}
	if rapid.Bool().Draw(t, "protected") {
		c.Protection = []string{signal.ProtectSingleFlight, signal.ProtectXFetch}
	}
	return c
}

func drawExpiries(t *rapid.T, at signal.Nanos) (bins []signal.ExpiryBin) {
	for _, ahead := range rapid.SliceOfN(rapid.Int64Range(1, int64(signal.ExpiryFar)), 0, 20).Draw(t, "ahead") {
		if bin, ok := signal.BinExpiry(at, at+signal.Nanos(ahead)); ok {
			bin.Keys = 1
			bin.Group = text(t, "group", 0, signal.MaxExpiryGroup)
			bins = signal.MergeExpiries(bins, []signal.ExpiryBin{bin})
		}
	}
	return bins
}

func drawHotKeys(t *rapid.T) []signal.HotKey {
	return signal.MergeHotKeys(nil, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) signal.HotKey {
		return signal.HotKey{
			ID: signal.KeyID(rapid.Uint64().Draw(t, "id")), Group: text(t, "group", 0, 128),
			Share: rapid.Float64Range(0, 1).Draw(t, "share"), Expiry: n64[signal.Nanos](t),
		}
	}), 1, 2*signal.MaxHotKeys).Draw(t, "hot"))
}

func drawServer(t *rapid.T) signal.Server {
	return signal.Server{Flushes: n64[uint64](t), Sets: n64[uint64](t), Blocked: n32(t), Keys: n64[uint64](t)}
}

func drawIntervals(t *rapid.T) []signal.Interval {
	ivs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) signal.Interval {
		iv := signal.Interval{
			ID: rapid.Uint64().Draw(t, "id"), Start: signal.Nanos(rapid.Int64Range(1, math.MaxInt64).Draw(t, "start")),
			Cause:   signal.Cause(rapid.IntRange(0, int(signal.NumCauses)-1).Draw(t, "cause")),
			Outcome: signal.Outcome(rapid.IntRange(0, int(signal.NumOutcomes)-1).Draw(t, "outcome")),
		}
		if rapid.Bool().Draw(t, "ended") {
			iv.End = signal.Nanos(rapid.Int64Range(int64(iv.Start), math.MaxInt64).Draw(t, "end"))
		}
		return iv
	}), 0, signal.MaxIntervals).Draw(t, "intervals")
	slices.SortFunc(ivs, func(a, b signal.Interval) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) })
	return ivs
}

func drawShares(t *rapid.T) []signal.Share {
	shares := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) signal.Share {
		return signal.Share{Source: drawSource(t), Recomputes: n64[uint64](t), InFlightPeak: n32(t), MissPeak: n32(t), Coalesced: n64[uint64](t)}
	}), 0, 5, func(s signal.Share) signal.Source { return s.Source }).Draw(t, "shares")
	slices.SortFunc(shares, func(a, b signal.Share) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Build, b.Build))
	})
	return shares
}

func drawVitals(t *rapid.T) *signal.Vitals {
	at := 1 + count[signal.Nanos](t, "at", math.MaxInt64-1-int64(2*signal.ExpiryFar))
	return &signal.Vitals{
		Source: drawSource(t), Cache: text(t, "cache", 1, 200), At: at, Uptime: n64[time.Duration](t),
		Lookups: drawLookups(t), Work: drawWork(t), Running: n32(t), Waiting: n32(t), Claims: drawClaims(t), Expiries: drawExpiries(t, at), Tracked: n64[uint64](t), Overflowed: n64[uint64](t), Dropped: n64[uint64](t),
		Expired: n64[uint64](t), Evicted: n64[uint64](t), Origin: signal.Origin{Name: text(t, "origin", 0, 200), Budget: n64[int](t), Recompute: n64[time.Duration](t)},
		Sample: signal.Sample{Keys: n64[uint64](t), Population: n64[uint64](t), Weight: rapid.Float64Range(0, 1e9).Draw(t, "weight")},
		Server: drawServer(t), Hot: drawHotKeys(t), Probe: rapid.Bool().Draw(t, "probe"), Closing: rapid.Bool().Draw(t, "closing"),
	}
}

// pair returns an exporter and the sink at the other end of it.
func pair(t *testing.T, transport string) (*otlp.Exporter, *sink) {
	t.Helper()
	s := newSink()
	r := s.receiver(ingest.Options{})
	if transport == ingest.TransportHTTP {
		server := httptest.NewServer(r)
		t.Cleanup(server.Close)
		return exporter(t, otlp.Options{Endpoint: server.URL, Protocol: otlp.ProtocolHTTP}), s
	}
	addr, _ := serveGRPC(t, r)
	return exporter(t, otlp.Options{Endpoint: addr, Insecure: true}), s
}

// serveGRPC serves r until stop is called, which returns once all calls are
// over, or the test ends.
func serveGRPC(t *testing.T, r *ingest.Receiver) (addr string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(r.ServerOptions()...)
	r.Register(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	stop = sync.OnceFunc(func() {
		server.GracefulStop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

func TestWhatIsSentArrives(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{ingest.TransportGRPC, ingest.TransportHTTP} {
		t.Run("over "+transport, func(t *testing.T) {
			t.Parallel()
			exp, s := pair(t, transport)
			rapid.Check(t, func(t *rapid.T) {
				want := ingest.Batch{Transport: transport, Windows: []*signal.Window{drawWindow(t)}, Vitals: []*signal.Vitals{drawVitals(t)}}
				// The exporter's records are its own: give it copies.
				w, v := *want.Windows[0], *want.Vitals[0]
				exp.Vitals(&v)
				exp.Window(&w, true)
				var got ingest.Batch
				for len(got.Windows) == 0 || len(got.Vitals) == 0 {
					b := <-s.batches
					got.Transport, got.Received = b.Transport, b.Received
					got.Windows, got.Vitals = append(got.Windows, b.Windows...), append(got.Vitals, b.Vitals...)
				}
				if got.Received.IsZero() {
					t.Error("nothing says when it was received")
				}
				if diff := gocmp.Diff(want, got, cmpopts.IgnoreFields(ingest.Batch{}, "Received"), cmpopts.EquateEmpty()); diff != "" {
					t.Fatal(diff)
				}
			})
			if diff := gocmp.Diff(map[string]int{}, s.counts()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAThousandWindowsArriveInOrder(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{ingest.TransportGRPC, ingest.TransportHTTP} {
		t.Run("over "+transport, func(t *testing.T) {
			t.Parallel()
			exp, s := pair(t, transport)
			const n = 1000
			for i := range n {
				exp.Window(&signal.Window{
					Source: signal.Source{Service: "shop", Instance: "shop-1"}, Cache: "feeds", Key: signal.Key{ID: signal.KeyID(i)},
					Start: epoch, End: epoch + 1, Intervals: intervals(epoch, 3),
				}, i == n-1)
			}
			got := 0
			for got < n {
				for _, w := range (<-s.batches).Windows {
					if w.Key.ID != signal.KeyID(got) {
						t.Fatalf("window %d came at place %d", w.Key.ID, got)
					}
					got++
				}
			}
		})
	}
}
