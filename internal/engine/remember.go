package engine

import (
	"log/slog"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

// Knowledge is what detectors have learnt, in a file as [Options.StateFile]
// names: for who runs detectors without an [Engine], in a time of its own, and
// has them survive a restart as an engine's do. It is not safe for concurrent
// use.
type Knowledge struct{ kept *knowledge }

// Remember returns the knowledge of ds, after it has told them what the file at
// path holds. Trouble with it is logged, and no error: what cannot be used is
// learnt anew.
func Remember(path string, ds []detectors.Detector, log *slog.Logger) Knowledge {
	return Knowledge{newKnowledge(path, ds, log)}
}

// Close saves what the detectors know now.
func (k Knowledge) Close() { k.kept.close() }
