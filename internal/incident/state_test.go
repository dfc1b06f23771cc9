package incident_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/incident"
)

// restart runs a manager on the state file, feeds it, and closes it.
func restart(t *testing.T, file string, o incident.Options, use func(*incident.Manager)) {
	t.Helper()
	o.StateFile = file
	m, err := incident.New(o)
	if err != nil {
		t.Fatal(err)
	}
	use(m)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

func apply(at float64, fs ...detectors.Finding) func(*incident.Manager) {
	return func(m *incident.Manager) { m.Apply(after(at), fs) }
}

func TestRestart(t *testing.T) {
	type tick struct {
		at       float64
		findings []detectors.Finding
	}
	tests := []struct {
		name   string
		before []tick
		after  []tick
		heard  []string // after the restart
	}{
		{
			name:   "an open incident goes on, and a finding that comes in time makes it the detector's again",
			before: []tick{{1, []detectors.Finding{page()}}},
			after:  []tick{{100, nil}, {999, []detectors.Finding{page()}}, {1001, nil}, {100_000, nil}, {100_001, []detectors.Finding{page(cleared)}}},
			heard:  []string{"1s resumed page/2", "16m39s updated page/2", "27h46m41s closed page/2"},
		},
		{
			name:   "one that nothing confirms stays open for the whole time, then closes and says why",
			before: []tick{{1, []detectors.Finding{page()}}},
			after:  []tick{{100, nil}, {999, nil}, {1000, nil}},
			heard:  []string{"1s resumed page/2", "16m40s closed page/2: not confirmed after restart"},
		},
		{
			name:   "the time to confirm begins with the first tick, however long the exporter was away",
			before: []tick{{1, []detectors.Finding{page()}}},
			after:  []tick{{1_000_000, nil}, {1_000_899, []detectors.Finding{page()}}, {1_000_901, nil}},
			heard:  []string{"1s resumed page/2", "278h1m39s updated page/2"},
		},
		{
			name:   "a clock set back makes the time to confirm longer, never shorter",
			before: []tick{{1, []detectors.Finding{page()}}},
			after:  []tick{{1000, nil}, {500, nil}, {1399, nil}, {1400, nil}},
			heard:  []string{"1s resumed page/2", "23m20s closed page/2: not confirmed after restart"},
		},
		{
			name:   "a clearing finding closes a resumed incident at once",
			before: []tick{{1, []detectors.Finding{page()}}},
			after:  []tick{{100, []detectors.Finding{page(cleared)}}},
			heard:  []string{"1s resumed page/2", "1m40s closed page/2"},
		},
		{
			name:   "one closed before the restart is reopened within the regroup time",
			before: []tick{{1, []detectors.Finding{page()}}, {2, []detectors.Finding{page(cleared)}}},
			after:  []tick{{100, []detectors.Finding{page()}}},
			heard:  []string{"1m40s reopened page/2"},
		},
		{
			name:   "one not confirmed is reopened if its cause comes back",
			before: []tick{{1, []detectors.Finding{page()}}},
			after:  []tick{{100, nil}, {1000, nil}, {1100, []detectors.Finding{page()}}},
			heard:  []string{"1s resumed page/2", "16m40s closed page/2: not confirmed after restart", "18m20s reopened page/2"},
		},
		{
			name:   "one closed before the restart stays closed",
			before: []tick{{1, []detectors.Finding{page()}}, {2, []detectors.Finding{page(cleared)}}},
			after:  []tick{{100, nil}, {10_000, nil}},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "new", "state.json")
			var ids []string
			restart(t, file, incident.Options{}, func(m *incident.Manager) {
				for _, tick := range tc.before {
					apply(tick.at, tick.findings...)(m)
				}
				for _, inc := range m.All() {
					ids = append(ids, inc.ID)
				}
			})
			var r recorder
			restart(t, file, incident.Options{Listeners: []incident.Listener{&r}}, func(m *incident.Manager) {
				for _, tick := range tc.after {
					apply(tick.at, tick.findings...)(m)
				}
				for i, inc := range m.All() {
					if inc.ID != ids[i] {
						t.Errorf("the incident is now %s, was %s", inc.ID, ids[i])
					}
				}
			})
			if diff := cmp.Diff(tc.heard, r.heard()); diff != "" {
				t.Errorf("changes heard after the restart (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARestartLosesNothingOfAnIncident(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	var before []incident.Incident
	restart(t, file, incident.Options{}, func(m *incident.Manager) {
		apply(1, page(), ticket(key(8)), page(key(9)), page(key(10)))(m)
		apply(2, page(severity(detectors.Page, 1)), page(key(9), cleared))(m)
		apply(3, page(key(10), cleared))(m)
		before = m.All()
	})
	restart(t, file, incident.Options{}, func(m *incident.Manager) {
		if diff := cmp.Diff(before, m.All()); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
		if st := m.Stats(); st.Resumed != 2 {
			t.Errorf("%d resumed, want 2", st.Resumed)
		}
	})
}

func TestARestartKeepsChildren(t *testing.T) {
	type run []step
	low := severity(detectors.Ticket, 0)
	flush, storm := of("mass-invalidation"), of("retry-storm", begins(1))
	tests := []struct {
		name     string
		before   run
		after    run
		heard    []string // after the restart
		children []string // at the end
	}{
		{
			name:     "a child that holds goes on as one, if both come again",
			before:   run{tick(0, flush), tick(1, storm)},
			after:    run{tick(100, flush, storm), tick(100_000)},
			heard:    []string{"1s A resumed: mass-invalidation page/2"},
			children: []string{"A: retry-storm"},
		},
		{
			name:     "one that nothing confirms is given up, and its incident is not",
			before:   run{tick(0, flush), tick(1, storm)},
			after:    run{tick(100, flush), tick(1000, flush)},
			heard:    []string{"1s A resumed: mass-invalidation page/2"},
			children: []string{"A: retry-storm, over at 16m40s"},
		},
		{
			name:   "if only the child is confirmed it goes on by itself, and nobody is paged again",
			before: run{tick(0, flush), tick(1, storm)},
			after:  run{tick(100, storm), tick(1000, storm)},
			heard: []string{"1s A resumed: mass-invalidation page/2",
				"16m40s A closed: mass-invalidation page/2, not confirmed after restart", "16m40s B opened: retry-storm ticket"},
		},
		{
			name:   "if neither is, both are over",
			before: run{tick(0, flush), tick(1, storm)},
			after:  run{tick(100), tick(1000)},
			heard: []string{"1s A resumed: mass-invalidation page/2",
				"16m40s A closed: mass-invalidation page/2, not confirmed after restart"},
		},
		{
			name:   "what somebody was paged for before is not forgotten",
			before: run{tick(0, flush), tick(1, storm, of("budget-exceeded", begins(1))), tick(60, of("mass-invalidation", cleared))},
			after:  run{tick(100, storm, of("budget-exceeded", begins(1))), tick(1860, storm)},
			heard: []string{"1m0s A resumed: retry-storm ticket",
				"31m0s A severity_changed: retry-storm page/2"},
			children: []string{"A: budget-exceeded, from B"},
		},
		{
			name:   "what was absorbed goes on in its own incident",
			before: run{tick(0, hot(low, key(1)), hot(key(2))), tick(1, of("mass-invalidation"))},
			after:  run{tick(100, of("mass-invalidation", cleared), hot(low, key(1)), hot(key(2)))},
			heard: []string{"1s A resumed: mass-invalidation page/2", "1m40s A closed: mass-invalidation page/2",
				"1m40s B reopened: hot-key-expiry ticket", "1m40s C opened: hot-key-expiry ticket"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "state.json")
			play := func(m *incident.Manager, steps run) {
				for _, s := range steps {
					m.Apply(after(s.at), s.findings)
				}
			}
			restart(t, file, incident.Options{}, func(m *incident.Manager) { play(m, tc.before) })
			var s story
			restart(t, file, incident.Options{Listeners: []incident.Listener{&s}}, func(m *incident.Manager) {
				play(m, tc.after)
				if diff := cmp.Diff(tc.children, s.children(m)); diff != "" {
					t.Errorf("children (-want +got):\n%s", diff)
				}
			})
			if diff := cmp.Diff(tc.heard, s.lines); diff != "" {
				t.Errorf("changes heard after the restart (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStateFileFromBeforeThereWereChildrenIsRead(t *testing.T) {
	const old = `{"version":1,"incidents":[
		{"id":"0123456789ab","detector":"hot-key-expiry","cache":"redis","key":{"id":"0000000000000007"},"severity":"page","priority":2,
		 "onset":1772366400000000000,"opened":1772366400000000000,"updated":1772366400000000000,"episodes":1,
		 "finding":{"detector":"hot-key-expiry","cache":"redis","key":{"id":"0000000000000007"},"severity":"page","priority":2,"onset":1772366400000000000,"detected":1772366400000000000,"summary":"","advice":"","evidence":null},
		 "worst":{"detector":"hot-key-expiry","cache":"redis","severity":"page","onset":1,"detected":1,"summary":"","advice":"","evidence":null},
		 "changes":[{"at":1772366400000000000,"kind":"opened","severity":"page","priority":2}]}]}`
	file := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	var s story
	restart(t, file, incident.Options{Listeners: []incident.Listener{&s}}, func(m *incident.Manager) {
		noService := func(f *detectors.Finding) { f.Service = "" }
		apply(10, hot(noService, key(7)), of("synchronized-expiry", noService))(m)
	})
	want := []string{"0s A resumed: hot-key-expiry page/2", "10s A class_changed: synchronized-expiry page/2, was hot-key-expiry"}
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Errorf("changes heard (-want +got):\n%s", diff)
	}
}

func TestTheStateFileIsForItsOwnerOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	restart(t, file, incident.Options{}, apply(1, page()))
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode is %v, want 0600", got)
	}
}

func TestNothingIsWrittenIfNothingChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	restart(t, file, incident.Options{}, apply(1))
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("there is a state file: %v", err)
	}
}

func TestStateFilesThatCannotBeUsedAreSetAside(t *testing.T) {
	valid := func() string {
		file := filepath.Join(t.TempDir(), "state.json")
		restart(t, file, incident.Options{}, apply(1, page()))
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}()
	twice := func(text string) string {
		_, body, _ := strings.Cut(text, `"incidents":[`)
		body = strings.TrimSuffix(body, "]}")
		return `{"version":1,"incidents":[` + body + "," + body + "]}"
	}
	child := func(fields string) string {
		return strings.Replace(valid, `"changes":`, `"children":[`+fields+`],"changes":`, 1)
	}
	id := func(text string) string {
		_, rest, _ := strings.Cut(text, `"id":"`)
		return rest[:12]
	}(valid)
	tests := []struct{ name, content, suffix, says string }{
		{"an empty file", "", ".corrupt", "unexpected end of JSON input"},
		{"a file cut short", valid[:len(valid)/2], ".corrupt", "unexpected end of JSON input"},
		{"something else", "\x00\xff<html>", ".corrupt", "invalid character"},
		{"no version", `{}`, ".corrupt", "version 0, want 1 to 1"},
		{"a later version, whatever it holds", `{"version":2,"incidents":{"a":1}}`, ".newer", "version 2, want at most 1: written by a newer exporter"},
		{"an incident twice", twice(valid), ".corrupt", "incident " + id + " is there twice"},
		{"two open incidents of one cause", strings.Replace(twice(valid), id, "0123456789ab", 1), ".corrupt", "is about what another open one is about"},
		{"an id that is a path", strings.Replace(valid, id, "../etc/passwd", 1), ".corrupt", `incident 0: \"../etc/passwd\" is not an id`},
		{"an unknown severity", strings.Replace(valid, `"severity":"page"`, `"severity":"loud"`, 1), ".corrupt", "parse severity"},
		{"no detector", strings.Replace(valid, `"detector":"hot-key-expiry"`, `"detector":""`, 1), ".corrupt", "has no detector"},
		{"a child without a detector", child(`{"onset":1}`), ".corrupt", `has a child of detector \"\"`},
		{"a child that holds twice", child(`{"detector":"d","onset":1},{"detector":"d","onset":1}`), ".corrupt", "is about what another open one is about"},
		{"more children than fit", child(strings.Repeat(`{"detector":"d","onset":1,"cleared":1},`, 16) + `{"detector":"d","onset":1,"cleared":1}`), ".corrupt", "has 17 children: want at most 16"},
		{"no onset", strings.Replace(valid, `"onset":`, `"onset":0,"was":`, 1), ".corrupt", "has times 0 to 0"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "state.json")
			if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			restart(t, file, incident.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(m *incident.Manager) {
				if got := m.All(); len(got) != 0 {
					t.Errorf("resumed %v", got)
				}
				if got := m.Stats().SetAside; got != 1 {
					t.Errorf("%d counted as set aside, want 1", got)
				}
				apply(1, page())(m)
			})
			for _, want := range []string{"level=ERROR", "moved_to=" + file + tc.suffix, tc.says} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log lacks %q:\n%s", want, log.String())
				}
			}
			if got, err := os.ReadFile(file + tc.suffix); err != nil || string(got) != tc.content {
				t.Errorf("the file set aside holds %q, %v; want what was there", got, err)
			}
			restart(t, file, incident.Options{}, func(m *incident.Manager) {
				if got := len(m.Open()); got != 1 {
					t.Errorf("after another restart %d are open, want 1", got)
				}
			})
		})
	}
}

// blocked returns a state file that cannot be written, because a file is where
// its folder should be, and a function that removes the obstacle.
func blocked(t *testing.T) (file string, free func()) {
	dir := filepath.Join(t.TempDir(), "in-the-way")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "state.json"), func() {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAManagerThatCannotSaveServesCountsAndLogsOnce(t *testing.T) {
	file, free := blocked(t)
	var log bytes.Buffer
	m := newManager(t, incident.Options{StateFile: file, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	log.Reset() // of what was said when it could not be read
	for i := range 5 {
		m.Apply(after(float64(i)), []detectors.Finding{page(key(uint64(i)))})
		if err := m.Save(); err == nil || !strings.Contains(err.Error(), "save incidents in") {
			t.Fatalf("save: %v", err)
		}
	}
	if got := len(m.Open()); got != 5 {
		t.Errorf("%d open, want 5", got)
	}
	if st := m.Stats(); st.SaveFailures < 5 || st.Saves != 0 {
		t.Errorf("%d saves, %d failures: want 0 and at least 5", st.Saves, st.SaveFailures)
	}
	free()
	if err := m.Save(); err != nil {
		t.Fatal(err)
	}
	if got := m.Stats().Saves; got == 0 {
		t.Error("no save counted")
	}
	if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "works again") {
		t.Errorf("want two lines in the log, got:\n%s", text)
	}
}

func TestChangesAreSavedByThemselves(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, incident.Options{StateFile: file})
		saved := func() incident.Incident {
			synctest.Wait()
			var state struct {
				Incidents []incident.Incident `json:"incidents"`
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &state); err != nil {
				t.Fatal(err)
			}
			return state.Incidents[0]
		}
		m.Apply(after(1), []detectors.Finding{page(peak(20))})
		if got := saved(); got.Worst.Evidence[0].Value != 20 {
			t.Errorf("right after it opened, its state is %+v", got)
		}
		m.Apply(after(2), []detectors.Finding{page(peak(30))})
		if got := saved(); got.Worst.Evidence[0].Value != 20 {
			t.Error("fresh evidence is saved at once: it should wait for its turn")
		}
		<-time.After(30 * time.Second) // of the bubble
		if got := saved(); got.Worst.Evidence[0].Value != 30 {
			t.Error("fresh evidence is not saved after 30 s")
		}
		m.Apply(after(3), []detectors.Finding{page(cleared)})
		if got := saved(); got.Open() {
			t.Error("its end is not saved at once")
		}
	})
}

func TestASaveThatFailedIsTriedAgain(t *testing.T) {
	file, free := blocked(t)
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, incident.Options{StateFile: file})
		m.Apply(after(1), []detectors.Finding{page()})
		synctest.Wait()
		if st := m.Stats(); st.SaveFailures != 1 {
			t.Fatalf("%d failures, want 1", st.SaveFailures)
		}
		free()
		<-time.After(30 * time.Second) // of the bubble
		synctest.Wait()
		if st := m.Stats(); st.Saves != 1 {
			t.Errorf("%d saves, want 1", st.Saves)
		}
	})
}

func TestCloseMayBeCalledTwice(t *testing.T) {
	restart(t, filepath.Join(t.TempDir(), "state.json"), incident.Options{}, func(m *incident.Manager) {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

func FuzzDecodeState(f *testing.F) {
	f.Add([]byte(`{"version":1,"incidents":[]}`))
	f.Add([]byte(`{"version":9}`))
	f.Add([]byte(`{"version":1,"incidents":[{"id":"0a","detector":"d","onset":1,"severity":"page","children":[{"detector":"e","onset":1,"severity":"ticket","summary":""}]}]}`))
	f.Add([]byte(`{"version":1,"incidents":[{"id":"0a","detector":"d","onset":1,"severity":"page","changes":[{"at":1,"kind":"opened"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		incidents, err := incident.DecodeState(data)
		if err != nil {
			return
		}
		for i := range incidents {
			if incidents[i].ID == "" || incidents[i].Detector == "" {
				t.Errorf("accepted %+v", incidents[i])
			}
		}
		if _, err := json.Marshal(incidents); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}
