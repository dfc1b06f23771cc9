package web

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// hotRow is one of the keys that cache servers say are used most.
type hotRow struct {
	ID, Group, Cache string
	Share, Expires   string
}

// hotRows returns the most used keys of a cache, the most used first.
func hotRows(c *signal.CacheState, now time.Time) []hotRow {
	var rows []hotRow
	for _, k := range c.Hot[:min(len(c.Hot), maxHot)] {
		r := hotRow{
			ID: k.ID.String(), Group: shown(k.Group), Cache: shown(c.Cache),
			Share: digits(100*k.Share, 2) + " %", Expires: "never, or not known",
		}
		switch left := k.Expiry.Sub(signal.At(now)); {
		case k.Expiry == 0:
		case left <= 0:
			r.Expires = "by now"
		default:
			r.Expires = "in " + span(left)
		}
		rows = append(rows, r)
	}
	return rows
}
