package ingest

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// vitalsDraft is vitals in the making.
type vitalsDraft struct{ *signal.Vitals }

// vitalsFields says where each attribute of vitals goes.
var vitalsFields = map[string]field[vitalsDraft]{
	semconv.AttrCache:        name(maxCacheText, func(v *vitalsDraft) *string { return &v.Cache }),
	semconv.AttrAt:           integer(func(v *vitalsDraft) *signal.Nanos { return &v.At }),
	semconv.AttrUptime:       integer(func(v *vitalsDraft) *time.Duration { return &v.Uptime }),
	semconv.AttrHits:         integer(func(v *vitalsDraft) *uint64 { return &v.Lookups.Hits }),
	semconv.AttrMisses:       integer(func(v *vitalsDraft) *uint64 { return &v.Lookups.Misses }),
	semconv.AttrStale:        integer(func(v *vitalsDraft) *uint64 { return &v.Lookups.Stale }),
	semconv.AttrErrors:       integer(func(v *vitalsDraft) *uint64 { return &v.Lookups.Errors }),
	semconv.AttrRecomputes:   integer(func(v *vitalsDraft) *uint64 { return &v.Recomputes }),
	semconv.AttrTracked:      integer(func(v *vitalsDraft) *uint64 { return &v.Tracked }),
	semconv.AttrOverflowed:   integer(func(v *vitalsDraft) *uint64 { return &v.Overflowed }),
	semconv.AttrDropped:      integer(func(v *vitalsDraft) *uint64 { return &v.Dropped }),
	semconv.AttrExpiredKeys:  integer(func(v *vitalsDraft) *uint64 { return &v.Expired }),
	semconv.AttrEvictedKeys:  integer(func(v *vitalsDraft) *uint64 { return &v.Evicted }),
	semconv.AttrOrigin:       name(maxCacheText, func(v *vitalsDraft) *string { return &v.Origin.Name }),
	semconv.AttrOriginBudget: integer(func(v *vitalsDraft) *int { return &v.Origin.Budget }),
	semconv.AttrClosing:      flag(func(v *vitalsDraft) *bool { return &v.Closing }),
}

// check checks v as a whole.
func (v *vitalsDraft) check() (reason string) {
	switch {
	case v.Service == "":
		return ReasonNoService
	case v.Cache == "":
		return ReasonNoCache
	case v.At == 0:
		return ReasonNoTime
	}
	return ""
}
