package docgen

import (
	"fmt"
	"strings"
)

// table is a Markdown table.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(b *strings.Builder) {
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			fmt.Fprintf(b, " %s |", strings.ReplaceAll(c, "|", `\|`))
		}
		b.WriteString("\n")
	}
	line(t.head)
	b.WriteString(strings.Repeat("|---", len(t.head)) + "|\n")
	for _, r := range t.rows {
		line(r)
	}
	b.WriteString("\n")
}

func code(s string) string { return "`" + s + "`" }

// codes returns each of list as code, with commas between.
func codes(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = code(s)
	}
	return strings.Join(out, ", ")
}

// paragraph returns the text of a Go comment, or of a string that was wrapped,
// as one line a paragraph.
func paragraph(s string) string {
	parts := strings.Split(strings.TrimSpace(s), "\n\n")
	for i, p := range parts {
		parts[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(parts, "\n\n")
}
