package memcached

import (
	"cmp"
	"strconv"
	"strings"
)

// version is that of a server. The zero version is older than any.
type version [3]int

// parseVersion reads a version such as 1.6.18 or 1.6.39_beta; what it cannot
// read is zero.
func parseVersion(s string) version {
	var v version
	for i := range v {
		digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
		n, err := strconv.Atoi(s[:digits])
		if err != nil {
			break
		}
		v[i] = n
		next, ok := strings.CutPrefix(s[digits:], ".")
		if !ok {
			break
		}
		s = next
	}
	return v
}

// before reports whether v is older than o.
func (v version) before(o version) bool {
	return cmp.Or(cmp.Compare(v[0], o[0]), cmp.Compare(v[1], o[1]), cmp.Compare(v[2], o[2])) < 0
}
