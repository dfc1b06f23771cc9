package server

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/stampede-exporter/stampede-exporter/internal/config"
	"github.com/stampede-exporter/stampede-exporter/probes"
)

// Errors of a reload that has nothing to do with the configuration's contents.
var (
	errNoConfig = errors.New("the exporter was started without --config.file: there is nothing to reload")
	errStopped  = errors.New("the exporter is stopping")
)

// Reload reads the configuration again and puts it in force. If it is invalid
// the old one stays in force, whole, and the error says why. What changed but
// needs a restart is returned, by section. Safe for concurrent use.
func (s *Server) Reload() (needRestart []string, err error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	switch {
	case s.o.Load == nil:
		return nil, errNoConfig
	case s.live.stopped:
		return nil, errStopped
	}
	defer func() { s.metrics.loaded(s.engine.Now(), err) }()
	c, err := s.o.Load()
	if err != nil {
		return nil, err
	}
	if err := s.apply(c); err != nil {
		return nil, err
	}
	needRestart = frozen(s.o.Config, c)
	if len(needRestart) > 0 {
		s.log.Warn("Configuration reloaded, but some of what changed needs a restart", "sections", strings.Join(needRestart, ", "))
	} else {
		s.log.Info("Configuration reloaded")
	}
	return needRestart, nil
}

// frozen lists the sections that differ from those the exporter started with
// and cannot be replaced while it runs: limits of tables that are in use, the
// TLS of open sockets, and detectors, which would forget what they have found
// and could never clear it.
func frozen(started, now *config.Config) []string {
	var out []string
	for _, section := range []struct {
		name     string
		from, to any
	}{
		{"detectors", started.Detectors, now.Detectors},
		{"fleet", started.Fleet, now.Fleet},
		{"otlp", started.OTLP, now.OTLP},
	} {
		if !reflect.DeepEqual(section.from, section.to) {
			out = append(out, section.name)
		}
	}
	return out
}

// apply puts c in force. Everything that can fail is made
// before anything is replaced. The caller holds s.reloading.
func (s *Server) apply(c *config.Config) error {
	runner, err := s.newProbes(c)
	if err != nil {
		return err
	}
	n, err := s.newNotifier(c)
	if err != nil {
		return err
	}
	s.engine.Declare(declarations(c))
	s.replaceProbes(runner, len(c.Probes))
	// The new notifier learns of what is open before the old one leaves, so
	// that nothing goes untold; Alertmanager merges what both say.
	old := s.live.notifier
	n.start(s.incidents)
	s.live.notifier = n
	s.config.Store(c)
	if err := old.stop(); err != nil {
		s.log.Warn("The notifier replaced by a reload did not finish", "err", err)
	}
	return nil
}

// replaceProbes stops the probes that run and starts those of r.
func (s *Server) replaceProbes(r *probes.Runner, n int) {
	s.live.probes.stop()
	s.probeMetrics.reset()
	if n > 0 {
		s.live.probes.start(r, func(err error) { s.log.Warn("A probe did not stop in order", "err", err) })
	}
}

// reloadText tells whoever asked for a reload what came of it.
func reloadText(needRestart []string) string {
	if len(needRestart) == 0 {
		return "Configuration reloaded.\n"
	}
	return fmt.Sprintf("Configuration reloaded. Changed, but in force only after a restart: %s.\n", strings.Join(needRestart, ", "))
}
