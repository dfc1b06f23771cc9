package docgen

import (
	"fmt"
	"math"
	"strings"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

const relationsIntro = `## What explains what

Findings of different detectors often have one cause: a cache that was emptied also has hot keys, a full origin and
callers that try again. One incident tells of all of them. It has the class of the one that explains the others, which are its
children; when a better explanation turns up the class changes, and nobody is paged again.

A finding explains another if both are about what the third column says, if the other began later or at most so long before, and if
the other is not more severe (where that does not matter, the table says "any"). Findings of one detector explain each other where it
is listed as explaining itself: those that began so close to each other have one cause, whatever they are about.

`

const apartIntro = `These never have one cause, even if they are there at the same time:

`

// writeRelations writes how findings go with each other.
func writeRelations(b *strings.Builder, relations []detectors.Relation) {
	related := table{head: []string{"detector", "explains", "of the same", "begun up to", "because"}}
	apart := table{head: []string{"detector", "and", "because"}}
	for _, r := range relations {
		if r.Scope == detectors.Apart {
			others := anchors(r.Children)
			if others == "" {
				others = "all that no other row names with it"
			}
			apart.add(anchor(r.Parent), others, r.Why)
			continue
		}
		lead := leadOf(r)
		if r.Lesser {
			lead += "; any severity"
		}
		related.add(anchor(r.Parent), anchors(r.Children), scopeOf(r.Scope), lead, r.Why)
	}
	b.WriteString(relationsIntro)
	related.write(b)
	b.WriteString(apartIntro)
	apart.write(b)
}

// anchor links to a detector's section.
func anchor(id string) string { return fmt.Sprintf("[%s](#%s)", id, id) }

func anchors(ids []string) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = anchor(id)
	}
	return strings.Join(out, ", ")
}

func scopeOf(s detectors.Scope) string {
	switch s {
	case detectors.SameKey:
		return "key"
	case detectors.SameCache:
		return "cache"
	default:
		return "origin"
	}
}

// leadOf says how long before the parent a child may have begun.
func leadOf(r detectors.Relation) string {
	switch {
	case r.Lead == math.MaxInt64:
		return "ever before"
	case len(r.Children) == 1 && r.Children[0] == r.Parent:
		return fmt.Sprintf("%g min apart", r.Lead.Minutes())
	}
	return fmt.Sprintf("%g min before", r.Lead.Minutes())
}
