// Package wire turns windows and vitals into the attributes of OTLP log events.
// It is what every sender shares: the exporter an application runs, and a
// simulation, which must not meet another encoding than applications do.
// docs/wire.md describes the attributes; internal/ingest reads them back.
package wire

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// Encoder turns records into attributes. It reuses its memory from one record to
// the next and is not safe for concurrent use. The zero value works.
type Encoder struct {
	attrs  []attribute.KeyValue
	packed []byte
}

// Window returns the attributes of w, valid until the next call. Zero is left
// out, and so is a negative count or duration, which no source can mean.
func (e *Encoder) Window(w *signal.Window) []attribute.KeyValue {
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
	e.recomputes(&w.Recomputes)
	e.waste(w.Duplicates, w.WhileFresh, w.Coalesced, w.Busy)
	number(e, semconv.AttrInFlightPeak, w.InFlightPeak)
	number(e, semconv.AttrBusyMax, w.BusyMax)
	e.packed = signal.AppendIntervals(e.packed[:0], w.Start, w.Intervals)
	e.bytes(semconv.AttrIntervals, e.packed)
	e.flag(semconv.AttrSampled, w.Sampled)
	e.stores(&w.Stores)
	number(e, semconv.AttrInvalidations, w.Invalidations)
	number(e, semconv.AttrInvalidatedAt, w.InvalidatedAt)
	number(e, semconv.AttrEarly, w.Early.Count)
	number(e, semconv.AttrEarlyLeadSum, w.Early.LeadSum)
	number(e, semconv.AttrEarlyLeadMax, w.Early.LeadMax)
	number(e, semconv.AttrEarlyDeltaMax, w.Early.DeltaMax)
	e.locks(&w.Locks)
	e.retries(w.Retries)
	e.shares(w.Shares)
	return e.attrs
}

// Vitals returns the attributes of v, valid until the next call.
func (e *Encoder) Vitals(v *signal.Vitals) []attribute.KeyValue {
	e.attrs = e.attrs[:0]
	e.text(semconv.AttrCache, v.Cache)
	number(e, semconv.AttrAt, v.At)
	number(e, semconv.AttrUptime, v.Uptime)
	e.lookups(v.Lookups)
	e.work(v)
	number(e, semconv.AttrTracked, v.Tracked)
	number(e, semconv.AttrOverflowed, v.Overflowed)
	number(e, semconv.AttrDropped, v.Dropped)
	number(e, semconv.AttrExpiredKeys, v.Expired)
	number(e, semconv.AttrEvictedKeys, v.Evicted)
	e.server(v)
	e.text(semconv.AttrOrigin, v.Origin.Name)
	number(e, semconv.AttrOriginBudget, v.Origin.Budget)
	number(e, semconv.AttrOriginTakes, v.Origin.Recompute)
	e.claims(&v.Claims)
	e.flag(semconv.AttrClosing, v.Closing)
	return e.attrs
}

func (e *Encoder) work(v *signal.Vitals) {
	e.recomputes(&v.Recomputes)
	e.waste(v.Duplicates, v.WhileFresh, v.Coalesced, v.Busy)
	durations := signal.AppendDurations(e.packed[:0], &v.Durations)
	e.bytes(semconv.AttrDurations, durations)
	// Both must outlive this call, so the second starts where the first ends.
	e.packed = signal.AppendExpiries(durations, v.At, v.Expiries)
	e.bytes(semconv.AttrExpiries, e.packed[len(durations):])
	number(e, semconv.AttrExpirySample, v.Sample.Keys)
	number(e, semconv.AttrExpiryOf, v.Sample.Population)
	e.real(semconv.AttrExpiryWeight, v.Sample.Weight)
	number(e, semconv.AttrStores, v.Stores)
	number(e, semconv.AttrEarly, v.Early)
	e.retries(v.Retries)
	number(e, semconv.AttrRunning, v.Running)
	number(e, semconv.AttrWaiting, v.Waiting)
}

// server writes what probes tell of a cache server. Hot keys are JSON: there are
// few of them, once a second.
func (e *Encoder) server(v *signal.Vitals) {
	number(e, semconv.AttrFlushes, v.Server.Flushes)
	number(e, semconv.AttrSets, v.Server.Sets)
	number(e, semconv.AttrBlocked, v.Server.Blocked)
	number(e, semconv.AttrServerKeys, v.Server.Keys)
	e.flag(semconv.AttrProbe, v.Probe)
	e.flag(semconv.AttrProbeWatch, v.Watch)
	number(e, semconv.AttrUnknown, v.Unknown)
	if len(v.Hot) == 0 {
		return
	}
	// Only a share that is no number cannot be marshalled; then there is nothing to tell.
	if b, err := json.Marshal(v.Hot); err == nil {
		e.text(semconv.AttrHotKeys, string(b))
	}
}

func (e *Encoder) claims(c *signal.Claims) {
	e.text(semconv.AttrProtection, strings.Join(c.Protection, ","))
	number(e, semconv.AttrClaimTimeout, c.Timeout)
	number(e, semconv.AttrClaimAttempts, c.Attempts)
	e.real(semconv.AttrClaimBeta, c.Beta)
	e.real(semconv.AttrClaimAhead, c.RefreshAhead)
	number(e, semconv.AttrClaimClamp, c.Clamp)
	number(e, semconv.AttrClaimLockTTL, c.LockTTL)
	number(e, semconv.AttrClaimStaleFor, c.StaleFor)
}

func (e *Encoder) retries(r signal.Retries) {
	number(e, semconv.AttrRequests, r.Requests)
	number(e, semconv.AttrAttempts, r.Attempts)
}

func (e *Encoder) waste(duplicates, whileFresh, coalesced uint64, busy time.Duration) {
	number(e, semconv.AttrDuplicates, duplicates)
	number(e, semconv.AttrWhileFresh, whileFresh)
	number(e, semconv.AttrCoalesced, coalesced)
	number(e, semconv.AttrBusy, busy)
}

func (e *Encoder) lookups(l signal.Lookups) {
	number(e, semconv.AttrHits, l.Hits)
	number(e, semconv.AttrMisses, l.Misses)
	number(e, semconv.AttrStale, l.Stale)
	number(e, semconv.AttrErrors, l.Errors)
}

func (e *Encoder) recomputes(r *signal.Recomputes) {
	for c := range r.Started {
		number(e, startedKeys[c], r.Started[c])
		for o := range r.Ended[c] {
			number(e, endedKeys[c][o], r.Ended[c][o])
		}
	}
}

func (e *Encoder) stores(s *signal.Stores) {
	number(e, semconv.AttrStores, s.Count)
	number(e, semconv.AttrStoresNoExpiry, s.NoExpiry)
	number(e, semconv.AttrStoresStale, s.Stale)
	number(e, semconv.AttrExpiryMin, s.ExpiryMin)
	number(e, semconv.AttrExpiryMax, s.ExpiryMax)
	number(e, semconv.AttrTTLMin, s.TTLMin)
	number(e, semconv.AttrTTLMax, s.TTLMax)
	number(e, semconv.AttrVersionOldest, s.Versions.Oldest)
	number(e, semconv.AttrVersionOldAt, s.Versions.OldestAt)
	number(e, semconv.AttrVersionNewest, s.Versions.Newest)
	number(e, semconv.AttrVersionNewAt, s.Versions.NewestAt)
}

func (e *Encoder) locks(l *signal.Locks) {
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
	number(e, semconv.AttrLockWaiting, l.Waiting)
	number(e, semconv.AttrLockHeld, l.Held)
	number(e, semconv.AttrLockSince, l.HeldSince)
}

// shares writes JSON: only a window that was merged has shares, so this is rare,
// and their names are text of any length.
func (e *Encoder) shares(ss []signal.Share) {
	if len(ss) == 0 {
		return
	}
	// Marshalling strings and numbers cannot fail.
	b, _ := json.Marshal(ss)
	e.text(semconv.AttrShares, string(b))
}

// text leaves bytes that are not UTF-8 out: protobuf refuses a whole request for
// one of them.
func (e *Encoder) text(key, v string) {
	if v != "" {
		e.attrs = append(e.attrs, attribute.String(key, ValidText(v)))
	}
}

func (e *Encoder) bytes(key string, v []byte) {
	if len(v) > 0 {
		e.attrs = append(e.attrs, attribute.ByteSlice(key, v))
	}
}

func (e *Encoder) real(key string, v float64) {
	if v > 0 {
		e.attrs = append(e.attrs, attribute.Float64(key, v))
	}
}

func (e *Encoder) flag(key string, v bool) {
	if v {
		e.attrs = append(e.attrs, attribute.Bool(key, true))
	}
}

func number[T ~int | ~int64 | ~uint16 | ~uint32 | ~uint64](e *Encoder, key string, v T) {
	if v <= 0 {
		return
	}
	n := int64(math.MaxInt64)
	if uint64(v) < math.MaxInt64 {
		n = int64(v)
	}
	e.attrs = append(e.attrs, attribute.Int64(key, n))
}

// ValidText returns v with what is not UTF-8 replaced.
func ValidText(v string) string { return strings.ToValidUTF8(v, "\uFFFD") }

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
