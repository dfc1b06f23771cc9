package score

import (
	"slices"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/lab"
)

// alarmOf returns when an incident first was, under its class, a ticket or page,
// and whether it ever was a page. One that turned out to be part of another is
// no alarm of its own: somebody who is told of it before its cause is known is
// told of the right trouble.
func alarmOf(i *lab.Incident) (at float64, page, alarm bool) {
	at, page = i.Ticketed, i.Paged > 0
	if page {
		at = i.Paged
	}
	return max(at, i.Classed), page, i.Ticketed > 0 && i.PartOf == ""
}

// told reports whether an episode is about what gives i its class.
func (j *judge) told(i *lab.Incident) bool {
	for n := range j.findings {
		f := &j.findings[n]
		if j.taken[n] && f.Incident == i.ID && f.Detector == i.Detector && f.Cache == i.Cache {
			return true
		}
	}
	return false
}

// leftOver judges the incidents that no episode is about, and pages that are
// forbidden whatever they are about.
func (j *judge) leftOver(out *Outcome) {
	for n := range j.incidents {
		i := &j.incidents[n]
		at, page, ok := alarmOf(i)
		if !ok {
			continue
		}
		why := ""
		switch {
		case j.sc.Forbid.Pages && page:
			why = "pages are forbidden"
		case j.told(i):
			continue
		case slices.Contains(j.sc.Forbid.Detectors, i.Detector):
			why = "it is forbidden"
		case !j.truth.justifies(i, at):
			why = "no such trouble had begun"
		}
		alarm := Alarm{i.Detector, i.Cache, page, at, j.confused[n], why}
		if why == "" {
			out.Unasked = append(out.Unasked, alarm)
		} else {
			out.False = append(out.False, alarm)
		}
	}
}

// repeated counts pages beyond the first for one cause: those of incidents that
// came to be a page more than once, or that turned out to be part of one.
func repeated(incidents []lab.Incident) int {
	whole, pages := map[string]string{}, map[string]int{}
	for n := range incidents {
		whole[incidents[n].ID] = incidents[n].PartOf
	}
	for n := range incidents {
		id := incidents[n].ID
		for range incidents { // no chain is longer
			if whole[id] == "" {
				break
			}
			id = whole[id]
		}
		pages[id] += incidents[n].Pages
	}
	count := 0
	for _, n := range pages {
		count += max(0, n-1)
	}
	return count
}

// severity reads a name that was made from one, or checked when a file was read.
func severity(name string) detectors.Severity {
	s := detectors.Info
	_ = s.UnmarshalText([]byte(name))
	return s
}

// raised returns when f first was of at least that severity, in seconds.
func raised(f *lab.Finding, least detectors.Severity) (at float64, ok bool) {
	switch least {
	case detectors.Page:
		at = f.Paged
	case detectors.Ticket:
		at = f.Ticketed
	default:
		at = f.Detected
	}
	return at, at > 0
}
