package docgen

import (
	"fmt"
	"strings"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

const detectorsIntro = `# Detectors

Each detector is one file of the package ` + "`detectors`" + `, pure and deterministic: the same input gives the same
findings live, in a replay and in a simulation. Its name is its file's, its alert's, its panel's and its runbook's.
Every threshold is a documented field of the detector's configuration. [What explains what](#what-explains-what) says which findings
become one incident.

`

// Detectors returns docs/detectors.md, with one section a detector, in the
// order given, and how their findings go with each other. A section's anchor is
// the detector's id.
func Detectors(list []detectors.Doc, relations []detectors.Relation) []byte {
	var b strings.Builder
	b.WriteString(notice)
	b.WriteString(detectorsIntro)
	for _, d := range list {
		writeDetector(&b, d)
	}
	writeRelations(&b, relations)
	return []byte(strings.TrimRight(b.String(), "\n") + "\n")
}

func writeDetector(b *strings.Builder, d detectors.Doc) {
	fmt.Fprintf(b, "## %s\n\n**%s.** ", d.ID, strings.TrimRight(d.Title, "."))
	if d.MayPage {
		b.WriteString("May page. ")
	}
	fmt.Fprintf(b, "[Runbook](../alerts/runbooks/%s.md).\n\n", d.ID)
	for _, part := range []struct{ name, text string }{
		{"What it means", d.Meaning},
		{"What it looks at", d.Signal},
		{"When it fires and clears", d.Condition},
		{"Why these thresholds", d.Why},
		{"What it can be mistaken for", d.Traps},
		{"What to do first", d.Advice},
	} {
		fmt.Fprintf(b, "**%s.** %s\n\n", part.name, paragraph(part.text))
	}
}
