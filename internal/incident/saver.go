package incident

import (
	"sync"
	"time"
)

const (
	// saveEvery is how often fresh evidence is saved, and a save that failed
	// is tried again. Changes of the timeline do not wait for it.
	saveEvery = 30 * time.Second
	// savePause bounds what saving costs: after each save comes a pause this
	// many times as long, in which further changes gather.
	savePause = 10
)

// saver calls a function that saves, soon after something changed, on a
// goroutine of its own.
type saver struct {
	save    func() (took time.Duration, err error)
	changed chan struct{}
	quit    chan struct{}
	once    sync.Once // closes quit
	done    sync.WaitGroup
}

func startSaver(save func() (time.Duration, error)) *saver {
	s := &saver{save: save, changed: make(chan struct{}, 1), quit: make(chan struct{})}
	s.done.Go(s.run)
	return s
}

// hurry asks for a save without waiting for saveEvery. It does not block.
func (s *saver) hurry() {
	select {
	case s.changed <- struct{}{}:
	default: // it is asked for already
	}
}

// stop ends the goroutine, after the save that may be running. It may be called
// again.
func (s *saver) stop() {
	s.once.Do(func() { close(s.quit) })
	s.done.Wait()
}

func (s *saver) run() {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-s.changed:
		case <-tick.C:
		}
		took, _ := s.save() // save counts and logs its failures
		pause := time.NewTimer(savePause * took)
		select {
		case <-s.quit:
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}
