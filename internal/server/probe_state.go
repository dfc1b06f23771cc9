package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/engine"
	"github.com/stampede-exporter/stampede-exporter/probes"
)

// probeState is how a probe does.
type probeState struct {
	err           error    // of its latest run
	limits        []string // of its latest run that succeeded
	gaps, skipped uint64   // since it was started
}

// probeStates is how every probe does. The zero value is ready; it is safe for
// concurrent use.
type probeStates struct {
	mu   sync.Mutex
	last map[target]probeState // guarded by mu
}

// take takes the account of a run, and returns how the probe did before.
func (p *probeStates) take(r probes.Report) (before probeState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[target]probeState{}
	}
	t := target{r.Probe, r.Target}
	before = p.last[t]
	now := probeState{err: r.Err, limits: r.Limits, gaps: before.gaps + r.Gaps, skipped: before.skipped + r.Skipped}
	if r.Err != nil {
		now.limits = before.limits // it may not have come so far
	}
	p.last[t] = now
	return before
}

func (p *probeStates) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.last)
}

// all returns what probes could not see, for the page: in place of a cache it has
// the target.
func (p *probeStates) all() []engine.Limit {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []engine.Limit
	for _, t := range slices.SortedFunc(maps.Keys(p.last), compareTargets) {
		say := func(blind bool, reason string) {
			out = append(out, engine.Limit{Detector: t.probe, Limit: detectors.Limit{Cache: t.target, Blind: blind, Reason: reason}})
		}
		s := p.last[t]
		if s.err != nil {
			first, _, _ := strings.Cut(s.err.Error(), "\n")
			say(true, "The probe fails: "+first)
		}
		for _, l := range s.limits {
			say(false, l)
		}
		if s.gaps > 0 {
			say(false, fmt.Sprintf("Stretches of time it could not see, since it was started: %d.", s.gaps))
		}
		if s.skipped > 0 {
			say(false, fmt.Sprintf("Events it left out because of its budget, since it was started: %d.", s.skipped))
		}
	}
	return out
}

func compareTargets(a, b target) int {
	return cmp.Or(cmp.Compare(a.probe, b.probe), cmp.Compare(a.target, b.target))
}

// logProbe says when a probe begins to fail, when it works again, and when what
// keeps it from seeing all changes; what is in between is counted.
func (s *Server) logProbe(r probes.Report, before probeState) {
	log := s.log.With("probe", r.Probe, "target", r.Target)
	switch {
	case r.Err != nil && before.err == nil:
		log.Warn("Probe fails; until it works again, failures are counted only", "reason", string(r.Reason), "err", r.Err)
	case r.Err == nil && before.err != nil:
		log.Info("Probe works again")
	}
	if r.Err != nil {
		return
	}
	now, was := strings.Join(r.Limits, " "), strings.Join(before.limits, " ")
	switch {
	case now == was:
	case now == "":
		log.Info("Probe sees all it could again")
	default:
		log.Warn("Probe does not see all it could", "limits", now)
	}
}
