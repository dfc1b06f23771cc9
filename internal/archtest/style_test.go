package archtest

import (
	"bytes"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Bounds on size: past them a file is two files, and a function two functions.
const (
	maxFileLines     = 500
	maxFunctionLines = 80
)

func TestFilesAndFunctionsStaySmall(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		if n := s.fset.File(s.file.Pos()).LineCount(); n > maxFileLines {
			t.Errorf("%s has %d lines, want at most %d", s.path, n, maxFileLines)
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if n := s.line(f.End()) - s.line(f.Pos()) + 1; n > maxFunctionLines {
					t.Errorf("%s:%d: %s has %d lines, want at most %d", s.path, s.line(f.Pos()), f.Name, n, maxFunctionLines)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	empty := []string{"util", "utils", "common", "helper", "helpers", "types", "misc"}
	for _, p := range list(t, "./...") {
		if p.Doc == "" && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", p.path())
		}
		if slices.Contains(empty, p.Name) {
			t.Errorf("%s is called %s, which says nothing", p.path(), p.Name)
		}
	}
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	for _, s := range sources(t) {
		if s.test() {
			continue
		}
		for _, d := range s.file.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s:%d: %s has no comment", s.path, s.line(name.Pos()), name)
			}
		}
	}
}

// undocumented returns the exported names of d without a comment. One comment
// may stand for a group, and one above or beside a name will do. Methods of a
// type that is not exported are its own business.
func undocumented(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && receiverExported(d) && !oneLine(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		if d.Doc != nil {
			return nil
		}
		var out []*ast.Ident
		for _, spec := range d.Specs {
			out = append(out, undocumentedSpec(spec)...)
		}
		return out
	}
	return nil
}

// oneLine reports whether a method is written on one line: a few in a row that
// implement an interface are commented as one.
func oneLine(f *ast.FuncDecl) bool {
	return f.Recv != nil && f.Body != nil && len(f.Body.List) <= 1
}

func receiverExported(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	typ := f.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

func undocumentedSpec(spec ast.Spec) []*ast.Ident {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Doc == nil && s.Comment == nil && s.Name.IsExported() {
			return []*ast.Ident{s.Name}
		}
	case *ast.ValueSpec:
		if s.Doc == nil && s.Comment == nil {
			return slices.DeleteFunc(slices.Clone(s.Names), func(n *ast.Ident) bool { return !n.IsExported() })
		}
	}
	return nil
}

func TestNothingHappensBeforeMain(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s:%d: a func init: registration is a literal list, in one place", s.path, s.line(f.Pos()))
			}
		}
	}
}

// TestPureRoomsHaveNoClockAndNoGoroutine: what these packages do must depend on
// what they are given, or a replay would differ from what was seen.
func TestPureRoomsHaveNoClockAndNoGoroutine(t *testing.T) {
	packages := []string{"net", "net/http", "os", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand"}
	clock := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
	for _, s := range sources(t) {
		if s.test() || !s.in("signal") && !s.in("detectors") {
			continue
		}
		for _, imp := range s.file.Imports {
			if path := strings.Trim(imp.Path.Value, `"`); slices.Contains(packages, path) {
				t.Errorf("%s:%d: imports %s", s.path, s.line(imp.Pos()), path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s:%d: starts a goroutine", s.path, s.line(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
					t.Errorf("%s:%d: asks for the time with time.%s", s.path, s.line(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestTestsNeitherSleepNorSkip: a test that sleeps is slow or flaky, unless the
// clock is a fake one; a test that skips is green for no reason. End-to-end
// tests live in real time.
func TestTestsNeitherSleepNorSkip(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test() {
			continue
		}
		fake := slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing/synctest"` })
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if name := sel.Sel.Name; name == "Skip" || name == "Skipf" || name == "SkipNow" {
				t.Errorf("%s:%d: skips", s.path, s.line(n.Pos()))
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && sel.Sel.Name == "Sleep" && !fake && !s.in("e2e") {
				t.Errorf("%s:%d: sleeps", s.path, s.line(n.Pos()))
			}
			return true
		})
	}
}

// TestTextIsFinishedAndOurs: no note to oneself, no path of one machine, no
// picture where a word would do.
func TestTextIsFinishedAndOurs(t *testing.T) {
	// Written so that this file does not contain what it looks for.
	notes := regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"}, "|") + `)\b`)
	paths := regexp.MustCompile(`(^|[\s"'=(])/(work|root|home/[a-z]+)/`)
	for _, path := range files(t) {
		b, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(b, 0) >= 0 || path == "LICENSE" || strings.Contains(path, "/testdata/") {
			continue
		}
		for i, line := range strings.Split(string(b), "\n") {
			if m := notes.FindString(line); m != "" {
				t.Errorf("%s:%d: %s", path, i+1, m)
			}
			if m := paths.FindString(line); m != "" {
				t.Errorf("%s:%d: a path of one machine: %s", path, i+1, m)
			}
			if j := strings.IndexFunc(line, picture); j >= 0 {
				t.Errorf("%s:%d: %q is a picture", path, i+1, []rune(line[j:])[0])
			}
		}
	}
}

// picture reports whether r is an emoji, of the blocks that hold little else.
func picture(r rune) bool {
	return unicode.Is(&unicode.RangeTable{
		R16: []unicode.Range16{{Lo: 0x2600, Hi: 0x27bf, Stride: 1}, {Lo: 0x2b50, Hi: 0x2b55, Stride: 1}},
		R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1faff, Stride: 1}},
	}, r)
}
