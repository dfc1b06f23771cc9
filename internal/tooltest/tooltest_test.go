package tooltest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/tooltest"
)

func TestPathFindsAToolInTheFolderTheEnvironmentNames(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("STAMPEDE_TOOLS", dir)
	want := filepath.Join(dir, "bin", "promtool")
	if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(want, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := tooltest.Path(t, "promtool"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPathLooksInTheCacheOfTheUserByDefault(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("STAMPEDE_TOOLS", "")
	want := filepath.Join(home, ".cache", "stampede-tools", "bin", "promtool")
	if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(want, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := tooltest.Path(t, "promtool"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPathFailsTheTestIfTheToolIsMissingAndSaysWhatToRun(t *testing.T) {
	t.Setenv("STAMPEDE_TOOLS", t.TempDir())
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tooltest.Path(r, "promtool")
	}()
	<-done
	for _, want := range []string{"promtool", "make tools"} {
		if !strings.Contains(r.message, want) {
			t.Errorf("the test failed with %q, want it to mention %q", r.message, want)
		}
	}
}

// recorder is a testing.TB that keeps its failure to itself.
type recorder struct {
	testing.TB
	message string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
