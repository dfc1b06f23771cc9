package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// learner is a detector that knows a text, which grows at each tick.
type learner struct {
	observer
	knows   string
	restore func([]byte) error
	state   func() ([]byte, error)
}

func newLearner(id string) *learner {
	l := &learner{}
	l.observer = observer{id, func(*signal.Tick) []detectors.Finding { l.knows += "x"; return nil }}
	l.state = func() ([]byte, error) { return fmt.Appendf(nil, "%q", l.knows), nil }
	l.restore = func(b []byte) error { l.knows = strings.Trim(string(b), `"`); return nil }
	return l
}

func (l *learner) State() ([]byte, error)     { return l.state() }
func (l *learner) Restore(state []byte) error { return l.restore(state) }

// keeping returns an engine that keeps what ds learn at path, and its log.
func keeping(t *testing.T, path string, ds ...detectors.Detector) (*rig, *bytes.Buffer) {
	t.Helper()
	r := rigOf(t, engine.Options{StateFile: path, Detectors: ds})
	return r, &r.log
}

func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWhatDetectorsLearnIsSavedOnceAMinuteAndAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "baselines")
	synctest.Test(t, func(t *testing.T) {
		r, log := keeping(t, path, newLearner("a"), observer{"b", func(*signal.Tick) []detectors.Finding { return nil }})
		t.Cleanup(func() {
			if log.Len() > 0 {
				t.Errorf("logged %s", log)
			}
		})
		r.run(t)
		time.Sleep(59 * time.Second)
		if _, err := os.Stat(path); err == nil {
			t.Error("saved before a minute was over")
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if got := contents(t, path); !strings.HasPrefix(got, `{"version":1,"detectors":{"a":"xxxxx`) {
			t.Errorf("after a minute the file holds %s", got)
		}
		time.Sleep(10 * time.Second)
	})
	again := newLearner("a")
	keeping(t, path, again)
	if n := len(again.knows); n < 70 {
		t.Errorf("restored %d ticks of 71", n)
	}
}

func TestWhatCannotBeRestoredIsSetAside(t *testing.T) {
	refuse := newLearner("a")
	refuse.restore = func([]byte) error { return errors.New("nonsense") }
	panics := newLearner("a")
	panics.restore = func([]byte) error { panic("worse") }
	tests := []struct {
		name, file string
		a          *learner
		aside, log string
	}{
		{"garbage", "\x00\x01", newLearner("a"), ".corrupt", "invalid character"},
		{"cut short", `{"version":1,"detectors":{"a":`, newLearner("a"), ".corrupt", "unexpected end"},
		{"no version", `{}`, newLearner("a"), ".corrupt", "version 0, want 1 to 1"},
		{"of a later exporter", `{"version":2,"detectors":{"a":"yes"}}`, newLearner("a"), ".newer", "newer exporter"},
		{"refused by its detector", `{"version":1,"detectors":{"a":"no","b":"yes"}}`, refuse, ".corrupt", "a: nonsense"},
		{"that makes its detector panic", `{"version":1,"detectors":{"a":"no","b":"yes"}}`, panics, ".corrupt", "a panicked: worse"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "baselines")
			if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
			b := newLearner("b")
			_, log := keeping(t, path, tc.a, b)
			if got := contents(t, path+tc.aside); got != tc.file {
				t.Errorf("set aside: %q, want %q", got, tc.file)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("the file is still there")
			}
			if !strings.Contains(log.String(), tc.log) {
				t.Errorf("logged %s, want %q", log, tc.log)
			}
			if want := strings.Contains(tc.file, `"b"`); (b.knows == "yes") != want {
				t.Errorf("the other detector knows %q; told: %t", b.knows, want)
			}
		})
	}
}

func TestADetectorThatWentAwayIsForgottenAndANewOneBeginsAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baselines")
	if err := os.WriteFile(path, []byte(`{"version":1,"detectors":{"gone":"y"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newLearner("new")
	_, log := keeping(t, path, d)
	if d.knows != "" || log.Len() > 0 {
		t.Errorf("knows %q, logged %s", d.knows, log)
	}
}

func TestADetectorThatCannotSayWhatItKnowsCostsNobodyElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baselines")
	wrong, panics, silly := newLearner("wrong"), newLearner("panics"), newLearner("silly")
	wrong.state = func() ([]byte, error) { return nil, errors.New("no idea") }
	panics.state = func() ([]byte, error) { panic("worse") }
	silly.state = func() ([]byte, error) { return []byte("{"), nil }
	var log *bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r, log = keeping(t, path, wrong, panics, silly, newLearner("right"))
		r.run(t)
		time.Sleep(3 * time.Minute)
	})
	if got := contents(t, path); !strings.HasPrefix(got, `{"version":1,"detectors":{"right":"x`) || strings.Contains(got, "wrong") {
		t.Errorf("the file holds %s", got)
	}
	if n := strings.Count(log.String(), "\n"); n != 3 {
		t.Errorf("logged %d lines, want one for each:\n%s", n, log)
	}
}

func TestAFullDiskIsLoggedOnceAndItsEndToo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	var log *bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		var r *rig
		r, log = keeping(t, filepath.Join(dir, "baselines"), newLearner("a"))
		log.Reset() // it could not look for leftovers either
		r.run(t)
		time.Sleep(3*time.Minute + time.Second)
		synctest.Wait()
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
	})
	text := log.String()
	if strings.Count(text, "Could not save") != 1 || strings.Count(text, "works again") != 1 {
		t.Errorf("logged %s, want one failure and its end", text)
	}
}

func FuzzKnowledge(f *testing.F) {
	f.Add([]byte(`{"version":1,"detectors":{"a":"x","b":null}}`))
	f.Add([]byte(`{"version":1,"detectors":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "baselines")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		ds, err := detectors.All(detectors.Config{})
		if err != nil {
			t.Fatal(err)
		}
		keeping(t, path, ds...)
	})
}
