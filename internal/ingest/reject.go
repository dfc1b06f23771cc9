package ingest

import (
	"fmt"
	"strings"
)

// Reasons for which a whole request is refused.
const (
	ReasonTooLarge    = "too_large"   // longer than Options.MaxBody, made of too many messages or too deep
	ReasonMalformed   = "malformed"   // not what its content type says, cut short, or too slow
	ReasonUnsupported = "unsupported" // another method, content type or compression
	ReasonBusy        = "busy"        // too many requests at once
)

// Reasons for which one record is refused.
const (
	ReasonNotOurs    = "not_ours"     // another event, or no event: ignored, not an error of the sender
	ReasonNoService  = "no_service"   // the resource has no service.name
	ReasonNoCache    = "no_cache"     // no cache.name
	ReasonNoKey      = "no_key"       // no stampede.key.id
	ReasonNoTime     = "no_time"      // no start, end or time of making
	ReasonWrongType  = "wrong_type"   // an attribute is of another type than its name says
	ReasonOutOfRange = "out_of_range" // a negative number, or one too big for what it counts
	ReasonTooLong    = "too_long"     // a text is longer than allowed
	ReasonBadText    = "bad_text"     // a name is not UTF-8 or holds control characters, or a key id is no hash
	ReasonBadSpan    = "bad_span"     // the end is before the start, or more than MaxSpan after it
	ReasonBadPacked  = "bad_packed"   // what is packed into bytes is damaged or too much
	ReasonBadShares  = "bad_shares"   // the shares of a merged window are damaged, out of order or too many
)

// Reasons lists every reason there is, in order.
func Reasons() []string {
	return []string{
		ReasonBadPacked, ReasonBadShares, ReasonBadSpan, ReasonBadText, ReasonBusy, ReasonMalformed, ReasonNoCache, ReasonNoKey,
		ReasonNoService, ReasonNoTime, ReasonNotOurs, ReasonOutOfRange, ReasonTooLarge, ReasonTooLong, ReasonUnsupported, ReasonWrongType,
	}
}

// Reject says how many records were refused for one reason.
type Reject struct {
	Reason  string
	Records int
}

// rejects counts by reason, in order of first appearance. There are few, so a
// slice does.
type rejects []Reject

func (rs *rejects) add(reason string) {
	for i := range *rs {
		if (*rs)[i].Reason == reason {
			(*rs)[i].Records++
			return
		}
	}
	*rs = append(*rs, Reject{reason, 1})
}

// blame returns how many records were refused that their sender should know of,
// and says why. A record that is not ours is none: a Collector may send us all
// its logs, and should not be told at each request that most were ignored.
func (rs rejects) blame() (n int, why string) {
	var parts []string
	for _, r := range rs {
		if r.Reason != ReasonNotOurs {
			n += r.Records
			parts = append(parts, fmt.Sprintf("%s: %d", r.Reason, r.Records))
		}
	}
	return n, strings.Join(parts, ", ")
}
