package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/durable"
)

const (
	// saveEvery is how often what detectors have learnt is saved. What is lost
	// with a process that is killed is learnt again in that time.
	saveEvery = time.Minute
	// knowledgeVersion is raised when the file can no longer be read by older
	// exporters.
	knowledgeVersion = 1
	// maxKnowledge bounds how much of the file is read. A thousand origins
	// with a week of baselines in each of five detectors take half of it.
	maxKnowledge = 256 << 20
)

// errNewer marks a file of a later exporter, which going back to that makes
// useful again.
var errNewer = errors.New("written by a newer exporter")

// savedKnowledge is what the file holds.
type savedKnowledge struct {
	Version   int                        `json:"version"`
	Detectors map[string]json.RawMessage `json:"detectors"` // by id
}

// knowledge keeps what detectors have learnt in a file. All but the writing is
// done on the engine's loop, because detectors are not safe for concurrent use;
// the writing is not, because a disk can take longer than a tick. A nil
// knowledge keeps nothing.
type knowledge struct {
	path     string
	learners []detectors.Stateful
	log      *slog.Logger

	writing chan struct{} // holds a token while the file is written
	writers sync.WaitGroup
	failing bool // the last save failed; guarded by writing
	mute    map[string]bool
}

// newKnowledge returns what keeps the knowledge of those of ds that learn, after
// it has told them what is in the file; nil without a path.
func newKnowledge(path string, ds []detectors.Detector, log *slog.Logger) *knowledge {
	if path == "" {
		return nil
	}
	k := &knowledge{path: path, log: log, writing: make(chan struct{}, 1), mute: map[string]bool{}}
	for _, d := range ds {
		if l, ok := d.(detectors.Stateful); ok {
			k.learners = append(k.learners, l)
		}
	}
	k.load()
	return k
}

// load tells detectors what the file holds. Whatever is wrong with it, the
// exporter goes on: what cannot be used is set aside, and learnt anew.
func (k *knowledge) load() {
	if err := durable.Sweep(k.path); err != nil {
		k.log.Warn("Could not remove what an interrupted save left behind", "file", k.path, "err", err)
	}
	saved, err := readKnowledge(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	for _, l := range k.learners {
		id := l.Doc().ID
		if state, ok := saved.Detectors[id]; ok {
			err = errors.Join(err, restore(l, state))
		}
	}
	if err != nil {
		k.setAside(err)
	}
}

// setAside moves the file out of the way of the next save.
func (k *knowledge) setAside(why error) {
	aside := k.path + ".corrupt"
	if errors.Is(why, errNewer) {
		aside = k.path + ".newer"
	}
	k.log.Error("Could not use all that detectors had learnt; what is missing is learnt anew", "file", k.path, "moved_to", aside, "err", why)
	if err := os.Rename(k.path, aside); err != nil {
		k.log.Error("Could not set the file aside; it will be overwritten", "file", k.path, "err", err)
	}
}

func readKnowledge(path string) (savedKnowledge, error) {
	var s savedKnowledge
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKnowledge+1))
	if err != nil {
		return s, err
	}
	if len(data) > maxKnowledge {
		return s, fmt.Errorf("read %q: more than %d bytes", path, maxKnowledge)
	}
	return decodeKnowledge(data)
}

func decodeKnowledge(data []byte) (savedKnowledge, error) {
	var s savedKnowledge
	if err := json.Unmarshal(data, &s); err != nil {
		return savedKnowledge{}, fmt.Errorf("decode what detectors had learnt: %w", err)
	}
	switch {
	case s.Version > knowledgeVersion:
		return savedKnowledge{}, fmt.Errorf("version %d, want at most %d: %w", s.Version, knowledgeVersion, errNewer)
	case s.Version < 1:
		return savedKnowledge{}, fmt.Errorf("version %d, want 1 to %d", s.Version, knowledgeVersion)
	}
	return s, nil
}

// restore tells one detector what it had learnt. A panic in it is an error.
func restore(d detectors.Stateful, state []byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s panicked: %v", d.Doc().ID, v)
		}
	}()
	if err := d.Restore(state); err != nil {
		return fmt.Errorf("%s: %w", d.Doc().ID, err)
	}
	return nil
}

// save writes what detectors know now, unless the file is still being written:
// then the next time will do.
func (k *knowledge) save() {
	if k == nil {
		return
	}
	select {
	case k.writing <- struct{}{}:
	default:
		return
	}
	data := k.gather()
	k.writers.Go(func() {
		k.write(data)
		<-k.writing
	})
}

// close saves once more, after what is being written.
func (k *knowledge) close() {
	if k == nil {
		return
	}
	k.writers.Wait()
	k.write(k.gather())
}

// gather asks detectors what they know. One that cannot say is left out, and
// named in the log once.
func (k *knowledge) gather() []byte {
	s := savedKnowledge{Version: knowledgeVersion, Detectors: map[string]json.RawMessage{}}
	for _, l := range k.learners {
		id := l.Doc().ID
		state, err := ask(l)
		if err == nil {
			s.Detectors[id] = state
			continue
		}
		if !k.mute[id] {
			k.mute[id] = true
			k.log.Error("Could not ask a detector what it has learnt; it will learn anew after a restart", "detector", id, "err", err)
		}
	}
	data, err := json.Marshal(s)
	if err != nil { // ask has seen to it that every state is JSON
		panic(err)
	}
	return data
}

// ask returns what one detector knows. A panic in it is an error.
func ask(d detectors.Stateful) (state json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panicked: %v", v)
		}
	}()
	state, err = d.State()
	if err == nil && !json.Valid(state) {
		err = errors.New("what it knows is not JSON")
	}
	return state, err
}

// write replaces the file. It logs the first failure of a row and its end: a
// full disk must not fill the log too.
func (k *knowledge) write(data []byte) {
	err := durable.Replace(k.path, data)
	switch {
	case err != nil && !k.failing:
		k.log.Error("Could not save what detectors have learnt; a restart now would forget what changed since", "file", k.path, "err", err)
	case err == nil && k.failing:
		k.log.Info("Saving what detectors have learnt works again", "file", k.path)
	}
	k.failing = err != nil
}
