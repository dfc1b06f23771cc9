package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// versions is what is remembered of the versions of a key's values: which were
// written when, of the latest few. Windows come late and in any order; what was
// overtaken is the same in the end.
type versions struct {
	written []written    // in order of at, then version
	gone    signal.Nanos // when the key was last invalidated
}

// maxWritten is how many are remembered.
const maxWritten = 16

// written is a value that was stored with a version.
type written struct {
	version uint64
	at      signal.Nanos
	until   signal.Nanos  // when it expires; zero if never, or unknown
	offset  time.Duration // that at was put right by
	counted bool          // it was found to be overtaken
}

// add takes in what a window tells whose clock was put right by offset.
func (v *versions) add(w *signal.Window, offset time.Duration) {
	v.gone = max(v.gone, w.InvalidatedAt)
	x := &w.Stores.Versions
	v.note(written{version: x.Oldest, at: x.OldestAt, until: w.Stores.ExpiryMax, offset: offset.Abs()})
	v.note(written{version: x.Newest, at: x.NewestAt, until: w.Stores.ExpiryMax, offset: offset.Abs()})
}

// note remembers x, unless it is remembered or longer ago than all that are.
func (v *versions) note(x written) {
	if x.version == 0 || x.at == 0 {
		return
	}
	i, found := slices.BinarySearchFunc(v.written, x, func(a, b written) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.version, b.version))
	})
	if found {
		return
	}
	v.written = slices.Insert(v.written, i, x)
	if len(v.written) > maxWritten {
		v.written = slices.Delete(v.written, 0, 1)
	}
}

// suspicious reports whether some value seems to be overtaken.
func (v *versions) suspicious() bool {
	return slices.ContainsFunc(v.written, func(x written) bool { return !x.counted && v.overtaken(&x) })
}

// count returns how many values were written over newer ones that have not been
// counted before.
func (v *versions) count() uint64 {
	var n uint64
	for i := range v.written {
		if x := &v.written[i]; !x.counted && v.overtaken(x) {
			x.counted = true
			n++
		}
	}
	return n
}

// overtaken reports whether x was written over a newer value that was still
// there. Instants that are closer than clocks are right prove nothing.
func (v *versions) overtaken(x *written) bool {
	return slices.ContainsFunc(v.written, func(newer written) bool {
		apart := slack + max(x.offset, newer.offset)
		return newer.version > x.version && x.at.Sub(newer.at) > apart && v.holds(&newer, x.at)
	})
}

// holds reports whether the value x would still have been there at at, had
// nobody written another. After a deletion versions may begin anew.
func (v *versions) holds(x *written, at signal.Nanos) bool {
	invalidated := x.at < v.gone && v.gone <= at
	return !invalidated && (x.until == 0 || at < x.until)
}
