package lab

import (
	"time"

	"github.com/stampede-exporter/stampede-exporter/detectors"
	"github.com/stampede-exporter/stampede-exporter/internal/lab/sim"
	"github.com/stampede-exporter/stampede-exporter/signal"
)

// findings joins what detectors repeat at each tick.
type findings struct {
	all  []*Finding
	open map[subject]*Finding
}

// subject is what a finding is about.
type subject struct {
	detector, service, cache string
	key                      signal.KeyID
}

// add takes in what one detector said at one tick.
func (fs *findings) add(at signal.Nanos, found []detectors.Finding) {
	if fs.open == nil {
		fs.open = map[subject]*Finding{}
	}
	now := offset(at)
	for i := range found {
		d := &found[i]
		id := subject{d.Detector, d.Service, d.Cache, d.Key.ID}
		f := fs.open[id]
		if f == nil {
			if d.Cleared {
				continue
			}
			f = &Finding{Detector: d.Detector, Cache: d.Cache, Detected: now.Seconds()}
			for s := range f.raised {
				f.raised[s] = -1
			}
			fs.open[id] = f
			fs.all = append(fs.all, f)
		}
		if d.Cleared { // its text says that all is well again
			f.Cleared = now.Seconds()
			delete(fs.open, id)
			continue
		}
		f.take(now, d)
	}
}

// take brings f up to date. The worst it came to stays.
func (f *Finding) take(now time.Duration, d *detectors.Finding) {
	for s := range f.raised {
		if int(d.Severity) >= s && f.raised[s] < 0 {
			f.raised[s] = now
			f.Severity = detectors.Severity(s).String()
		}
	}
	if ticketed := f.raised[detectors.Ticket]; ticketed >= 0 {
		f.Ticketed = ticketed.Seconds()
	}
	if paged := f.raised[detectors.Page]; paged >= 0 {
		f.Paged = paged.Seconds()
	}
	f.Key = d.Key.Text
	if f.Key == "" && d.Key.ID != 0 {
		f.Key = d.Key.ID.String()
	}
	f.Priority, f.Onset, f.Summary = d.Priority, offset(d.Onset).Seconds(), d.Summary
	f.Evidence = make(map[string]float64, len(d.Evidence))
	for _, e := range d.Evidence {
		f.Evidence[e.Name] = e.Value
	}
}

// offset returns how long after the start of the run n is.
func offset(n signal.Nanos) time.Duration { return n.Sub(signal.At(sim.Epoch)) }
