package incident

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/durable"
)

// stateVersion is raised when a state file can no longer be read by older
// exporters. Fields that are only added leave it as it is.
const stateVersion = 1

// maxState bounds how much of a state file is read. The largest a manager
// writes with default options is less than half of it.
const maxState = 512 << 20

// errNewer marks a state file of a later exporter. It is set aside under
// another name than a broken one, because going back to that exporter makes it
// useful again.
var errNewer = errors.New("written by a newer exporter")

// state is what a state file holds.
type state struct {
	Version   int        `json:"version"`
	Incidents []Incident `json:"incidents"` // open ones first
}

// load resumes what the state file holds, and sets the file aside if it cannot.
func (m *Manager) load() {
	path, log := m.opts.StateFile, m.opts.Logger
	if err := durable.Sweep(path); err != nil {
		log.Warn("Could not remove what an interrupted save left behind", "file", path, "err", err)
	}
	incidents, err := readState(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		m.book.stats.SetAside++
		aside := path + ".corrupt"
		if errors.Is(err, errNewer) {
			aside = path + ".newer"
		}
		log.Error("Could not use the state file; incidents open before the restart are forgotten", "file", path, "moved_to", aside, "err", err)
		if err := os.Rename(path, aside); err != nil {
			log.Error("Could not set the state file aside; it will be overwritten", "err", err)
		}
		return
	}
	for i := range incidents {
		m.book.resume(&incidents[i])
	}
}

func readState(path string) ([]Incident, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxState+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxState {
		return nil, fmt.Errorf("read state: more than %d bytes", maxState)
	}
	return decodeState(data)
}

// decodeState returns the incidents in a state file's bytes, ready to be
// resumed in that order: closed ones as they were closed.
func decodeState(data []byte) ([]Incident, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("decode state: %w", err)
	}
	switch {
	case head.Version > stateVersion:
		return nil, fmt.Errorf("decode state: version %d, want at most %d: %w", head.Version, stateVersion, errNewer)
	case head.Version < 1:
		return nil, fmt.Errorf("decode state: version %d, want 1 to %d", head.Version, stateVersion)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("decode state: %w", err)
	}
	if err := checkState(s.Incidents); err != nil {
		return nil, fmt.Errorf("decode state: %w", err)
	}
	slices.Reverse(s.Incidents) // they were saved in the order of Compare
	return s.Incidents, nil
}

// checkState refuses what a manager cannot have written, so that no rule of the
// book has to doubt what it finds there.
func checkState(incidents []Incident) error {
	ids, open := map[string]bool{}, map[subject]bool{}
	for i := range incidents {
		inc := &incidents[i]
		switch {
		case !validID(inc.ID):
			return fmt.Errorf("incident %d: %q is not an id", i, inc.ID)
		case ids[inc.ID]:
			return fmt.Errorf("incident %s is there twice", inc.ID)
		case inc.Detector == "":
			return fmt.Errorf("incident %s has no detector", inc.ID)
		case inc.Onset <= 0 || inc.Closed < 0:
			return fmt.Errorf("incident %s has times %d to %d", inc.ID, inc.Onset, inc.Closed)
		case inc.Severity > detectors.Page:
			return fmt.Errorf("incident %s has severity %d", inc.ID, inc.Severity)
		case len(inc.Changes) > MaxChanges:
			return fmt.Errorf("incident %s has %d changes: want at most %d", inc.ID, len(inc.Changes), MaxChanges)
		case len(inc.Children) > MaxChildren:
			return fmt.Errorf("incident %s has %d children: want at most %d", inc.ID, len(inc.Children), MaxChildren)
		}
		ids[inc.ID] = true
		if err := checkSubjects(inc, open); err != nil {
			return err
		}
	}
	return nil
}

// checkSubjects refuses an incident with a finding that holds in another, or
// twice in this one. open are the subjects of findings that hold.
func checkSubjects(inc *Incident, open map[subject]bool) error {
	if !inc.Open() {
		return nil
	}
	hold := func(s subject) error {
		if open[s] {
			return fmt.Errorf("incident %s is about what another open one is about", inc.ID)
		}
		open[s] = true
		return nil
	}
	err := hold(inc.subject())
	for i := range inc.Children {
		c := &inc.Children[i]
		if c.Detector == "" || c.Onset <= 0 || c.Cleared < 0 {
			return fmt.Errorf("incident %s has a child of detector %q with times %d to %d", inc.ID, c.Detector, c.Onset, c.Cleared)
		}
		if c.Cleared == 0 {
			err = errors.Join(err, hold(c.subject()))
		}
	}
	return err
}

// validID accepts any ID a manager ever made, and nothing that could mean
// something in a URL or a path.
func validID(id string) bool {
	if len(id) == 0 || len(id) > 64 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// save writes the state file and accounts for it.
func (m *Manager) save() error {
	m.saving.Lock()
	defer m.saving.Unlock()
	m.mu.Lock()
	m.book.dirty = false // before it is read: a change in between is saved twice, never not at all
	m.mu.Unlock()

	data, err := json.Marshal(state{Version: stateVersion, Incidents: m.list(true)})
	if err == nil {
		err = durable.Replace(m.opts.StateFile, data)
	}
	m.account(err)
	if err != nil {
		return fmt.Errorf("save incidents in %q: %w", m.opts.StateFile, err)
	}
	return nil
}

// account counts a save, and logs the first failure of a row and its end: a
// full disk must not fill the log too. It is called with saving held.
func (m *Manager) account(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	log := m.opts.Logger
	if err != nil {
		m.book.dirty = true
		m.book.stats.SaveFailures++
		if !m.failing {
			log.Error("Could not save incidents; a restart now would forget what changed since", "file", m.opts.StateFile, "err", err)
		}
	} else {
		m.book.stats.Saves++
		if m.failing {
			log.Info("Saving incidents works again", "file", m.opts.StateFile)
		}
	}
	m.failing = err != nil
}
