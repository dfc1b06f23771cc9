package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/stampede-exporter/stampede-exporter"
)

// goPackage is what `go list` says of a package.
type goPackage struct {
	ImportPath string
	Name       string
	Doc        string
	Dir        string
	GoFiles    []string
	Imports    []string
	Module     *struct {
		Path string
		Main bool
	}
}

// path is the package's path within the module; "." for its root.
func (p goPackage) path() string {
	if p.ImportPath == module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

// list runs `go list -json` with args at the root of the module, for one platform
// whatever the tests run on.
func list(t *testing.T, args ...string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%v: %v\n%s", cmd, err, exit.Stderr)
		}
		t.Fatalf("%v: %v", cmd, err)
	}
	var pkgs []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return pkgs
		case err != nil:
			t.Fatalf("%v: %v", cmd, err)
		}
		pkgs = append(pkgs, p)
	}
}

// source is one Go file of the module, tests included.
type source struct {
	path string // from the root
	fset *token.FileSet
	file *ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

// line returns the line of a position in s.
func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

// in reports whether s is of the package at path, or of one below it.
func (s source) in(path string) bool {
	return strings.HasPrefix(s.path, path+"/")
}

// sources parses all Go files below the root, those of modules of their own
// included.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	for _, path := range files(t) {
		if filepath.Ext(path) != ".go" {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join(root, path), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, source{path, fset, f})
	}
	return out
}

// files lists all files below the root, but not what git keeps or ignores.
func files(t *testing.T) []string {
	t.Helper()
	skipped := []string{".git", "bin", "dist"}
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(skipped, rel) {
			return fs.SkipDir
		}
		if d.Type().IsRegular() {
			out = append(out, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
