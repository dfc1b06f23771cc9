package ingest

import (
	"cmp"
	"encoding/json"
	"maps"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// MaxSpan is the longest span a window may cover. One source's covers at most
// [signal.MaxSpan]; a merged one is longer.
const MaxSpan = time.Minute

const (
	maxShares       = 10_000
	maxSharesText   = 4 << 20
	maxIntervalText = 256 << 10 // more than MaxFleetIntervals can take
)

// windowDraft is a window in the making, with what needs all of it to be read.
type windowDraft struct {
	*signal.Window
	keyed     bool
	intervals []byte // relative to Start
	shares    string
}

type windowField = field[windowDraft]

var sourceFields = map[string]field[signal.Source]{
	semconv.ServiceName:       name(maxSourceText, func(s *signal.Source) *string { return &s.Service }),
	semconv.ServiceInstanceID: name(maxSourceText, func(s *signal.Source) *string { return &s.Instance }),
	semconv.ServiceVersion:    name(maxSourceText, func(s *signal.Source) *string { return &s.Build }),
}

// windowFields says where each attribute of a window goes.
var windowFields = func() map[string]windowField {
	all := recomputeFields(func(w *windowDraft) *signal.Recomputes { return &w.Recomputes })
	for _, m := range []map[string]windowField{headFields, activityFields, lockFields} {
		maps.Copy(all, m)
	}
	return all
}()

var headFields = map[string]windowField{
	semconv.AttrCache:      name(maxCacheText, func(w *windowDraft) *string { return &w.Cache }),
	semconv.AttrKeyID:      setKeyID,
	semconv.AttrKeyGroup:   name(maxGroupText, func(w *windowDraft) *string { return &w.Key.Group }),
	semconv.AttrKeyText:    octets(maxKeyText, func(w *windowDraft, b []byte) { w.Key.Text = string(b) }),
	semconv.AttrGeneration: name(maxGeneration, func(w *windowDraft) *string { return &w.Generation }),
	semconv.AttrStart:      integer(func(w *windowDraft) *signal.Nanos { return &w.Start }),
	semconv.AttrEnd:        integer(func(w *windowDraft) *signal.Nanos { return &w.End }),
	semconv.AttrUnknown:    integer(func(w *windowDraft) *signal.Unknown { return &w.Unknown }),
	semconv.AttrIntervals:  octets(maxIntervalText, func(w *windowDraft, b []byte) { w.intervals = b }),
	semconv.AttrSampled:    flag(func(w *windowDraft) *bool { return &w.Sampled }),
	semconv.AttrShares:     document(maxSharesText, func(w *windowDraft) *string { return &w.shares }),
}

var activityFields = map[string]windowField{
	semconv.AttrHits:           integer(func(w *windowDraft) *uint64 { return &w.Lookups.Hits }),
	semconv.AttrMisses:         integer(func(w *windowDraft) *uint64 { return &w.Lookups.Misses }),
	semconv.AttrStale:          integer(func(w *windowDraft) *uint64 { return &w.Lookups.Stale }),
	semconv.AttrErrors:         integer(func(w *windowDraft) *uint64 { return &w.Lookups.Errors }),
	semconv.AttrMissPeak:       integer(func(w *windowDraft) *uint32 { return &w.MissPeak }),
	semconv.AttrInFlightPeak:   integer(func(w *windowDraft) *uint32 { return &w.InFlightPeak }),
	semconv.AttrDuplicates:     integer(func(w *windowDraft) *uint64 { return &w.Duplicates }),
	semconv.AttrWhileFresh:     integer(func(w *windowDraft) *uint64 { return &w.WhileFresh }),
	semconv.AttrCoalesced:      integer(func(w *windowDraft) *uint64 { return &w.Coalesced }),
	semconv.AttrBusy:           integer(func(w *windowDraft) *time.Duration { return &w.Busy }),
	semconv.AttrBusyMax:        integer(func(w *windowDraft) *time.Duration { return &w.BusyMax }),
	semconv.AttrStores:         integer(func(w *windowDraft) *uint64 { return &w.Stores.Count }),
	semconv.AttrStoresNoExpiry: integer(func(w *windowDraft) *uint64 { return &w.Stores.NoExpiry }),
	semconv.AttrExpiryMin:      integer(func(w *windowDraft) *signal.Nanos { return &w.Stores.ExpiryMin }),
	semconv.AttrExpiryMax:      integer(func(w *windowDraft) *signal.Nanos { return &w.Stores.ExpiryMax }),
	semconv.AttrTTLMin:         integer(func(w *windowDraft) *time.Duration { return &w.Stores.TTLMin }),
	semconv.AttrTTLMax:         integer(func(w *windowDraft) *time.Duration { return &w.Stores.TTLMax }),
	semconv.AttrStoresStale:    integer(func(w *windowDraft) *uint64 { return &w.Stores.Stale }),
	semconv.AttrVersionOldest:  integer(func(w *windowDraft) *uint64 { return &w.Stores.Versions.Oldest }),
	semconv.AttrVersionOldAt:   integer(func(w *windowDraft) *signal.Nanos { return &w.Stores.Versions.OldestAt }),
	semconv.AttrVersionNewest:  integer(func(w *windowDraft) *uint64 { return &w.Stores.Versions.Newest }),
	semconv.AttrVersionNewAt:   integer(func(w *windowDraft) *signal.Nanos { return &w.Stores.Versions.NewestAt }),
	semconv.AttrInvalidatedAt:  integer(func(w *windowDraft) *signal.Nanos { return &w.InvalidatedAt }),
	semconv.AttrInvalidations:  integer(func(w *windowDraft) *uint64 { return &w.Invalidations }),
	semconv.AttrEarly:          integer(func(w *windowDraft) *uint64 { return &w.Early.Count }),
	semconv.AttrEarlyLeadSum:   integer(func(w *windowDraft) *time.Duration { return &w.Early.LeadSum }),
	semconv.AttrEarlyLeadMax:   integer(func(w *windowDraft) *time.Duration { return &w.Early.LeadMax }),
	semconv.AttrEarlyDeltaMax:  integer(func(w *windowDraft) *time.Duration { return &w.Early.DeltaMax }),
	semconv.AttrRequests:       integer(func(w *windowDraft) *uint64 { return &w.Retries.Requests }),
	semconv.AttrAttempts:       integer(func(w *windowDraft) *uint64 { return &w.Retries.Attempts }),
}

var lockFields = map[string]windowField{
	semconv.AttrLockAttempts: integer(func(w *windowDraft) *uint64 { return &w.Locks.Attempts }),
	semconv.AttrLockAcquired: integer(func(w *windowDraft) *uint64 { return &w.Locks.Acquired }),
	semconv.AttrLockWaits:    integer(func(w *windowDraft) *uint64 { return &w.Locks.Waits }),
	semconv.AttrLockWaitSum:  integer(func(w *windowDraft) *time.Duration { return &w.Locks.WaitSum }),
	semconv.AttrLockWaitMax:  integer(func(w *windowDraft) *time.Duration { return &w.Locks.WaitMax }),
	semconv.AttrLockWaitPeak: integer(func(w *windowDraft) *uint32 { return &w.Locks.WaitPeak }),
	semconv.AttrLockHolds:    integer(func(w *windowDraft) *uint64 { return &w.Locks.Holds }),
	semconv.AttrLockHoldSum:  integer(func(w *windowDraft) *time.Duration { return &w.Locks.HoldSum }),
	semconv.AttrLockHoldMax:  integer(func(w *windowDraft) *time.Duration { return &w.Locks.HoldMax }),
	semconv.AttrLockLost:     integer(func(w *windowDraft) *uint64 { return &w.Locks.Lost }),
	semconv.AttrLockWaiting:  integer(func(w *windowDraft) *uint32 { return &w.Locks.Waiting }),
	semconv.AttrLockHeld:     integer(func(w *windowDraft) *uint32 { return &w.Locks.Held }),
	semconv.AttrLockSince:    integer(func(w *windowDraft) *signal.Nanos { return &w.Locks.HeldSince }),
}

// recomputeFields makes the fields that have a cause, or a cause and an outcome,
// in their name.
func recomputeFields[T any](at func(*T) *signal.Recomputes) map[string]field[T] {
	fields := map[string]field[T]{}
	for c := range signal.NumCauses {
		fields[semconv.AttrStarted+"."+c.String()] = integer(func(dst *T) *uint64 { return &at(dst).Started[c] })
		for o := range signal.NumOutcomes {
			fields[semconv.AttrEnded+"."+c.String()+"."+o.String()] = integer(func(dst *T) *uint64 { return &at(dst).Ended[c][o] })
		}
	}
	return fields
}

func setKeyID(w *windowDraft, v *commonpb.AnyValue) string {
	s, ok := v.GetValue().(*commonpb.AnyValue_StringValue)
	if !ok {
		return ReasonWrongType
	}
	if w.Key.ID.UnmarshalText([]byte(s.StringValue)) != nil {
		return ReasonBadText
	}
	w.keyed = true
	return ""
}

// finish checks w as a whole and unpacks what is packed in it.
func (w *windowDraft) finish() (reason string) {
	switch {
	case w.Service == "" && w.shares == "":
		return ReasonNoService
	case w.Cache == "":
		return ReasonNoCache
	case !w.keyed:
		return ReasonNoKey
	case w.Start == 0 || w.End == 0:
		return ReasonNoTime
	case w.End < w.Start || w.End.Sub(w.Start) > MaxSpan:
		return ReasonBadSpan
	}
	var err error
	if w.Intervals, err = signal.ParseIntervals(w.intervals, w.Start, signal.MaxFleetIntervals); err != nil {
		return ReasonBadPacked
	}
	if w.shares != "" {
		return w.parseShares()
	}
	return ""
}

// parseShares insists on their order, which merging relies on.
func (w *windowDraft) parseShares() (reason string) {
	if json.Unmarshal([]byte(w.shares), &w.Shares) != nil || len(w.Shares) == 0 || len(w.Shares) > maxShares {
		return ReasonBadShares
	}
	for i, s := range w.Shares {
		if s.Service == "" || i > 0 && compareSources(w.Shares[i-1].Source, s.Source) >= 0 {
			return ReasonBadShares
		}
		for _, text := range []string{s.Service, s.Instance, s.Build} {
			if reason := checkName(text, maxSourceText); reason != "" {
				return reason
			}
		}
	}
	return ""
}

func compareSources(a, b signal.Source) int {
	return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Build, b.Build))
}
