package detectors

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stampede-exporter/stampede-exporter/signal"
)

// baselineVersion is raised when what was saved can no longer be read by older
// versions. Fields that are only added leave it as it is.
const baselineVersion = 1

// savedBaselines is what is known of all origins, in the order of their names.
type savedBaselines struct {
	Version int             `json:"version"`
	Origins []savedBaseline `json:"origins"`
}

type savedBaseline struct {
	Origin string      `json:"origin,omitempty"`
	Cache  string      `json:"cache,omitempty"` // of an origin without a name
	At     int64       `json:"at"`              // when it was last reported on
	Recent []minute    `json:"recent"`
	Hours  []savedHour `json:"hours,omitempty"`
}

type savedHour struct {
	Hour int `json:"hour"` // of the week, 0 to 167
	hour
}

// State implements [Stateful].
func (w *watch[S]) State() ([]byte, error) {
	s := savedBaselines{Version: baselineVersion, Origins: []savedBaseline{}}
	for _, n := range slices.SortedFunc(maps.Keys(w.all), compareOrigins) {
		o := w.all[n]
		if len(o.base.recent) == 0 && len(o.base.hours) == 0 {
			continue
		}
		b := savedBaseline{Origin: n.origin, Cache: n.cache, At: int64(o.at), Recent: o.base.recent}
		for _, h := range slices.Sorted(maps.Keys(o.base.hours)) {
			b.Hours = append(b.Hours, savedHour{h, o.base.hours[h]})
		}
		s.Origins = append(s.Origins, b)
	}
	return json.Marshal(s)
}

// Restore implements [Stateful].
func (w *watch[S]) Restore(state []byte) error {
	var s savedBaselines
	if err := json.Unmarshal(state, &s); err != nil {
		return fmt.Errorf("restore baselines: %w", err)
	}
	if s.Version != baselineVersion {
		return fmt.Errorf("restore baselines: version %d: want %d", s.Version, baselineVersion)
	}
	if len(s.Origins) > maxOrigins {
		return fmt.Errorf("restore baselines: %d origins: want at most %d", len(s.Origins), maxOrigins)
	}
	all := map[originName]*watched[S]{}
	for i := range s.Origins {
		b := &s.Origins[i]
		n := originName{b.Origin, b.Cache}
		if err := b.check(); err != nil {
			return fmt.Errorf("restore baselines: origin %d: %w", i, err)
		}
		if all[n] != nil {
			return fmt.Errorf("restore baselines: origin %d is there twice", i)
		}
		o := &watched[S]{}
		o.name, o.at, o.base = n, signal.Nanos(b.At), b.baseline()
		all[n] = o
	}
	w.all = all
	return nil
}

func (s *savedBaseline) baseline() baseline {
	b := baseline{recent: s.Recent, hours: make(map[int]hour, len(s.Hours))}
	for _, h := range s.Hours {
		b.hours[h.Hour] = h.hour
	}
	return b
}

// check refuses what cannot have been saved, so that no rule has to doubt a
// baseline.
func (s *savedBaseline) check() error {
	switch {
	case (s.Origin == "") == (s.Cache == ""):
		return errors.New("want the name of an origin or of a cache")
	case s.At <= 0:
		return fmt.Errorf("at is %d: want an instant", s.At)
	case len(s.Recent) > fullAfter:
		return fmt.Errorf("%d recent minutes: want at most %d", len(s.Recent), fullAfter)
	case len(s.Hours) > hoursOfWeek:
		return fmt.Errorf("%d hours: want at most %d", len(s.Hours), hoursOfWeek)
	}
	var last signal.Nanos
	for i, m := range s.Recent {
		if err := m.check(); err != nil {
			return fmt.Errorf("recent minute %d: %w", i, err)
		}
		if m.At <= last {
			return fmt.Errorf("recent minute %d is out of order", i)
		}
		last = m.At
	}
	return s.checkHours()
}

func (s *savedBaseline) checkHours() error {
	last := -1
	for _, h := range s.Hours {
		if h.Hour <= last || h.Hour >= hoursOfWeek || hourOfWeek(hourOf(h.At)) != h.Hour {
			return fmt.Errorf("hour %d is out of order or range", h.Hour)
		}
		if h.Minutes < youngAfter || h.Minutes > fullAfter {
			return fmt.Errorf("hour %d has %d minutes: want %d to %d", h.Hour, h.Minutes, youngAfter, fullAfter)
		}
		if err := h.check(); err != nil {
			return fmt.Errorf("hour %d: %w", h.Hour, err)
		}
		last = h.Hour
	}
	return nil
}

// Bounds of what can be measured; far beyond what is likely.
const (
	maxLoad  = 1e12 // reads per second
	maxDelta = 1e6  // seconds, half of a month
)

func (m minute) check() error {
	if m.At <= 0 {
		return fmt.Errorf("at is %d: want an instant", m.At)
	}
	return cmp.Or(
		within("load", m.Load, 0, maxLoad),
		within("hits", m.Hits, 0, 1),
		within("delta", m.Delta, 0, maxDelta),
		within("good", m.Good, 0, 1),
	)
}
