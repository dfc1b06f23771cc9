package incident

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

// Stats are counts since the manager was made, and a count of what is open now.
type Stats struct {
	// Series has one entry for each set of labels seen so far, sorted; also
	// for those with nothing open, so that their gauge goes to zero and does
	// not vanish. There are at most [MaxSeries], and one for each detector and
	// severity beyond: there Service is empty and Cache is "other".
	Series []Series
	// Reopened counts reopenings, Closed closings of any reason. Of those,
	// Unconfirmed had not been confirmed after a restart, and Absorbed turned
	// out to be part of another. Displaced counts findings that made way for
	// something worse.
	Reopened, Closed, Unconfirmed, Absorbed, Displaced uint64
	// Resumed counts incidents that were open in the state file.
	Resumed uint64
	// Overflowed counts findings turned away because too many held. One that
	// lasts is turned away at each tick.
	Overflowed uint64
	// EvidenceDropped counts evidence that was not a finite number.
	EvidenceDropped uint64
	// Saves and SaveFailures count writes of the state file. SetAside counts
	// state files that could not be used and were renamed.
	Saves, SaveFailures, SetAside uint64
}

// Labels are what incidents are counted by: never a key.
type Labels struct {
	Detector, Service, Cache string
	Severity                 detectors.Severity
}

// Series is how many incidents with the same labels are open now, and how many
// were opened with them so far.
type Series struct {
	Labels
	Open   int
	Opened uint64
}

// MaxSeries bounds [Stats.Series]: the names of services and caches come from
// the network.
const MaxSeries = 4096

// count counts inc if it was just opened, and makes sure that its series
// exists.
func (b *book) count(inc *Incident, opened bool) {
	l := b.labels(inc)
	n := b.opened[l]
	if opened {
		n++
	}
	b.opened[l] = n
}

// labels returns the labels inc counts under.
func (b *book) labels(inc *Incident) Labels {
	l := Labels{inc.Detector, inc.Service, inc.Cache, inc.Severity}
	if _, known := b.opened[l]; !known && len(b.opened) >= MaxSeries {
		l.Service, l.Cache = "", "other"
	}
	return l
}

// snapshot returns all counts.
func (b *book) snapshot() Stats {
	open := make(map[Labels]int, len(b.opened))
	for _, g := range b.open {
		open[b.labels(g.Incident)]++
	}
	st := b.stats
	st.Series = make([]Series, 0, len(b.opened))
	for l, n := range b.opened {
		st.Series = append(st.Series, Series{l, open[l], n})
	}
	slices.SortFunc(st.Series, func(a, b Series) int {
		return cmp.Or(
			strings.Compare(a.Detector, b.Detector),
			strings.Compare(a.Service, b.Service),
			strings.Compare(a.Cache, b.Cache),
			cmp.Compare(a.Severity, b.Severity))
	})
	return st
}
