package otlp

import (
	"encoding/json"
	"math"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// encoder turns records into attributes. It reuses its memory from one record to
// the next and is not safe for concurrent use.
type encoder struct {
	attrs  []attribute.KeyValue
	packed []byte
}

// window returns the attributes of w, valid until the next call. Zero is left
// out, and so is a negative count or duration, which no source can mean.
func (e *encoder) window(w *signal.Window) []attribute.KeyValue {
	e.attrs = e.attrs[:0]
	e.text(semconv.AttrCache, w.Cache)
	// The ID is always there: a receiver could not tell a hash of zero from none.
	e.text(semconv.AttrKeyID, w.Key.ID.String())
	e.text(semconv.AttrKeyGroup, w.Key.Group)
	e.bytes(semconv.AttrKeyText, []byte(w.Key.Text))
	e.text(semconv.AttrGeneration, w.Generation)
	number(e, semconv.AttrStart, w.Start)
	number(e, semconv.AttrEnd, w.End)
	number(e, semconv.AttrUnknown, w.Unknown)
	e.lookups(w.Lookups)
	number(e, semconv.AttrMissPeak, w.MissPeak)
	e.recomputes(w)
	e.stores(&w.Stores)
	number(e, semconv.AttrInvalidations, w.Invalidations)
	number(e, semconv.AttrEarly, w.Early.Count)
	number(e, semconv.AttrEarlyLeadSum, w.Early.LeadSum)
	number(e, semconv.AttrEarlyLeadMax, w.Early.LeadMax)
	number(e, semconv.AttrEarlyDeltaMax, w.Early.DeltaMax)
	e.locks(&w.Locks)
	number(e, semconv.AttrRequests, w.Retries.Requests)
	number(e, semconv.AttrAttempts, w.Retries.Attempts)
	e.shares(w.Shares)
	return e.attrs
}

// vitals returns the attributes of v, valid until the next call.
func (e *encoder) vitals(v *signal.Vitals) []attribute.KeyValue {
	e.attrs = e.attrs[:0]
	e.text(semconv.AttrCache, v.Cache)
	number(e, semconv.AttrAt, v.At)
	number(e, semconv.AttrUptime, v.Uptime)
	e.lookups(v.Lookups)
	number(e, semconv.AttrRecomputes, v.Recomputes)
	number(e, semconv.AttrTracked, v.Tracked)
	number(e, semconv.AttrOverflowed, v.Overflowed)
	number(e, semconv.AttrDropped, v.Dropped)
	number(e, semconv.AttrExpiredKeys, v.Expired)
	number(e, semconv.AttrEvictedKeys, v.Evicted)
	e.text(semconv.AttrOrigin, v.Origin.Name)
	number(e, semconv.AttrOriginBudget, v.Origin.Budget)
	e.flag(semconv.AttrClosing, v.Closing)
	return e.attrs
}

func (e *encoder) lookups(l signal.Lookups) {
	number(e, semconv.AttrHits, l.Hits)
	number(e, semconv.AttrMisses, l.Misses)
	number(e, semconv.AttrStale, l.Stale)
	number(e, semconv.AttrErrors, l.Errors)
}

func (e *encoder) recomputes(w *signal.Window) {
	for c := range w.Recomputes.Started {
		number(e, startedKeys[c], w.Recomputes.Started[c])
		for o := range w.Recomputes.Ended[c] {
			number(e, endedKeys[c][o], w.Recomputes.Ended[c][o])
		}
	}
	number(e, semconv.AttrInFlightPeak, w.InFlightPeak)
	number(e, semconv.AttrDuplicates, w.Duplicates)
	number(e, semconv.AttrWhileFresh, w.WhileFresh)
	number(e, semconv.AttrCoalesced, w.Coalesced)
	number(e, semconv.AttrBusy, w.Busy)
	number(e, semconv.AttrBusyMax, w.BusyMax)
	e.packed = signal.AppendIntervals(e.packed[:0], w.Start, w.Intervals)
	e.bytes(semconv.AttrIntervals, e.packed)
	e.flag(semconv.AttrSampled, w.Sampled)
}

func (e *encoder) stores(s *signal.Stores) {
	number(e, semconv.AttrStores, s.Count)
	number(e, semconv.AttrStoresNoExpiry, s.NoExpiry)
	number(e, semconv.AttrExpiryMin, s.ExpiryMin)
	number(e, semconv.AttrExpiryMax, s.ExpiryMax)
	number(e, semconv.AttrTTLMin, s.TTLMin)
	number(e, semconv.AttrTTLMax, s.TTLMax)
}

func (e *encoder) locks(l *signal.Locks) {
	number(e, semconv.AttrLockAttempts, l.Attempts)
	number(e, semconv.AttrLockAcquired, l.Acquired)
	number(e, semconv.AttrLockWaits, l.Waits)
	number(e, semconv.AttrLockWaitSum, l.WaitSum)
	number(e, semconv.AttrLockWaitMax, l.WaitMax)
	number(e, semconv.AttrLockWaitPeak, l.WaitPeak)
	number(e, semconv.AttrLockHolds, l.Holds)
	number(e, semconv.AttrLockHoldSum, l.HoldSum)
	number(e, semconv.AttrLockHoldMax, l.HoldMax)
	number(e, semconv.AttrLockLost, l.Lost)
}

// shares writes JSON: only a window that was merged has shares, so this is rare,
// and their names are text of any length.
func (e *encoder) shares(ss []signal.Share) {
	if len(ss) == 0 {
		return
	}
	// Marshalling strings and numbers cannot fail.
	b, _ := json.Marshal(ss)
	e.text(semconv.AttrShares, string(b))
}

// text leaves bytes that are not UTF-8 out: protobuf refuses a whole request for
// one of them.
func (e *encoder) text(key, v string) {
	if v != "" {
		e.attrs = append(e.attrs, attribute.String(key, validText(v)))
	}
}

func (e *encoder) bytes(key string, v []byte) {
	if len(v) > 0 {
		e.attrs = append(e.attrs, attribute.ByteSlice(key, v))
	}
}

func (e *encoder) flag(key string, v bool) {
	if v {
		e.attrs = append(e.attrs, attribute.Bool(key, true))
	}
}

func number[T ~int | ~int64 | ~uint16 | ~uint32 | ~uint64](e *encoder, key string, v T) {
	if v <= 0 {
		return
	}
	n := int64(math.MaxInt64)
	if uint64(v) < math.MaxInt64 {
		n = int64(v)
	}
	e.attrs = append(e.attrs, attribute.Int64(key, n))
}

func validText(v string) string { return strings.ToValidUTF8(v, "\uFFFD") }

// Names of the attributes that count recomputes, made once.
var startedKeys, endedKeys = recomputeKeys()

func recomputeKeys() (started [signal.NumCauses]string, ended [signal.NumCauses][signal.NumOutcomes]string) {
	for c := range signal.NumCauses {
		started[c] = semconv.AttrStarted + "." + c.String()
		for o := range signal.NumOutcomes {
			ended[c][o] = semconv.AttrEnded + "." + c.String() + "." + o.String()
		}
	}
	return started, ended
}
