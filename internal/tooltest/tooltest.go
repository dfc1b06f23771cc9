// Package tooltest finds, for tests, the tools that `make tools` builds: the
// real promtool and Alertmanager, at the versions the project is tested with.
package tooltest

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of the tool called name. It looks in the folder bin of
// $STAMPEDE_TOOLS, by default ~/.cache/stampede-tools, and nowhere else: another
// version on PATH may behave differently. It fails t, and never skips it, if the
// tool is not there.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("STAMPEDE_TOOLS")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatalf("find %s: STAMPEDE_TOOLS is not set, and: %v", name, err)
		}
		dir = filepath.Join(home, ".cache", "stampede-tools")
	}
	path := filepath.Join(dir, "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("find %s: %v: run `make tools`", name, err)
	}
	return path
}
