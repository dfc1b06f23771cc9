package incident

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// subject is what a finding is about. At most one holds for each.
type subject struct {
	detector, service, cache string
	key                      signal.KeyID
}

func subjectOf(f *detectors.Finding) subject {
	return subject{f.Detector, f.Service, f.Cache, f.Key.ID}
}

func (i *Incident) subject() subject {
	return subject{i.Detector, i.Service, i.Cache, i.Key.ID}
}

func compareSubjects(a, b subject) int {
	return cmp.Or(
		strings.Compare(a.detector, b.detector),
		strings.Compare(a.service, b.service),
		strings.Compare(a.cache, b.cache),
		cmp.Compare(a.key, b.key))
}

// idEncoding has no letters that are mistaken for digits (Crockford's
// alphabet), because people read IDs to each other.
var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// idLength is in characters of 5 bits: of 60 bits, 10,000 incidents share one
// by chance once in 10^10 times, and then newID is asked for another.
const idLength = 12

// newID names the incident of s that began at onset. It depends on nothing
// else, so a replay of the same ticks finds the same incidents under the same
// names. taken reports whether an ID belongs to somebody already.
func newID(s subject, onset signal.Nanos, taken func(string) bool) string {
	for attempt := 0; ; attempt++ {
		var text []byte
		for _, part := range []string{s.detector, s.service, s.cache, s.key.String(),
			strconv.FormatInt(int64(onset), 10), strconv.Itoa(attempt)} {
			text = strconv.AppendQuote(text, part) // so that no two lists of parts read the same
		}
		sum := sha256.Sum256(text)
		if id := idEncoding.EncodeToString(sum[:])[:idLength]; !taken(id) {
			return id
		}
	}
}
