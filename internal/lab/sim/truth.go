package sim

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/internal/lab/rig"
)

// Figures returns what the run came to; see [rig.Account.Figures].
func (s *Sim) Figures() map[string]float64 {
	r := s.rest()
	for _, o := range s.origins {
		r.Busy += o.busy
		if o.running > 0 {
			r.Busy += time.Duration(s.now - o.since)
		}
		o.meter()
		if slots := time.Duration(s.tail.to-s.tail.from) * time.Duration(o.cfg.Concurrency); slots > 0 {
			r.Utilisation = max(r.Utilisation, float64(o.used)/float64(slots))
		}
	}
	for _, c := range s.caches {
		if c.missing > 0 {
			r.Missing = max(r.Missing, time.Duration(s.now-c.since))
		}
	}
	return s.account.Figures(r)
}

// rest returns what can be told of the run before it begins.
func (s *Sim) rest() rig.Rest {
	r := rig.Rest{End: s.end}
	for _, c := range s.caches {
		r.Patience = max(r.Patience, time.Duration(c.cfg.Client.Attempts)*(c.cfg.Client.Timeout+c.cfg.Client.Backoff))
	}
	return r
}

// span is a part of the run.
type span struct{ from, to int64 }

// Onsets returns when each kind of trouble began and ended; see
// [rig.Account.Onsets].
func (s *Sim) Onsets() []rig.Onset { return s.account.Onsets(s.now) }
