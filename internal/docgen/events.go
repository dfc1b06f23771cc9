package docgen

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/stampede-exporter/stampede-exporter/internal/semconv"
)

const attributesFile = "internal/semconv/attributes.go"

// In comments, Go names become the names they stand for, and what is quoted
// becomes code.
var (
	word   = regexp.MustCompile(`\w+`)
	quoted = regexp.MustCompile(`"([^"]*)"`)
)

const eventsIntro = `## Events

Windows and vitals travel as OpenTelemetry log records of the instrumentation scope
` + "`" + semconv.Scope + "`" + `, and are told apart by their event name: ` +
	"`" + semconv.EventWindow + "` or `" + semconv.EventVitals + "`" + `. An attribute of type int without a
unit counts something. What each means is documented on the fields of
` + "`signal.Window` and `signal.Vitals`" + `.

`

// writeEvents documents every group of string constants in the attributes file:
// its comment, then a table.
func writeEvents(b *strings.Builder, root fs.FS) error {
	src, err := fs.ReadFile(root, attributesFile)
	if err != nil {
		return fmt.Errorf("read attributes: %w", err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), attributesFile, src, parser.ParseComments)
	if err != nil {
		return fmt.Errorf("read attributes: %w", err)
	}
	b.WriteString(eventsIntro)
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST || !g.Lparen.IsValid() {
			continue
		}
		t, err := attributes(g)
		if err != nil {
			return err
		}
		b.WriteString(paragraph(g.Doc.Text()) + "\n\n")
		t.write(b)
	}
	return nil
}

// attributes is the table of one group of constants. Without a comment, an
// attribute is an int; constants of other kinds are names.
func attributes(g *ast.GenDecl) (*table, error) {
	names := make([]string, len(g.Specs))
	byGoName := map[string]string{}
	for i, s := range g.Specs {
		spec := s.(*ast.ValueSpec)
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return nil, fmt.Errorf("read attributes: %s is not a string literal", spec.Names[0])
		}
		name, err := strconv.Unquote(lit.Value)
		if err != nil {
			return nil, fmt.Errorf("read attributes: %s: %w", spec.Names[0], err)
		}
		names[i] = code(name)
		byGoName[spec.Names[0].Name] = names[i]
	}
	kind := "string"
	if strings.HasPrefix(g.Specs[0].(*ast.ValueSpec).Names[0].Name, "Attr") {
		kind = "int"
	}
	t := &table{head: []string{"name", "type"}}
	for i, s := range g.Specs {
		text := word.ReplaceAllStringFunc(note(s.(*ast.ValueSpec)), func(w string) string {
			return cmp.Or(byGoName[w], w)
		})
		t.add(names[i], cmp.Or(quoted.ReplaceAllString(text, "`$1`"), kind))
	}
	return t, nil
}

// note joins the comment beside a constant and the one above it.
func note(spec *ast.ValueSpec) string {
	beside, above := paragraph(spec.Comment.Text()), paragraph(spec.Doc.Text())
	if above != "" && beside != "" {
		return beside + ". " + above
	}
	return beside + above
}
