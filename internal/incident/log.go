package incident

import (
	"context"
	"log/slog"

	"github.com/stampede-exporter/stampede-exporter/detectors"
)

// NewLog returns a listener that writes each change, fresh evidence aside, to
// l: pages as warnings, the rest as information. It never writes a key's text.
func NewLog(l *slog.Logger) Listener { return logger{l} }

type logger struct{ log *slog.Logger }

var changeTexts = map[ChangeKind]string{
	Opened:          "Incident opened",
	SeverityChanged: "Incident changed severity",
	Reopened:        "Incident reopened",
	ClassChanged:    "Incident changed class",
	Closed:          "Incident closed",
	Resumed:         "Incident still open",
}

// IncidentChanged implements [Listener].
func (l logger) IncidentChanged(i Incident, c Change) {
	if c.Kind == Updated {
		return
	}
	level := slog.LevelInfo
	if c.Severity == detectors.Page && c.Kind != Closed {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("id", i.ID),
		slog.String("detector", i.Detector),
		slog.String("service", i.Service),
		slog.String("cache", i.Cache),
		slog.String("key_group", i.Key.Group),
		slog.String("severity", c.Severity.String()),
		slog.Time("onset", i.Onset.Time()),
		slog.String("summary", i.Finding.Summary),
	}
	if c.Was != "" {
		attrs = append(attrs, slog.String("was", c.Was))
	}
	if c.Reason != "" {
		attrs = append(attrs, slog.String("reason", c.Reason))
	}
	l.log.LogAttrs(context.Background(), level, changeTexts[c.Kind], attrs...)
}
