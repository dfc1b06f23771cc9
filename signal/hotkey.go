package signal

import (
	"cmp"
	"slices"
	"strings"
)

// MaxHotKeys is the most hot keys one source reports, or a merge keeps.
const MaxHotKeys = 16

// HotKey is a key that a cache server says is used more than others.
type HotKey struct {
	ID    KeyID  `json:"id"`
	Group string `json:"group,omitempty"`
	// Share is the part of all use of the server that is the key's, from 0 to
	// 1, as the source estimates it. What it counts as use (reads, time,
	// bytes) depends on the server.
	Share float64 `json:"share"`
	// Expiry is when its value expires, on the source's clock; zero if never,
	// or not known.
	Expiry Nanos `json:"expiry,omitempty"`
}

// MergeHotKeys returns the hottest of the keys in a and b, at most
// [MaxHotKeys], the hottest first. A key in both is there once, as it is where
// it is hotter. It changes neither.
func MergeHotKeys(a, b []HotKey) []HotKey {
	all := append(append(make([]HotKey, 0, len(a)+len(b)), a...), b...)
	slices.SortFunc(all, func(x, y HotKey) int {
		return cmp.Or(cmp.Compare(x.ID, y.ID), cmp.Compare(y.Share, x.Share), cmp.Compare(y.Expiry, x.Expiry), strings.Compare(x.Group, y.Group))
	})
	all = slices.CompactFunc(all, func(x, y HotKey) bool { return x.ID == y.ID })
	slices.SortFunc(all, func(x, y HotKey) int {
		return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(x.ID, y.ID))
	})
	return all[:min(len(all), MaxHotKeys):min(len(all), MaxHotKeys)]
}
