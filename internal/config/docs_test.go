package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/internal/config"
)

// fields returns the path of every field a file may have. Names a user chooses
// are NAME, places in a list N. Types of other projects are documented there.
func fields(t reflect.Type, path string) []string {
	switch {
	case t.Kind() == reflect.Pointer:
		return fields(t.Elem(), path)
	case t.Kind() == reflect.Map:
		return fields(t.Elem(), path+".NAME")
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return fields(t.Elem(), path+".N")
	case t.Kind() != reflect.Struct || !strings.Contains(t.PkgPath(), "stampede-exporter"):
		return []string{path}
	}
	var out []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" { // no file has it
			continue
		}
		out = append(out, fields(f.Type, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return out
}

func TestEveryFieldIsDocumentedAndNoOther(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z_.-]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		if !strings.HasPrefix(row[1], "--") {
			documented = append(documented, row[1])
		}
	}
	want := fields(reflect.TypeFor[config.Config](), "")
	slices.Sort(want)
	slices.Sort(documented)
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("docs/configuration.md does not have the fields there are (-want +got):\n%s", diff)
	}
}

func TestTheExampleInTheDocumentationIsRight(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(examples) == 0 {
		t.Fatal("there is none")
	}
	for _, e := range examples {
		if _, err := config.Parse(e[1]); err != nil {
			t.Errorf("%v in:\n%s", err, e[1])
		}
	}
}
