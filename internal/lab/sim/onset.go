package sim

import "time"

// Onset is when one kind of trouble began.
type Onset struct {
	Detector string        `json:"detector"`
	Cache    string        `json:"cache"`
	Key      string        `json:"key,omitempty"` // empty if it is not about one key
	At       time.Duration `json:"at"`            // since the start
}

type onsetName struct{ detector, cache, key string }

// maxOnsets bounds what is kept of trouble that comes again and again.
const maxOnsets = 100_000

// onset notes that trouble of that kind is there, unless it was before. A nil e
// stands for the whole cache.
func (a *account) onset(detector string, c *cache, e *entry) {
	name := onsetName{detector: detector, cache: c.name}
	if e != nil {
		name.key = e.text
	}
	if !a.seen[name] {
		a.seen[name] = true
		a.note(name)
	}
}

// every notes each time that trouble of that kind begins.
func (a *account) every(detector string, e *entry) {
	if len(a.onsets) < maxOnsets {
		a.note(onsetName{detector, e.c.name, e.text})
	}
}

func (a *account) note(n onsetName) {
	a.onsets = append(a.onsets, Onset{n.detector, n.cache, n.key, time.Duration(a.s.now)})
}

// Onsets returns when each kind of trouble began, in order of time. Whether it
// was trouble enough for anybody is not said.
func (s *Sim) Onsets() []Onset { return s.account.onsets }
