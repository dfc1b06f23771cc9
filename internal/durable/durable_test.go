package durable_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stampede-exporter/stampede-exporter/internal/durable"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestReplaceWritesAFileOfItsOwnersOnlyAndLeavesNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	path := filepath.Join(dir, "state")
	for _, data := range []string{"first", "second, which is longer", ""} {
		if err := durable.Replace(path, []byte(data)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != data {
			t.Errorf("the file holds %q, %v; want %q", got, err, data)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v; want -rw-------", info.Mode(), err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"state"}) {
		t.Errorf("the folder holds %q, want the file only", got)
	}
}

func TestReplaceThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	if err := os.Mkdir(path, 0o700); err != nil { // a file cannot take a folder's place
		t.Fatal(err)
	}
	if err := durable.Replace(path, []byte("x")); err == nil {
		t.Error("replaced a folder")
	}
	if got := names(t, dir); !slices.Equal(got, []string{"state"}) {
		t.Errorf("the folder holds %q, want the old only", got)
	}
	if err := durable.Replace(filepath.Join(path, "\x00", "state"), nil); err == nil {
		t.Error("wrote a file whose folder cannot be made")
	}
}

func TestSweepRemovesWhatAKilledReplacementLeft(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"state", "state.tmp-1", "state.tmp-2", "state.baselines", "other.tmp-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := durable.Sweep(filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), []string{"other.tmp-1", "state", "state.baselines"}; !slices.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
	if err := durable.Sweep(filepath.Join(dir, "absent", "state")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}
