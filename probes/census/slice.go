package census

import (
	"cmp"
	"math"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// slice is what was looked at in one go.
type slice struct {
	at     signal.Nanos // when it ended
	looked uint64       // keys, those without an expiry included
	cells  []cell       // in order of at, then group, once compact
	packed int          // how many of cells are compact, while it is open
}

// cell counts keys of one group that expire in one second.
type cell struct {
	at    uint32 // seconds since 1970
	keys  uint32
	group uint16 // its number
}

// minCells is how many cells are taken in before they are worth adding up.
const minCells = 4096

// count adds a cell. Equal cells are added up whenever there are twice as many
// as after the last time, so that memory follows the different ones.
func (s *slice) count(c cell) {
	s.cells = append(s.cells, c)
	if len(s.cells) >= max(minCells, 2*s.packed) {
		s.compact()
	}
}

// compact adds equal cells up.
func (s *slice) compact() {
	slices.SortFunc(s.cells, compareCells)
	out := s.cells[:0]
	for _, c := range s.cells {
		if n := len(out); n > 0 && compareCells(out[n-1], c) == 0 {
			out[n-1].keys += min(c.keys, math.MaxUint32-out[n-1].keys)
			continue
		}
		out = append(out, c)
	}
	s.cells, s.packed = out, len(out)
}

func compareCells(a, b cell) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.group, b.group))
}
