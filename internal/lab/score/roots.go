package score

import (
	"slices"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/lab"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/scenario"
)

// relation is one way in which one finding explains another.
type relation struct {
	child  string
	scope  detectors.Scope
	lead   time.Duration
	lesser bool
}

// related lists, by parent, what [detectors.Relations] says.
func related() map[string][]relation {
	out := map[string][]relation{}
	for _, r := range detectors.Relations() {
		if r.Scope == detectors.Apart {
			continue
		}
		for _, child := range r.Children {
			out[r.Parent] = append(out[r.Parent], relation{child, r.Scope, r.Lead, r.Lesser})
		}
	}
	return out
}

// explained returns, for each finding, whether another one explains it. It takes
// a whole run at once, as somebody does who looks at its incidents afterwards: a
// finding that wakes somebody before its cause is known counts as explained.
func explained(sc *scenario.Scenario, findings []lab.Finding) []bool {
	out := make([]bool, len(findings))
	relations := related()
	byDetector := map[string][]int{}
	for i := range findings {
		byDetector[findings[i].Detector] = append(byDetector[findings[i].Detector], i)
	}
	for parent, parents := range byDetector {
		for _, r := range relations[parent] {
			for _, child := range byDetector[r.child] {
				out[child] = out[child] || slices.ContainsFunc(parents, func(p int) bool {
					return r.explains(sc, &findings[p], &findings[child])
				})
			}
		}
	}
	return out
}

// explains reports whether p explains c.
func (r *relation) explains(sc *scenario.Scenario, p, c *lab.Finding) bool {
	if !r.lesser && severity(p.Severity) < severity(c.Severity) {
		return false
	}
	if c.Onset < p.Onset-r.lead.Seconds() || p.Cleared > 0 && c.Detected > p.Cleared {
		return false
	}
	switch r.scope {
	case detectors.SameKey:
		return p.Cache == c.Cache && p.Key == c.Key
	case detectors.SameOrigin:
		return sameOrigin(sc, p.Cache, c.Cache)
	default:
		return p.Cache == c.Cache
	}
}

func sameOrigin(sc *scenario.Scenario, a, b string) bool {
	return a == b || sc.Caches[a].Origin != "" && sc.Caches[a].Origin == sc.Caches[b].Origin
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
