package strictyaml

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// Error is everything that is wrong with a file.
type Error struct {
	File     string    // empty if the text came from elsewhere
	Problems []Problem // at least one, in order of Line
}

// Problem is one thing wrong with a file.
type Problem struct {
	Line  int    // from 1; 0 if not known
	Field string // dotted, such as "caches.feed.ttl"; empty if not known
	Text  string // what is wrong, and what would be right
}

// Error returns one line per problem, as compilers write them.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		where := ""
		if e.File != "" {
			where = e.File + ":"
		}
		if p.Line > 0 {
			where += strconv.Itoa(p.Line) + ":"
		}
		if where != "" {
			b.WriteString(where + " ")
		}
		if p.Field != "" {
			b.WriteString(p.Field + ": ")
		}
		b.WriteString(p.Text)
	}
	return b.String()
}

// fieldError is a problem with the field at path; its line is found later.
type fieldError struct {
	path []string
	text string
}

// Field returns an error about the field at path, for a check to report.
func Field(text string, path ...string) error { return &fieldError{path, text} }

// At says which field err is about, unless the decoder, or a field of it, has
// said so already. It is for types that decode themselves.
func At(err error, path ...string) error {
	var decoder *yaml.TypeError
	var field *fieldError
	if err == nil || errors.As(err, &decoder) || errors.As(err, &field) {
		return err
	}
	return Field(err.Error(), path...)
}

// Error returns the dotted path and the text.
func (e *fieldError) Error() string { return strings.Join(e.path, ".") + ": " + e.text }

// newError makes an Error of what the decoder or the checks returned. root is
// the parsed document, if it parsed.
func newError(root *yaml.Node, errs ...error) *Error {
	e := &Error{}
	for _, err := range errs {
		var decoder *yaml.TypeError
		var field *fieldError
		switch {
		case errors.As(err, &decoder):
			for _, text := range decoder.Errors {
				e.Problems = append(e.Problems, decodeProblem(root, text))
			}
		case errors.As(err, &field):
			e.Problems = append(e.Problems, Problem{lineOf(root, field.path), strings.Join(field.path, "."), field.text})
		default:
			e.Problems = append(e.Problems, decodeProblem(root, strings.TrimPrefix(err.Error(), "yaml: ")))
		}
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int { return a.Line - b.Line })
	return e
}

var (
	lineText    = regexp.MustCompile(`(?s)^line (\d+): (.*)$`)
	unknownText = regexp.MustCompile(`^field (.+) not found in type .*$`)
	typeText    = regexp.MustCompile("(?s)^cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.*)$")
)

// decodeProblem says what the decoder said in the terms of whoever wrote the
// file, who knows nothing of Go types.
func decodeProblem(root *yaml.Node, text string) Problem {
	p := Problem{Text: text}
	if m := lineText.FindStringSubmatch(text); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Text = m[2]
	}
	if m := unknownText.FindStringSubmatch(p.Text); m != nil {
		p.Field = strings.Join(pathOf(root, p.Line, m[1], true), ".")
		p.Text = "unknown field"
		if p.Field == "" {
			p.Text += " " + strconv.Quote(m[1])
		}
		return p
	}
	if m := typeText.FindStringSubmatch(p.Text); m != nil {
		p.Field = strings.Join(pathOf(root, p.Line, m[2], false), ".")
		p.Text = mistyped(m[1], m[2], m[3])
	}
	return p
}

// mistyped describes a value that does not fit into the Go type it is for.
func mistyped(tag, value, goType string) string {
	got := map[string]string{"seq": "a list", "map": "a group of fields"}[tag]
	if got == "" {
		got = strconv.Quote(value)
	}
	switch {
	case goType == "time.Duration":
		return got + " is not a duration: want a number with a unit, such as 500ms, 30s or 5m"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		return got + " is not a whole number in range"
	case strings.HasPrefix(goType, "float"):
		return got + " is not a number"
	case goType == "bool":
		return got + " is neither true nor false"
	case goType == "string":
		return got + " is not a text"
	case strings.HasPrefix(goType, "[]"):
		return got + " is not a list"
	}
	return got + " is not a group of fields"
}

// pathOf finds the field on that line that is called text, or else whose value
// is text or, for a list or a group, begins there. Long values come shortened
// by the decoder, with dots at their end.
func pathOf(n *yaml.Node, line int, text string, byName bool) []string {
	if n == nil {
		return nil
	}
	text, cut := strings.CutSuffix(text, "...")
	var found []string
	var walk func(n *yaml.Node, path []string)
	walk = func(n *yaml.Node, path []string) {
		if n.Line == line && !byName && found == nil && len(path) > 0 {
			if n.Kind == yaml.ScalarNode && (n.Value == text || cut && strings.HasPrefix(n.Value, text)) || n.Kind != yaml.ScalarNode && text == "" {
				found = path
			}
		}
		switch n.Kind {
		case yaml.DocumentNode:
			walk(n.Content[0], path)
		case yaml.SequenceNode:
			for i, item := range n.Content {
				walk(item, below(path, strconv.Itoa(i)))
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				name := n.Content[i]
				if byName && found == nil && name.Line == line && name.Value == text {
					found = below(path, name.Value)
				}
				walk(n.Content[i+1], below(path, name.Value))
			}
		}
	}
	walk(n, nil)
	return found
}

// lineOf finds the line of the field at path, or of the nearest parent that is
// in the document.
func lineOf(n *yaml.Node, path []string) int {
	if n == nil {
		return 0
	}
	if len(path) == 0 {
		return n.Line
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return lineOf(n.Content[0], path)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := n.Content[i], n.Content[i+1]
			switch {
			case name.Value != path[0]:
			case len(path) == 1:
				return name.Line
			default:
				return max(name.Line, lineOf(value, path[1:]))
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(n.Content) {
			return lineOf(n.Content[i], path[1:])
		}
	}
	return n.Line
}

// Choice returns an error about the field at path unless v is one of choices.
func Choice(v string, choices []string, path ...string) error {
	if slices.Contains(choices, v) {
		return nil
	}
	return Field(fmt.Sprintf("%q is not known: want one of %s", v, strings.Join(choices, ", ")), path...)
}
