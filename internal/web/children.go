package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/incident"
)

// maxWith is how many kinds of children a card names.
const maxWith = 3

// child is part of an incident as the pages show it.
type child struct {
	Title, Cache, Group  string
	SeverityClass, Badge string
	Summary              string
	Began, Cleared       moment
	Left                 bool // it held when its incident closed
	Facts                []fact
	Incident             string // ID of another incident it has been in
}

// childrenOf describes what is part of i.
func (p *pages) childrenOf(i *incident.Incident, now time.Time) []child {
	var out []child
	for n := range i.Children {
		c := &i.Children[n]
		out = append(out, child{
			Title: p.titleOf(c.Detector), Cache: shown(c.Cache), Group: shown(c.Key.Group),
			SeverityClass: c.Severity.String(), Badge: badge(c.Severity, c.Priority),
			Summary: cut(c.Summary, maxSentence),
			Began:   momentOf(c.Onset, now), Cleared: momentOf(c.Cleared, now),
			Left: c.Cleared == 0 && !i.Open(), Facts: facts(c.Evidence), Incident: shown(c.Incident),
		})
	}
	return out
}

// with names the kinds of those children that hold, in their order, and counts
// them.
func with(children []child, more int) string {
	counts := map[string]int{}
	var titles []string
	for _, c := range children {
		if c.Cleared.ISO != "" || c.Left {
			continue
		}
		if counts[c.Title]++; counts[c.Title] == 1 {
			titles = append(titles, c.Title)
		}
	}
	var parts []string
	for n, title := range titles {
		switch {
		case n >= maxWith:
			more += counts[title]
		case counts[title] == 1:
			parts = append(parts, title)
		default:
			parts = append(parts, fmt.Sprintf("%s (%d)", title, counts[title]))
		}
	}
	if more > 0 && len(parts) > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}
