package ingest

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// vitalsDraft is vitals in the making, with what needs all of it to be read.
type vitalsDraft struct {
	*signal.Vitals
	durations, expiries []byte
	protection, hot     string
}

// Bounds on what is packed, which is more than anybody can mean.
const (
	maxDurationsText  = 2 << 10
	maxExpiriesText   = 64 << 10
	maxHotText        = 16 << 10
	maxProtectionText = 200
)

// vitalsFields says where each attribute of vitals goes.
var vitalsFields = func() map[string]field[vitalsDraft] {
	all := recomputeFields(func(v *vitalsDraft) *signal.Recomputes { return &v.Recomputes })
	for _, m := range []map[string]field[vitalsDraft]{stateFields, workFields, claimFields, probeFields} {
		maps.Copy(all, m)
	}
	return all
}()

var workFields = map[string]field[vitalsDraft]{
	semconv.AttrDuplicates: integer(func(v *vitalsDraft) *uint64 { return &v.Duplicates }),
	semconv.AttrWhileFresh: integer(func(v *vitalsDraft) *uint64 { return &v.WhileFresh }),
	semconv.AttrCoalesced:  integer(func(v *vitalsDraft) *uint64 { return &v.Coalesced }),
	semconv.AttrBusy:       integer(func(v *vitalsDraft) *time.Duration { return &v.Busy }),
	semconv.AttrStores:     integer(func(v *vitalsDraft) *uint64 { return &v.Stores }),
	semconv.AttrEarly:      integer(func(v *vitalsDraft) *uint64 { return &v.Early }),
	semconv.AttrRequests:   integer(func(v *vitalsDraft) *uint64 { return &v.Retries.Requests }),
	semconv.AttrAttempts:   integer(func(v *vitalsDraft) *uint64 { return &v.Retries.Attempts }),
	semconv.AttrRunning:    integer(func(v *vitalsDraft) *uint32 { return &v.Running }),
	semconv.AttrWaiting:    integer(func(v *vitalsDraft) *uint32 { return &v.Waiting }),
	semconv.AttrDurations:  octets(maxDurationsText, func(v *vitalsDraft, b []byte) { v.durations = b }),
	semconv.AttrExpiries:   octets(maxExpiriesText, func(v *vitalsDraft, b []byte) { v.expiries = b }),
}

// probeFields are those that only probes have something to say in.
var probeFields = map[string]field[vitalsDraft]{
	semconv.AttrExpirySample: integer(func(v *vitalsDraft) *uint64 { return &v.Sample.Keys }),
	semconv.AttrExpiryOf:     integer(func(v *vitalsDraft) *uint64 { return &v.Sample.Population }),
	semconv.AttrExpiryWeight: real(func(v *vitalsDraft) *float64 { return &v.Sample.Weight }),
	semconv.AttrHotKeys:      document(maxHotText, func(v *vitalsDraft) *string { return &v.hot }),
	semconv.AttrFlushes:      integer(func(v *vitalsDraft) *uint64 { return &v.Server.Flushes }),
	semconv.AttrSets:         integer(func(v *vitalsDraft) *uint64 { return &v.Server.Sets }),
	semconv.AttrBlocked:      integer(func(v *vitalsDraft) *uint32 { return &v.Server.Blocked }),
	semconv.AttrServerKeys:   integer(func(v *vitalsDraft) *uint64 { return &v.Server.Keys }),
	semconv.AttrProbe:        flag(func(v *vitalsDraft) *bool { return &v.Probe }),
	semconv.AttrProbeWatch:   flag(func(v *vitalsDraft) *bool { return &v.Watch }),
	semconv.AttrUnknown:      integer(func(v *vitalsDraft) *signal.Unknown { return &v.Unknown }),
}

var claimFields = map[string]field[vitalsDraft]{
	semconv.AttrProtection:    name(maxProtectionText, func(v *vitalsDraft) *string { return &v.protection }),
	semconv.AttrClaimTimeout:  integer(func(v *vitalsDraft) *time.Duration { return &v.Claims.Timeout }),
	semconv.AttrClaimAttempts: integer(func(v *vitalsDraft) *int { return &v.Claims.Attempts }),
	semconv.AttrClaimBeta:     real(func(v *vitalsDraft) *float64 { return &v.Claims.Beta }),
	semconv.AttrClaimAhead:    real(func(v *vitalsDraft) *float64 { return &v.Claims.RefreshAhead }),
	semconv.AttrClaimClamp:    integer(func(v *vitalsDraft) *time.Duration { return &v.Claims.Clamp }),
	semconv.AttrClaimLockTTL:  integer(func(v *vitalsDraft) *time.Duration { return &v.Claims.LockTTL }),
	semconv.AttrClaimStaleFor: integer(func(v *vitalsDraft) *time.Duration { return &v.Claims.StaleFor }),
}

var stateFields = map[string]field[vitalsDraft]{
	semconv.AttrCache:        name(maxCacheText, func(v *vitalsDraft) *string { return &v.Cache }),
	semconv.AttrAt:           integer(func(v *vitalsDraft) *signal.Nanos { return &v.At }),
	semconv.AttrUptime:       integer(func(v *vitalsDraft) *time.Duration { return &v.Uptime }),
	semconv.AttrHits:         integer(func(v *vitalsDraft) *uint64 { return &v.Lookups.Hits }),
	semconv.AttrMisses:       integer(func(v *vitalsDraft) *uint64 { return &v.Lookups.Misses }),
	semconv.AttrStale:        integer(func(v *vitalsDraft) *uint64 { return &v.Lookups.Stale }),
	semconv.AttrErrors:       integer(func(v *vitalsDraft) *uint64 { return &v.Lookups.Errors }),
	semconv.AttrTracked:      integer(func(v *vitalsDraft) *uint64 { return &v.Tracked }),
	semconv.AttrOverflowed:   integer(func(v *vitalsDraft) *uint64 { return &v.Overflowed }),
	semconv.AttrDropped:      integer(func(v *vitalsDraft) *uint64 { return &v.Dropped }),
	semconv.AttrExpiredKeys:  integer(func(v *vitalsDraft) *uint64 { return &v.Expired }),
	semconv.AttrEvictedKeys:  integer(func(v *vitalsDraft) *uint64 { return &v.Evicted }),
	semconv.AttrOrigin:       name(maxCacheText, func(v *vitalsDraft) *string { return &v.Origin.Name }),
	semconv.AttrOriginBudget: integer(func(v *vitalsDraft) *int { return &v.Origin.Budget }),
	semconv.AttrOriginTakes:  integer(func(v *vitalsDraft) *time.Duration { return &v.Origin.Recompute }),
	semconv.AttrClosing:      flag(func(v *vitalsDraft) *bool { return &v.Closing }),
}

// finish checks v as a whole and unpacks what is packed in it.
func (v *vitalsDraft) finish() (reason string) {
	switch {
	case v.Service == "":
		return ReasonNoService
	case v.Cache == "":
		return ReasonNoCache
	case v.At == 0:
		return ReasonNoTime
	}
	if v.protection != "" {
		v.Claims.Protection = strings.Split(v.protection, ",")
	}
	var err, other error
	v.Durations, err = signal.ParseDurations(v.durations)
	v.Expiries, other = signal.ParseExpiries(v.expiries, v.At)
	if err != nil || other != nil {
		return ReasonBadPacked
	}
	if v.hot != "" {
		return v.parseHot()
	}
	return ""
}

// parseHot reads the hot keys, whose order and shares merging relies on.
func (v *vitalsDraft) parseHot() (reason string) {
	if json.Unmarshal([]byte(v.hot), &v.Hot) != nil || len(v.Hot) == 0 || len(v.Hot) > signal.MaxHotKeys {
		return ReasonBadPacked
	}
	for i, k := range v.Hot {
		switch {
		case k.Share < 0 || k.Share > 1 || k.Expiry < 0:
			return ReasonOutOfRange
		case i > 0 && k.Share > v.Hot[i-1].Share:
			return ReasonBadPacked
		}
		if reason := checkName(k.Group, maxGroupText); reason != "" {
			return reason
		}
	}
	return ""
}
