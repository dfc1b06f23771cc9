package otlp_test

import (
	"testing"

	"github.com/stampede-exporter/stampede-exporter/instrument/otlp"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// typical is a window of a dogpile in one process: some twenty attributes and
// six recomputes.
func typical() *signal.Window {
	w := window()
	w.Lookups = signal.Lookups{Hits: 250, Misses: 7}
	w.Recomputes.Started[signal.CauseExpired] = 6
	w.Recomputes.Ended[signal.CauseExpired][signal.OutcomeOK] = 6
	w.MissPeak, w.InFlightPeak, w.Duplicates, w.Coalesced = 7, 6, 5, 1
	w.Busy, w.BusyMax = 2_400_000_000, 410_000_000
	w.Intervals = intervals(w.Start, 6)
	w.Stores = signal.Stores{Count: 6, ExpiryMin: w.End, ExpiryMax: w.End, TTLMin: 5_000_000_000, TTLMax: 5_000_000_000}
	return w
}

func TestEncodingAllocatesLittle(t *testing.T) {
	w, encode := typical(), otlp.Encoder()
	// The record's attributes, the key's ID twice, the packed intervals, and
	// the SDK's own record.
	if n := testing.AllocsPerRun(100, func() { encode(w) }); n > 6 {
		t.Errorf("%v allocations: want at most 6", n)
	}
}

func BenchmarkEncode(b *testing.B) {
	w, encode := typical(), otlp.Encoder()
	b.ReportAllocs()
	for b.Loop() {
		encode(w)
	}
}
